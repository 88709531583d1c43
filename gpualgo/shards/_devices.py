"""Devices that hold shards: GPUs, or the CPU under several names."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._arrays.view import NumPy, View, is_contiguous, view_of
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU


class Device:
    """A device: allocates arrays and runs calls."""

    number: int
    name: str

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        """Return a new array on this device."""
        raise NotImplementedError

    def running(self) -> AbstractContextManager[None]:
        """Return a context in which calls run on this device."""
        raise NotImplementedError

    def moved(self, x: Any, library: Any) -> Any:
        """Return an array with x's elements on this device: x itself if it is here."""
        return to_devices([(self, x)], library)[0]

    def __repr__(self) -> str:
        return self.name


class Host(Device):
    """The CPU, as one of several simulated devices."""

    number = CPU

    def __init__(self, index: int) -> None:
        self.name = f"cpu:{index}"

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], library: Any) -> Any:
        try:
            return np.empty(shape, dtype)
        except MemoryError as error:
            raise MemoryError(f"no memory for a shard on {self.name}: {error}") from error

    def running(self) -> AbstractContextManager[None]:
        return default_device.fixed(CPU, "its shards are on the CPU")


class GPU(Device):
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
            copies.append(_copy(into, view_of(contiguous(source), "an array")))
    if copies:
        from gpualgo._driver import peers

        peers.copy_all(copies, are_ours)
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


def _copy(target: View, view: View) -> Any:
    from gpualgo._driver.peers import Copy

    size = view.dtype.itemsize * math.prod(view.shape)
    return Copy(memory_of(target), memory_of(view), size)


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
    (array,) = all_on_host([x])
    return array


def all_on_host(
    arrays: Sequence[Any], into: Sequence[np.ndarray[Any, Any]] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Return several arrays as NumPy arrays: all copies are queued before the first wait.

    `into`: NumPy arrays to write the elements of GPU arrays to.
    """
    fetched, waiting = list[np.ndarray[Any, Any]](), list[tuple[int, int, Any]]()
    for i, x in enumerate(arrays):
        view = view_of(np.asarray(x) if isinstance(x, np.generic) else x, "an array")
        if view.device == CPU:
            fetched.append(np.asarray(view.library.to_numpy(view.owner)))
            continue
        if not is_contiguous(view):
            view = view_of(contiguous(x), "an array")
        target = np.empty(view.shape, view.dtype) if into is None else into[i]
        if target.size:
            waiting.append((*_fetch(view, target), view))
        fetched.append(target)
    for device, stream, _ in waiting:
        _wait(device, stream)
    return fetched


def _fetch(view: View, target: np.ndarray[Any, Any]) -> tuple[int, int]:
    from gpualgo._driver import device, staging

    stream = int(view.library.stream(view.device))
    with device.get(view.device).current():
        staging.download(view.ptr, target, view.device, stream)
    return view.device, stream


def _wait(ordinal: int, stream: int) -> None:
    from gpualgo._driver import device, driver

    with device.get(ordinal).current():
        driver.synchronize(stream)


def parse_devices(devices: Any, where: str, is_host: bool) -> tuple[Device, ...]:
    """Return the devices that devices= names; for None all GPUs, or the CPU if there are none.

    `is_host`: the array is on the host, so a default device of "cpu" selects the CPU.
    """
    if devices is None:
        return _default_devices(is_host)
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


def _default_devices(is_host: bool) -> tuple[Device, ...]:
    from gpualgo._driver import driver

    if not (is_host and default_device.current() == CPU) and driver.is_installed():
        count = driver.device_count()
        if count:
            return tuple(GPU(ordinal) for ordinal in range(count))
    return (Host(0),)


def _parse_device(device: Any, where: str) -> Device:
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
