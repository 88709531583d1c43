"""Devices that hold shards: GPUs, or the CPU under several names."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import NumPy, View, is_contiguous, view_of
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU


class Device(NamedTuple):
    """A device that holds shards: a GPU, or the CPU as one of several simulated devices."""

    number: int
    name: str

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        """Return a new array on this device."""
        try:
            if self.number == CPU:
                return np.empty(shape, dtype)
            return gpu_library(library).empty(shape, dtype, self.number, None)
        except MemoryError as error:
            raise MemoryError(f"no memory for a shard on {self.name}: {error}") from error

    def running(self) -> AbstractContextManager[None]:
        """Return a context in which calls run on this device."""
        if self.number == CPU:
            return default_device.Fixed(CPU, "its shards are on the CPU")
        return contextlib.nullcontext()

    def moved(self, x: Any, library: Any) -> Any:
        """Return an array with x's elements on this device: x itself if it is here."""
        return to_devices([(self, x)], library)[0]

    def __repr__(self) -> str:
        return self.name


def host(index: int) -> Device:
    return Device(CPU, f"cpu:{index}")


def gpu(ordinal: int) -> Device:
    return Device(ordinal, f"cuda:{ordinal}")


def refuse_in_graph(where: str) -> None:
    """Raise RuntimeError while a graph is captured: graphs cannot repeat these copies."""
    if recording.active and recording.is_in_graph():
        raise RuntimeError(f"{where}: a graph cannot record this; call it outside of the graph")


Write = tuple[Device, Any, Any]
"""A device, a target array on it, and a source array of the same size on any device."""


def copy_all(writes: Sequence[Write], are_ours: bool = False) -> None:
    """Copy arrays into others. Copies between GPUs are queued; the host does not wait for them.

    Copies from and to host arrays are complete on return. Later writes to a source are queued after
    its copy; `are_ours` promises that there are none.
    """
    copies, deferred = [], list[tuple[Any, Any]]()
    for device, target, source in writes:
        if 0 in tuple(target.shape):
            continue
        if device.number == CPU:
            target[...] = on_host(source).reshape(target.shape)
            continue
        into, view = view_of(target, "an array"), view_of(source, "an array")
        if not is_contiguous(into):
            temp = into.library.empty(into.shape, into.dtype, device.number, None)
            deferred.append((target, temp))
            into = view_of(temp, "an array")
        if view.device == CPU:
            _upload(into, view.library.to_numpy(view.owner))
        else:
            whole, size = contiguous(source), view.dtype.itemsize * math.prod(view.shape)
            copies.append((memory_of(into), memory_of(view_of(whole, "an array")), size))
    if copies:
        from gpualgo._driver import peers

        peers.copy_all([peers.Copy(*copy) for copy in copies], are_ours)
    for target, temp in deferred:
        ga.copy(temp, out=target)


def to_devices(
    moves: Sequence[tuple[Device, Any]], library: Any, are_ours: bool = False
) -> list[Any]:
    """Return arrays with the same elements on given devices; arrays already there unchanged."""
    arrays, writes = [], []
    for device, x in moves:
        view = view_of(x, "an array")
        if view.device != device.number:
            target = device.empty(view.shape, view.dtype, library)
            writes.append((device, target, x))
            x = target
        arrays.append(x)
    copy_all(writes, are_ours)
    return arrays


def _upload(target: View, source: np.ndarray[Any, Any]) -> None:
    from gpualgo._driver import device, driver, staging

    stream = target.library.stream(target.device)
    with device.get(target.device).current():
        staging.upload(source, target.ptr, target.device, stream)
        driver.synchronize(stream)  # page-locked memory is read asynchronously


def gpu_library(library: Any) -> Any:
    """Return the library of new GPU arrays: the given one, else gpualgo on the default stream."""
    if library is NumPy or library is None or library.has_producers:
        from gpualgo._arrays import protocols

        return protocols.at(0)
    return library


def contiguous(x: Any) -> Any:
    """Return an array in C order without gaps: itself, or a copy on its device."""
    view = view_of(x, "an array")
    if view.device == CPU:
        return np.ascontiguousarray(view.library.to_numpy(view.owner))
    if is_contiguous(view):
        return x
    return ga.copy(x, out=view.library.empty(view.shape, view.dtype, view.device, None))


def memory_of(view: View) -> Any:
    from gpualgo._driver.peers import Memory

    return Memory(view.ptr, view.device, int(view.library.stream(view.device)), view.owner)


def on_host(x: Any) -> np.ndarray[Any, Any]:
    """Return an array as a NumPy array; waits for it."""
    return x if isinstance(x, np.ndarray) else all_on_host([x])[0]


