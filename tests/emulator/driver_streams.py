"""Calls of the emulated driver: streams, events and captures."""

from __future__ import annotations

import itertools
from typing import Any

from emulator import captures, work
from emulator import streams as order
from emulator.calls import call
from emulator.codes import INVALID_HANDLE, NOT_READY, Failed
from emulator.streams import Event

_NON_BLOCKING = 1
_MODES = ("GLOBAL", "THREAD_LOCAL", "RELAXED")


class _Flags:
    CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING = 0, _NON_BLOCKING


class _CaptureModes:
    CU_STREAM_CAPTURE_MODE_GLOBAL = order.GLOBAL
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = order.THREAD_LOCAL
    CU_STREAM_CAPTURE_MODE_RELAXED = order.RELAXED


class StreamCalls:
    """What the driver answers about streams and events."""

    CUstream_flags = _Flags
    CUstreamCaptureMode = _CaptureModes

    def __init__(self) -> None:
        self._events: dict[int, Event] = {}
        self._event_handles = itertools.count(0xE000, 0x10)

    @call(1)
    def cuStreamCreate(self, flags: int) -> int:
        order.need_context()
        return order.create(not int(flags) & _NON_BLOCKING).handle

    @call()
    def cuStreamDestroy(self, stream: int) -> None:
        order.destroy(stream)

    @call(1)
    def cuStreamGetCtx(self, stream: int) -> int:
        order.need_context()
        return order.find(stream).context

    @call(1)
    def cuStreamGetId(self, stream: int) -> int:
        order.need_context()
        return order.find(stream).identity

    @call(waits=True)
    def cuStreamSynchronize(self, stream: int) -> None:
        order.need_context()
        order.synchronize(order.find(stream))

    @call(waits=True)
    def cuCtxSynchronize(self) -> None:
        order.need_context()
        order.check_safe()
        work.finish_all()

    @call(waits=True)
    def cuStreamQuery(self, stream: int) -> None:
        order.need_context()
        if not order.is_done(order.find(stream)):
            raise Failed(NOT_READY)

    @call()
    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        order.need_context()
        order.wait(order.find(stream), self._event(event))

    # --- captures

    @call(1)
    def cuStreamIsCapturing(self, stream: int) -> int:
        return captures.status(order.find(stream))

    @call(1)
    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> int:
        before, order.thread.mode = order.thread.mode, int(mode)
        return before

    # --- events

    @call(1)
    def cuEventCreate(self, flags: int) -> int:
        order.need_context()
        handle = next(self._event_handles)
        self._events[handle] = Event()
        return handle

    @call()
    def cuEventDestroy(self, event: int) -> None:
        self._event(event)
        del self._events[int(event)]

    @call()
    def cuEventRecord(self, event: int, stream: int) -> None:
        order.need_context()
        order.record(self._event(event), order.find(stream))

    @call()
    def cuEventQuery(self, event: int) -> None:
        order.check_safe()
        if not work.ask(self._event(event).work):
            raise Failed(NOT_READY)

    @call(waits=True)
    def cuEventSynchronize(self, event: int) -> None:
        order.check_safe()
        work.finish(self._event(event).work)

    def _event(self, handle: Any) -> Event:
        found = self._events.get(int(handle))
        if found is None:
            raise Failed(INVALID_HANDLE)
        return found
