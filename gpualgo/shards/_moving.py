"""Move pieces of an array between devices and axes, or to one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo.shards._devices import Device, copy_all, gpu_library, memory_of

Piece = tuple[list[Any], list[Any]]
"""Sorted keys and the values moved with them, an array for each field."""


def shares(length: int, count: int) -> list[int]:
    """Split a length evenly; the first shares are one longer."""
    each, remainder = divmod(length, count)
    return [each + (i < remainder) for i in range(count)]


def spread(
    pieces: Sequence[Any], axis: int, places: Sequence[Device], lengths: Sequence[int],
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
    copy_all(writes)
    return targets


def cut(x: Any, axis: int, start: int, end: int) -> Any:
    if start == 0 and end == x.shape[axis]:
        return x
    return x[(*(slice(None),) * axis, slice(start, end))]


def joined(pieces: list[Piece], place: Device, library: Any) -> Piece:
    """Concatenate pieces on a device."""

    def concatenated(arrays: list[Any]) -> Any:
        if len(arrays) == 1:
            return place.moved(arrays[0], library)
        return one_after_another(arrays, place, library)

    keys = [concatenated([piece[0][i] for piece in pieces]) for i in range(len(pieces[0][0]))]
    values = [concatenated([piece[1][i] for piece in pieces]) for i in range(len(pieces[0][1]))]
    return keys, values


def one_after_another(arrays: list[Any], place: Device, library: Any) -> Any:
    """Concatenate 1-D arrays on a device."""
    lengths = [x.shape[0] for x in arrays]
    ends = list(accumulate(lengths, initial=0))
    dtype = view_of(arrays[0], "a piece").dtype
    target = place.empty((ends[-1],), dtype, library)
    parts = zip(arrays, ends, ends[1:], strict=False)
    copy_all([(place, cut(target, 0, start, end), x) for x, start, end in parts], are_ours=True)
    return target


# --- Peer access: kernels read or write arrays in the memory of other GPUs, without copies.


def can_read(places: Sequence[Device], arrays: Sequence[Any]) -> bool:
    """Return whether all devices are GPUs with peer access to all arrays."""
    if any(place.number == CPU for place in places):
        return False
    from gpualgo._driver import peers

    readers, views = {place.number for place in places}, [view_of(x, "an array") for x in arrays]
    return all(peers.can_read(readers, memory_of(view)) for view in views if 0 not in view.shape)


def stream_at(place: Device, library: Any) -> Any:
    """Return the stream on which a library's calls on a device run; None for the CPU."""
    return None if place.number == CPU else int(gpu_library(library).stream(place.number))


@contextmanager
def reading(places: Sequence[Device], arrays: Sequence[Any], library: Any) -> Iterator[None]:
    """Let work queued within the context read arrays from given devices, or write them.

    It runs after the work now queued on the arrays' streams, and before work that these queue after
    the context. Nothing else may write to the arrays.
    """
    from gpualgo._driver import peers

    streams = [(place.number, stream_at(place, library)) for place in set(places)]
    memories = [memory_of(view_of(x, "an array")) for x in arrays]
    with peers.reading([(stream, memory) for stream in set(streams) for memory in memories]):
        yield


@contextmanager
def local_stream(place: Device, arrays: Sequence[Any], library: Any) -> Iterator[int | None]:
    """Let a call read arrays on their own device, and yield its stream= argument.

    Arrays with streams of their own are read on `stream_at`, ordered with these streams: results of
    sharded calls are used there. For other libraries calls choose the stream themselves.
    """
    if place.number == CPU or not library.has_producers:
        yield None
        return
    stream = stream_at(place, library)
    others = [x for x in arrays if memory_of(view_of(x, "a shard")).stream != stream]
    with reading([place] if others else [], others, library):
        yield stream


def peer_view(x: Any, place: Device, library: Any) -> Any:
    """Return an array of another GPU as an array of `place`, for use on `stream_at` only.

    So all arrays of a call belong to one library.
    """
    if place.number == CPU:
        return x
    view, stream = view_of(x, "an array"), stream_at(place, library)
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, place.number, stream, view.readonly, x
    )
