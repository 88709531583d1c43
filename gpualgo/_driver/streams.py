"""Converts stream= to the integer handle of a CUDA stream, and orders streams."""

from __future__ import annotations

import operator
from typing import Any

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
        api = driver.api()
        event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        try:
            check(api.cuEventRecord(event, earlier), "cuEventRecord")
            check(api.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent")
        finally:
            check(api.cuEventDestroy(event), "cuEventDestroy")
