"""Move pieces of an array between devices and axes, or to one array."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gpualgo._arrays.view import view_of
from gpualgo.shards._devices import Place, write_all

Piece = tuple[list[Any], list[Any]]
"""Sorted keys and the values moved with them, an array for each field."""


def shares(length: int, count: int) -> list[int]:
    """Split a length evenly; the first shares are one longer."""
    each, remainder = divmod(length, count)
    return [each + (i < remainder) for i in range(count)]


def spread(
    pieces: Sequence[Any], axis: int, places: Sequence[Place], lengths: Sequence[int],
    new_axis: int, library: Any,
) -> list[Any]:  # fmt: skip
    """Return new pieces of an array on given devices, with given lengths along an axis.

    Each device reads from the next ones first, so that they do not all read from the same one.
    """
    first = view_of(pieces[0], "a shard")
    extents = [piece.shape[axis] for piece in pieces]
    starts = list(accumulate(extents, initial=0))
    shape = list(first.shape)
    shape[axis] = starts[-1]
    targets = []
    for device, length in zip(places, lengths, strict=True):
        shape[new_axis] = length
        targets.append(device.empty(tuple(shape), first.dtype, library))
    begins = list(accumulate(lengths, initial=0))
    writes = []
    for step in range(len(pieces)):
        for i, (device, target) in enumerate(zip(places, targets, strict=True)):
            k = (i + step) % len(pieces)
            begin, end = begins[i], begins[i + 1]
            low, high = starts[k], starts[k + 1]
            if axis == new_axis:
                low, high = max(low, begin), min(high, end)
                if low < high:
                    part = cut(pieces[k], axis, low - starts[k], high - starts[k])
                    writes.append((device, cut(target, axis, low - begin, high - begin), part))
            elif low < high and begin < end:
                part = cut(pieces[k], new_axis, begin, end)
                writes.append((device, cut(target, axis, low, high), part))
    write_all(writes)
    return targets


def cut(x: Any, axis: int, start: int, end: int) -> Any:
    if start == 0 and end == x.shape[axis]:
        return x
    return x[(*(slice(None),) * axis, slice(start, end))]


def joined(pieces: list[Piece], place: Place, library: Any) -> Piece:
    """Concatenate pieces on a device."""

    def concatenated(arrays: list[Any]) -> Any:
        if len(arrays) == 1:
            return place.moved(arrays[0], library)
        return one_after_another(arrays, place, library)

    keys = [concatenated([piece[0][i] for piece in pieces]) for i in range(len(pieces[0][0]))]
    values = [concatenated([piece[1][i] for piece in pieces]) for i in range(len(pieces[0][1]))]
    return keys, values


def one_after_another(arrays: list[Any], place: Place, library: Any) -> Any:
    """Concatenate 1-D arrays on a device."""
    lengths = [x.shape[0] for x in arrays]
    ends = list(accumulate(lengths, initial=0))
    dtype = view_of(arrays[0], "a piece").dtype
    target = place.empty((ends[-1],), dtype, library)
    parts = zip(arrays, ends, ends[1:], strict=False)
    write_all([(place, cut(target, 0, start, end), x) for x, start, end in parts], are_ours=True)
    return target
