"""Arrays of other GPUs that kernels read where they lie, instead of copies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo.shards._devices import Place, gpu_library, memory_of


def can_read(places: Sequence[Place], arrays: Sequence[Any]) -> bool:
    """Return whether all places are GPUs that can read all arrays."""
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
    """Let places read arrays, which nobody writes to, by what is queued within."""
    from gpualgo._driver import peers

    streams = [(place.number, stream_at(place, library)) for place in set(places)]
    memories = [memory_of(view_of(x, "an array")) for x in arrays]
    with peers.reading([(stream, memory) for stream in set(streams) for memory in memories]):
        yield


def as_at(x: Any, place: Place, library: Any) -> Any:
    """Return an array as a place's own, which reads it where it lies, on `stream_at` alone.

    All arrays of a call are of one library so, whichever GPU's they are.
    """
    if place.number == CPU:
        return x
    view, stream = view_of(x, "an array"), stream_at(place, library)
    own = view.device == place.number
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, place.number, stream, not own, x
    )
