"""Arrays of other GPUs that kernels read or write where they lie, instead of copies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo.shards._devices import Place, gpu_library, memory_of


def can_read(places: Sequence[Place], arrays: Sequence[Any]) -> bool:
    """Return whether all places are GPUs that can read, and write, all arrays."""
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
    """Return the stream that a library's calls at a place run on; of the CPU there is none."""
    return None if place.number == CPU else int(gpu_library(library).stream(place.number))


@contextmanager
def reading(places: Sequence[Place], arrays: Sequence[Any], library: Any) -> Iterator[None]:
    """Let places read arrays, which nobody else writes to, by what is queued within; or write them.

    They do so behind what the arrays' own streams have queued by now, and what these queue after
    the end comes behind that.
    """
    from gpualgo._driver import peers

    streams = [(place.number, stream_at(place, library)) for place in set(places)]
    memories = [memory_of(view_of(x, "an array")) for x in arrays]
    with peers.reading([(stream, memory) for stream in set(streams) for memory in memories]):
        yield


@contextmanager
def at_home(place: Place, arrays: Sequence[Any], library: Any) -> Iterator[int | None]:
    """Let a call read arrays that lie at its place, and give its stream=.

    Arrays that each have a stream of their own are read on `stream_at` in the order of both: what
    a sharded call makes is used there. Of other libraries that is where calls run by themselves.
    """
    if place.number == CPU or not library.has_producers:
        yield None
        return
    stream = stream_at(place, library)
    apart = [x for x in arrays if memory_of(view_of(x, "a shard")).stream != stream]
    with reading([place] if apart else [], apart, library):
        yield stream


def as_at(x: Any, place: Place, library: Any) -> Any:
    """Return an array as a place's own, which reads it where it lies, on `stream_at` alone.

    All arrays of a call are of one library so, whichever GPU's they are.
    """
    if place.number == CPU:
        return x
    view, stream = view_of(x, "an array"), stream_at(place, library)
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, place.number, stream, view.readonly, x
    )
