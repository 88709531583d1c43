"""From pieces of an array along one axis to others, along the same or another one, and to one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gpualgo._arrays.view import view_of
from gpualgo.shards._devices import Place, write_all

Piece = tuple[list[Any], list[Any]]
"""Sorted keys and what moves along, an array for each number."""


def shares(length: int, count: int) -> list[int]:
    """Return how an extent is shared out: evenly, the first ones one longer."""
    each, more = divmod(length, count)
    return [each + (seat < more) for seat in range(count)]


def spread(
    pieces: Sequence[Any], axis: int, places: Sequence[Place], lengths: Sequence[int],
    new_axis: int, library: Any,
) -> list[Any]:  # fmt: skip
    """Return the pieces of an array at some places, of these lengths along an axis.

    They are all in new memory. Every place takes from those behind it first, so that no source is
    asked by all at once.
    """
    first = view_of(pieces[0], "a shard")
    extents = [piece.shape[axis] for piece in pieces]
    starts = list(accumulate(extents, initial=0))
    shape = list(first.shape)
    shape[axis] = starts[-1]
    made = []
    for place, length in zip(places, lengths, strict=True):
        shape[new_axis] = length
        made.append(place.empty(tuple(shape), first.dtype, library))
    begins = list(accumulate(lengths, initial=0))
    writes = []
    for step in range(len(pieces)):
        for seat, (place, target) in enumerate(zip(places, made, strict=True)):
            source = (seat + step) % len(pieces)
            begin, end = begins[seat], begins[seat + 1]
            low, high = starts[source], starts[source + 1]
            if axis == new_axis:
                low, high = max(low, begin), min(high, end)
                if low < high:
                    part = cut(pieces[source], axis, low - starts[source], high - starts[source])
                    writes.append((place, cut(target, axis, low - begin, high - begin), part))
            elif low < high and begin < end:
                part = cut(pieces[source], new_axis, begin, end)
                writes.append((place, cut(target, axis, low, high), part))
    write_all(writes)
    return made


def cut(x: Any, axis: int, start: int, end: int) -> Any:
    """Return a part of an array along an axis."""
    if start == 0 and end == x.shape[axis]:
        return x
    return x[(*(slice(None),) * axis, slice(start, end))]


def joined(pieces: list[Piece], place: Place, library: Any) -> Piece:
    """Return pieces one after another in new memory."""

    def whole(arrays: list[Any]) -> Any:
        if len(arrays) == 1:
            return place.moved(arrays[0], library)
        return one_after_another(arrays, place, library)

    own = [whole([piece[0][i] for piece in pieces]) for i in range(len(pieces[0][0]))]
    more = [whole([piece[1][i] for piece in pieces]) for i in range(len(pieces[0][1]))]
    return own, more


def one_after_another(arrays: list[Any], place: Place, library: Any) -> Any:
    """Return arrays of one dimension as one, at a place."""
    lengths = [x.shape[0] for x in arrays]
    ends = list(accumulate(lengths, initial=0))
    dtype = view_of(arrays[0], "a piece").dtype
    target = place.empty((ends[-1],), dtype, library)
    parts = zip(arrays, ends, ends[1:], strict=False)
    write_all([(place, cut(target, 0, start, end), x) for x, start, end in parts], are_ours=True)
    return target
