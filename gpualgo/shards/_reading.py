"""Peer access: kernels read or write arrays in the memory of other GPUs, without copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo.shards._devices import Place, gpu_library, memory_of


def can_read(places: Sequence[Place], arrays: Sequence[Any]) -> bool:
    """Return whether all devices are GPUs with peer access to all arrays."""
    if any(place.number == CPU for place in places):
        return False
    from gpualgo._driver import peers

    return all(
        peers.can_read(place.number, memory_of(view))
        for view in (view_of(x, "an array") for x in arrays)
        if 0 not in view.shape
        for place in {place.number: place for place in places}.values()
    )


def stream_at(place: Place, library: Any) -> Any:
    """Return the stream on which a library's calls on a device run; None for the CPU."""
    return None if place.number == CPU else int(gpu_library(library).stream(place.number))


@contextmanager
def reading(places: Sequence[Place], arrays: Sequence[Any], library: Any) -> Iterator[None]:
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
def local_stream(place: Place, arrays: Sequence[Any], library: Any) -> Iterator[int | None]:
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


def peer_view(x: Any, place: Place, library: Any) -> Any:
    """Return an array of another GPU as an array of `place`, for use on `stream_at` only.

    So all arrays of a call belong to one library.
    """
    if place.number == CPU:
        return x
    view, stream = view_of(x, "an array"), stream_at(place, library)
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, place.number, stream, view.readonly, x
    )