def all_on_host(
    arrays: Sequence[Any], into: Sequence[np.ndarray[Any, Any]] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return several arrays as NumPy arrays: all copies are queued before the first wait.

    `into`: NumPy arrays to write the elements of GPU arrays to.
    """
    fetched, waiting = list[np.ndarray[Any, Any]](), list[tuple[int, int]]()
    for i, x in enumerate(arrays):
        view = view_of(np.asarray(x) if isinstance(x, np.generic) else x, "an array")
        if view.device == CPU:
            fetched.append(np.asarray(view.library.to_numpy(view.owner)))
            continue
        if not is_contiguous(view):
            view = view_of(contiguous(x), "an array")
        target = np.empty(view.shape, view.dtype) if into is None else into[i]
        if target.size:
            from gpualgo._driver import device, driver, staging

            stream = int(view.library.stream(view.device))
            with device.get(view.device).current():
                staging.download(view.ptr, target, view.device, stream)
            waiting.append((view.device, stream))
        fetched.append(target)
    for ordinal, stream in waiting:
        with device.get(ordinal).current():
            driver.synchronize(stream)
    return fetched


def parse_devices(devices: Any, where: str, is_host: bool) -> tuple[Device, ...]:
    """Return the devices that devices= names; for None all GPUs, or the CPU if there are none.

    `is_host`: the array is on the host, so a default device of "cpu" selects the CPU.
    """
    if devices is None:
        from gpualgo._driver import driver

        is_cpu = is_host and default_device.current() == CPU
        count = driver.device_count() if not is_cpu and driver.is_installed() else 0
        return tuple(map(gpu, range(count))) or (host(0),)
    names = [devices] if isinstance(devices, (str, int)) else devices
    if not isinstance(names, (list, tuple, range, np.ndarray)):  # no sets: unordered
        raise TypeError(
            f"{where}: devices must be a list such as ['cuda:0', 'cuda:1'], got {devices!r}"
        )
    parsed = tuple(_parse_device(name, where) for name in names)
    if not parsed:
        raise ValueError(f"{where}: devices is empty; name at least one")
    if len({device.number == CPU for device in parsed}) > 1:
        raise ValueError(f"{where}: devices {devices!r} mix GPUs and the CPU; name one kind only")
    return parsed


def _parse_device(device: Any, where: str) -> Device:
    if isinstance(device, str):
        match = re.fullmatch(r"cpu(?::([0-9]+))?", device)
        if match:
            return host(int(match.group(1) or 0))
        return gpu(default_device.parse(device, where, "'cuda:0', an int, or 'cpu:0'"))
    try:
        ordinal = operator.index(None if isinstance(device, bool) else device)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{where}: a device must be a name such as 'cuda:1' or the number of a GPU, got "
            f"{device!r}"
        ) from None
    if ordinal < 0:
        raise ValueError(f"{where}: device {ordinal} is negative; GPUs are counted from 0")
    return gpu(default_device.parse(f"cuda:{ordinal}", where))


# --- Move pieces of an array between devices and axes, or to one array.


def shares(length: int, count: int) -> list[int]:
    """Split a length evenly; the first shares are one longer."""
    each, remainder = divmod(length, count)
    return [each + (i < remainder) for i in range(count)]


def spread(
    pieces: Sequence[Any], axis: int, places: Sequence[Device], lengths: Sequence[int],
    new_axis: int, library: Any,
) -> list[Any]:  # fmt: skip
    """Return new pieces of an array on given devices, with given lengths along an axis."""
    begins = list(accumulate(lengths, initial=0))
    borders = [begins] * len(pieces)
    if axis == new_axis:
        extents = [piece.shape[axis] for piece in pieces]
        ends = zip(accumulate(extents, initial=0), extents, strict=False)
        borders = [[min(max(b - start, 0), n) for b in begins] for start, n in ends]
    parts = [
        [cut(x, new_axis, *own[i : i + 2]) for x, own in zip(pieces, borders, strict=True)]
        for i in range(len(places))
    ]
    return concatenated(parts, places, library, axis)


def concatenated(
    parts: Sequence[Sequence[Any]], places: Sequence[Device], library: Any, axis: int = 0,
    are_ours: bool = False,
) -> list[Any]:  # fmt: skip
    """Return the concatenation of some arrays on each device; the arrays may be on any device.

    Each device reads from the next ones first, so that they do not all read from the same one.
    """
    targets, writes = [], []
    for place, arrays in zip(places, parts, strict=True):
        extents = [x.shape[axis] for x in arrays]
        first = view_of(arrays[0], "a part")
        shape = (*first.shape[:axis], sum(extents), *first.shape[axis + 1 :])
        target = place.empty(shape, first.dtype, library)
        ends = zip(arrays, extents, accumulate(extents), strict=True)
        writes.append([(place, cut(target, axis, end - n, end), x) for x, n, end in ends])
        targets.append(target)
    steps = range(len(parts[0]))
    ordered = [row[(i + step) % len(row)] for step in steps for i, row in enumerate(writes)]
    copy_all(ordered, are_ours)
    return targets


def cut(x: Any, axis: int, start: int, end: int) -> Any:
    if start == 0 and end == x.shape[axis]:
        return x
    return x[(*(slice(None),) * axis, slice(start, end))]


def one_after_another(arrays: Sequence[Any], place: Device, library: Any) -> Any:
    """Concatenate arrays on a device, along their first axis."""
    return concatenated([arrays], [place], library, are_ours=True)[0]


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
