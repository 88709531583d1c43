"""Where shards lie: GPUs, or the CPU under several names, by the same few methods."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._arrays.view import NumPy, View, is_contiguous, view_of
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU


class Place:
    """A device: memory, and calls that run there."""

    number: int
    name: str

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        """Return a new array."""
        raise NotImplementedError

    def running(self) -> AbstractContextManager[None]:
        """Let calls with arrays of this place run here."""
        raise NotImplementedError

    def moved(self, x: Any, library: Any) -> Any:
        """Return an array here with the elements of another: that itself where it lies here."""
        return moved_all([(self, x)], library)[0]

    def __repr__(self) -> str:
        return self.name


class Host(Place):
    """The CPU, as one of several devices of which each is the CPU."""

    number = CPU

    def __init__(self, index: int) -> None:
        self.name = f"cpu:{index}"

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        try:
            return np.empty(shape, dtype)
        except MemoryError as error:
            raise MemoryError(f"no memory for a shard on {self.name}: {error}") from error

    def running(self) -> AbstractContextManager[None]:
        return default_device.fixed(CPU, "its shards lie on the CPU")


class GPU(Place):
    """A GPU."""

    def __init__(self, ordinal: int) -> None:
        self.number, self.name = ordinal, f"cuda:{ordinal}"

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        try:
            return gpu_library(library).empty(shape, dtype, self.number, None)
        except MemoryError as error:
            raise MemoryError(f"no memory for a shard on {self.name}: {error}") from error

    def running(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


def refuse_in_graph(where: str) -> None:
    """Raise RuntimeError in a graph: what is copied here would not be copied again."""
    if recording.active and recording.is_in_graph():
        raise RuntimeError(
            f"{where}: graphs are of one device, and would not repeat this; call it outside of the "
            "graph"
        )


Write = tuple[Place, Any, Any]
"""A place, an array there, and one of as many elements, wherever it is."""


def write_all(writes: Sequence[Write], are_ours: bool = False) -> None:
    """Copy arrays into others; nobody waits for what goes between GPUs, nor do these copies.

    Arrays of the host are read before this returns, and written as well. Whoever writes to a source
    afterwards does so behind its copy; `are_ours`: nobody does.
    """
    copies, late = [], list[tuple[Any, Any]]()
    for place, target, source in writes:
        if 0 in tuple(target.shape):
            continue
        if place.number == CPU:
            target[...] = on_host(source).reshape(target.shape)
            continue
        into, view = view_of(target, "an array"), view_of(source, "an array")
        if not is_contiguous(into):
            beside = into.library.empty(into.shape, into.dtype, place.number, None)
            late.append((target, beside))
            into = view_of(beside, "an array")
        if view.device == CPU:
            _upload(into, view.library.to_numpy(view.owner))
        else:
            copies.append(_copy(into, view_of(dense(source), "an array")))
    if copies:
        from gpualgo._driver import peers

        peers.copy_all(copies, are_ours)
    for target, beside in late:
        ga.copy(beside, out=target)


def moved_all(
    moves: Sequence[tuple[Place, Any]], library: Any, are_ours: bool = False
) -> list[Any]:
    """Return arrays at places, of the elements of others: those themselves that lie there."""
    found, writes = [], []
    for place, x in moves:
        view = view_of(x, "an array")
        if view.device != place.number:
            made = place.empty(view.shape, view.dtype, library)
            writes.append((place, made, x))
            x = made
        found.append(x)
    write_all(writes, are_ours)
    return found


@contextmanager
def copying(groups: Sequence[Sequence[tuple[Any, Any]]]) -> Iterator[Callable[[int], None]]:
    """Copy arrays of GPUs into others, both without gaps, group by group and beside what else runs.

    Gives what has to be called, with a group's number, before its targets are used; nobody waits.
    """
    pairs = [[pair for pair in group if 0 not in tuple(pair[0].shape)] for group in groups]
    if not any(pairs):
        yield lambda number: None
        return
    from gpualgo._driver import peers

    copies = [
        [_copy(view_of(into, "an array"), view_of(x, "an array")) for into, x in group]
        for group in pairs
    ]
    with peers.copying(copies) as wait:
        yield wait


def _copy(into: View, view: View) -> Any:
    from gpualgo._driver.peers import Copy

    size = view.dtype.itemsize * math.prod(view.shape)
    return Copy(memory_of(into), memory_of(view), size)


def _upload(into: View, source: np.ndarray[Any, Any]) -> None:
    from gpualgo._driver import device, driver, staging

    stream = into.library.stream(into.device)
    with device.get(into.device).current():
        staging.upload(source, into.ptr, into.device, stream)
        driver.synchronize(stream)  # page-locked memory is read when the stream comes to it


def gpu_library(library: Any) -> Any:
    """Return the library of results on a GPU: a known one, or gpualgo's on the default stream."""
    if library is NumPy or library is None or library.has_producers:
        from gpualgo._arrays import protocols

        return protocols.at(0)
    return library


