"""Converts stream= to the integer handle of a CUDA stream, and orders streams."""

from __future__ import annotations

import operator
import weakref
from contextlib import suppress
from typing import Any

from gpualgo._base import forks
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.driver import check

LAST_DEFAULT = 2  # 0 and 1: the legacy default stream, 2: the per-thread default stream


def handle_of(stream: Any, where: str) -> int:
    """Return the handle of an int, a `__cuda_stream__` object or a library's stream."""
    handle = _find_handle(stream, where)
    if handle < 0:
        raise ValueError(f"{where}: stream handle {handle} is negative; pass a stream object")
    return handle


def _find_handle(stream: Any, where: str) -> int:
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return _from_protocol(protocol() if callable(protocol) else protocol, where)
    cls = type(stream)
    if any("Stream" in base.__name__ or "_stream" in base.__name__ for base in cls.__mro__):
        for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, numba
            value = getattr(stream, name, None)
            if value is not None:
                return int(getattr(value, "value", value) or 0)
    if cls.__module__ == "ctypes" and hasattr(stream, "value"):
        return int(stream.value or 0)
    if cls.__name__ in ("CUstream", "cudaStream_t"):  # cuda.bindings
        return int(stream)
    try:
        number: Any = None if isinstance(stream, bool) else stream
        return operator.index(number)
    except TypeError:
        raise TypeError(
            f"{where}: stream must be a CUDA stream or its integer handle, got {cls.__name__}; "
            "pass what __cuda_stream__ is defined for"
        ) from None


def _from_protocol(result: Any, where: str) -> int:
    try:
        version, handle = result
    except (TypeError, ValueError):
        version, handle = None, None
    if version != 0 or handle is None:
        raise TypeError(
            f"{where}: stream's __cuda_stream__ gives {result!r}, and only (0, handle) is "
            "supported; pass the handle"
        )
    return int(handle)


def check_device(handle: int, device: int, where: str) -> None:
    api = driver.api()
    with gpu.get(device).current():
        previous = check(api.cuCtxGetCurrent(), "cuCtxGetCurrent")
        context = check(api.cuStreamGetCtx(handle), "cuStreamGetCtx")
        check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        try:
            stream_device = int(check(api.cuCtxGetDevice(), "cuCtxGetDevice"))
        finally:
            check(api.cuCtxSetCurrent(previous), "cuCtxSetCurrent")
    if stream_device != device:
        raise ValueError(
            f"{where}: stream= is of cuda:{stream_device} but the arrays are on cuda:{device}; "
            "pass a stream of their device"
        )


def wait_for(stream: int, earlier: int, device: int) -> None:
    """Let a stream wait for the work queued so far on another; the host does not wait.

    A captured stream does not wait for one that is not captured: its graph runs later, on another
    stream.
    """
    if stream == earlier or (stream < LAST_DEFAULT and earlier < LAST_DEFAULT):
        return
    with gpu.get(device).current():
        if driver.is_capturing(stream) and not driver.is_capturing(earlier):
            return
        event = driver.new_event()
        try:
            driver.record(earlier, event)
            check(driver.api().cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent")
        finally:
            check(driver.api().cuEventDestroy(event), "cuEventDestroy")


# --- Lifetime of device memory: results of no library, and objects that a stream still uses.


def allocate_array(size: int, stream: int, device: int) -> int:
    """Return memory for a result, usable on a stream.

    The memory may outlive the stream and the supplier of temporary storage.
    """
    gpu_device = gpu.get(device)
    array_stream = gpu_device.array_stream
    with gpu_device.outside_capture():
        address = gpu_device.pool.allocate(size, array_stream)
        if driver.is_capturing(stream):  # captured work must not wait for work outside the capture
            driver.synchronize(array_stream)
        else:
            wait_for(stream, array_stream, device)
    return address


def release(address: int, device: int, events: dict[int, Any]) -> None:
    """Free a result's memory after the events of its uses on each stream.

    Also waits for the legacy default stream, on which most other libraries work.
    """
    with suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        gpu_device, api = gpu.get(device), driver.api()
        array_stream = gpu_device.array_stream
        if driver.is_free(0):
            wait_for(array_stream, 0, device)
        for event in events.values():
            check(api.cuStreamWaitEvent(array_stream, event, 0), "cuStreamWaitEvent")
            check(api.cuEventDestroy(event), "cuEventDestroy")
        gpu_device.pool.free(address, array_stream)


_in_use: dict[Any, list[tuple[Any, Any]]] = {}  # by stream, oldest first
_in_use_lock = forks.Lock()  # reentrant: a finalizer may run while it is held


def keep_until_done(stream: int, device: int, *objects: Any) -> None:
    """Keep objects alive until the stream's queued work has run.

    During a capture the graph keeps them instead.
    """
    if driver.is_capturing(stream):
        return
    with gpu.get(device).current():
        event = driver.record(stream, driver.new_event())
    keep_until_event((device, stream), event, objects)


def keep_until_event(key: Any, event: Any, objects: Any) -> None:
    """Keep objects alive until an event, then destroy it; events of one key complete in order."""
    api = driver.api()
    finished: list[Any] = []  # released outside the lock
    with _in_use_lock, driver.relaxed():  # querying an event would invalidate captures
        _in_use.setdefault(key, []).append((event, objects))
        for other, entries in list(_in_use.items()):
            while entries and not api.cuEventQuery(entries[0][0])[0]:
                finished.append(entries.pop(0))
            if not entries:
                _in_use.pop(other, None)
    for done, _ in finished:
        check(api.cuEventDestroy(done), "cuEventDestroy")


class Memory:
    """Device memory that is freed once it has no references and the GPU has finished using it."""

    __slots__ = ("__weakref__", "_events", "device", "stream")

    def __init__(self, stream: int, device: int) -> None:
        self.stream = stream  # kept: the handle may own its stream
        self.device = device
        self._events: dict[int, Any] = {}  # after the last use on each stream, by stream id

    def take(self, size: int) -> int:
        """Allocate `size` bytes, first used on the stream; return the address."""
        address = allocate_array(size, int(self.stream), self.device)
        free = weakref.finalize(self, release, address, self.device, self._events)
        free.atexit = False
        return address

    def use_on(self, stream: int) -> None:
        """Record that the work queued on a stream so far uses the memory."""
        if driver.is_capturing(stream):  # the graph keeps its arrays
            return
        gpu_device = gpu.get(self.device)
        with gpu_device.current():
            identity = gpu_device.stream_id(stream)
            event = self._events.get(identity)
            if event is None:
                event = self._events.setdefault(identity, driver.new_event())
            driver.record(stream, event)
