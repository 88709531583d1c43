"""stream= -> the integer handle of a CUDA stream, and what it has to wait for."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from gpualgo._arrays.view import View

_LAST_DEFAULT = 2  # 0 and 1: the legacy default stream, 2: the thread's


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


def _from_protocol(answer: Any, where: str) -> int:
    try:
        version, handle = answer
    except (TypeError, ValueError):
        version, handle = None, None
    if version != 0 or handle is None:
        raise TypeError(
            f"{where}: stream's __cuda_stream__ gives {answer!r}, of which only (0, handle) is "
            "understood; pass the handle"
        )
    return int(handle)


def handle_for(
    stream: Any, view: View, where: str, *others: View | None, outs: tuple[View | None, ...] = ()
) -> int | None:
    """Return the handle of stream= for device arrays, None if it was not given.

    What the work runs on first waits for the streams at home of arrays known by protocol.
    """
    from gpualgo._driver import driver

    handle = None
    if stream is not None:
        handle = stream if type(stream) is int and stream >= 0 else handle_of(stream, where)
        if handle > _LAST_DEFAULT and not driver.is_simple:
            _check_device(handle, view.device, where)
    if view.library.has_homes:
        if handle is not None and type(stream) is not int:
            handle = _Handle(handle)
            handle.stream = stream
        _join(handle, view, where, others, outs)
    return handle


class _Handle(int):
    """A handle that holds its stream: what is made on it is freed on it."""

    stream: Any


def _check_device(handle: int, device: int, where: str) -> None:
    from gpualgo._driver import driver

    api, check = driver.api(), driver.check
    with driver.current_device(device):  # which also brings back what was current
        context = check(api.cuStreamGetCtx(handle), "cuStreamGetCtx")
        check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        found = int(check(api.cuCtxGetDevice(), "cuCtxGetDevice"))
    if found != device:
        raise ValueError(
            f"{where}: stream= is of cuda:{found} but the arrays are on cuda:{device}; "
            "pass a stream of their device"
        )


def _join(
    handle: int | None, view: View, where: str, others: Iterable[View | None],
    outs: Iterable[View | None],
) -> None:  # fmt: skip
    home = view.library.home
    written = {out.library.home for out in outs if out is not None}
    if handle is None and written - {home}:
        raise ValueError(
            f"{where}: out is used on stream {max(written - {home}):#x} and the input on "
            f"{home:#x}; pass stream= to say where to run"
        )
    read = {other.library.home for other in others if other is not None}
    for earlier in {home} | read | written:
        wait_for(home if handle is None else handle, earlier, view.device)


def wait_for(stream: int, earlier: int, device: int) -> None:
    """Let a stream wait for what another has queued so far; the host does not wait.

    A stream that is being captured does not: its graph runs later, on a stream of its launch.
    """
    if stream == earlier or (stream < _LAST_DEFAULT and earlier < _LAST_DEFAULT):
        return
    from gpualgo._driver import driver

    with driver.current_device(device):
        if driver.is_capturing(stream) and not driver.is_capturing(earlier):
            return
        api, check = driver.api(), driver.check
        event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        try:
            check(api.cuEventRecord(event, earlier), "cuEventRecord")
            check(api.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent")
        finally:
            check(api.cuEventDestroy(event), "cuEventDestroy")


def keep(handle: int, view: View, *others: Any, outs: tuple[View | None, ...] = ()) -> None:
    """See to it that arrays (themselves, or their views) outlive what is queued on the stream.

    What is done next with outputs, where they are at home, comes after it.
    """
    from gpualgo._arrays.device_array import Memory
    from gpualgo._driver import driver, workspace

    for out in outs:
        if out is not None and out.library.home != handle and not driver.is_capturing(handle):
            wait_for(out.library.home, handle, out.device)
    foreign = []
    for x in (view, *others):
        array = x.owner if isinstance(x, View) else x
        owner = getattr(array, "owner", None)
        if type(owner) is Memory:
            owner.use_on(int(handle))
        elif isinstance(x, View) and x.library.home != handle:
            foreign.append(array)
    if foreign:
        workspace.keep_until_done(int(handle), view.device, *foreign)