def dense(x: Any) -> Any:
    """Return an array in C order without gaps: itself, or a copy beside it."""
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
    """Return an array's elements as NumPy's, once they are there."""
    (found,) = all_on_host([x])
    return found


def all_on_host(
    arrays: Sequence[Any], into: Sequence[np.ndarray[Any, Any]] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return several arrays' elements as NumPy's: all copies are queued, then waited for.

    `into`: where to write those of arrays on GPUs.
    """
    found, waiting = list[np.ndarray[Any, Any]](), list[tuple[int, int, Any]]()
    for number, x in enumerate(arrays):
        view = view_of(np.asarray(x) if isinstance(x, np.generic) else x, "an array")
        if view.device == CPU:
            found.append(np.asarray(view.library.to_numpy(view.owner)))
            continue
        if not is_contiguous(view):
            view = view_of(dense(x), "an array")
        target = np.empty(view.shape, view.dtype) if into is None else into[number]
        if target.size:
            waiting.append((*_fetch(view, target), view))
        found.append(target)
    for device, stream, _ in waiting:
        _wait(device, stream)
    return found


def _fetch(view: View, target: np.ndarray[Any, Any]) -> tuple[int, int]:
    from gpualgo._driver import device, staging

    stream = int(view.library.stream(view.device))
    with device.get(view.device).current():
        staging.download(view.ptr, target, view.device, stream)
    return view.device, stream


def _wait(number: int, stream: int) -> None:
    from gpualgo._driver import device, driver

    with device.get(number).current():
        driver.synchronize(stream)


def places_of(devices: Any, where: str, is_host: bool) -> tuple[Place, ...]:
    """Return the places that devices= names; None: all GPUs, or the CPU if there is none.

    `is_host`: of an array of the host, for which the default device counts.
    """
    if devices is None:
        return _all_places(is_host)
    given = [devices] if isinstance(devices, (str, int)) else devices
    if not isinstance(given, (list, tuple, range, np.ndarray)):  # a set has no order
        raise TypeError(
            f"{where}: devices must be a list such as ['cuda:0', 'cuda:1'], got {devices!r}"
        )
    found = tuple(_place(device, where) for device in given)
    if not found:
        raise ValueError(f"{where}: devices is empty; name at least one")
    if len({place.number == CPU for place in found}) > 1:
        raise ValueError(f"{where}: devices {devices!r} are GPUs and the CPU; name either")
    return found


def _all_places(is_host: bool) -> tuple[Place, ...]:
    from gpualgo._driver import driver

    if not (is_host and default_device.current() == CPU) and driver.is_installed():
        count = driver.device_count()
        if count:
            return tuple(GPU(ordinal) for ordinal in range(count))
    return (Host(0),)


def _place(device: Any, where: str) -> Place:
    if isinstance(device, str):
        match = re.fullmatch(r"cpu(?::([0-9]+))?", device)
        if match:
            return Host(int(match.group(1) or 0))
        return GPU(default_device.parse(device, where, "'cuda:0', an int, or 'cpu:0'"))
    try:
        ordinal = operator.index(None if isinstance(device, bool) else device)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{where}: a device must be a name such as 'cuda:1' or the number of a GPU, got "
            f"{device!r}"
        ) from None
    if ordinal < 0:
        raise ValueError(f"{where}: device {ordinal} is negative; GPUs are counted from 0")
    return GPU(default_device.parse(f"cuda:{ordinal}", where))
