"""Streams, events, devices and graphs of the tests' arrays, by CuPy's names."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from emulator import captures, memory, trial, work
from emulator import streams as order
from emulator.memory import HOST


class Stream:
    """A stream; current within a ``with`` block."""

    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        use_device()
        self._is_own = not (null or ptds)
        if self._is_own:
            self.ptr = order.create(not non_blocking).handle
        else:
            self.ptr = 2 if ptds else 0
        self.device_id = 0
        self._before: list[Stream] = []

    def __del__(self) -> None:
        if self._is_own:
            order.destroy(self.ptr)

    def __enter__(self) -> Stream:
        self._before.append(current())
        _thread.stream = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _thread.stream = self._before.pop()

    def use(self) -> Stream:
        _thread.stream = self
        return self

    def synchronize(self) -> None:
        use_device()
        order.synchronize(order.find(self.ptr))
        check()

    @property
    def done(self) -> bool:
        """Whether all that it got has run."""
        use_device()
        return order.is_done(order.find(self.ptr))

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        order.record(event.event, order.find(self.ptr))
        return event

    def wait_event(self, event: Event) -> None:
        order.wait(order.find(self.ptr), event.event)

    def begin_capture(self, mode: int | None = None) -> None:
        captures.begin(order.find(self.ptr), order.RELAXED if mode is None else mode)

    def end_capture(self) -> Graph:
        return Graph(captures.end(order.find(self.ptr)))

    def is_capturing(self) -> bool:
        return captures.status(order.find(self.ptr)) != 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr


class ExternalStream(Stream):
    """A stream of somebody else."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr, self.device_id = ptr, 0
        self._is_own = False
        self._before = []


class Event:
    """What a stream had queued when it was recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.event = order.Event()

    def record(self, stream: Stream | None = None) -> None:
        (stream or current()).record(self)

    def synchronize(self) -> None:
        work.finish(self.event.work)
        check()

    @property
    def done(self) -> bool:
        return work.ask(self.event.work)


class Graph:
    """What a capture took down."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def launch(self, stream: Stream | None = None) -> None:
        order.queue_graph(order.find((stream or current()).ptr), self._graph)


class Device:
    """The one device."""

    def __init__(self, device: int | None = None) -> None:
        self.id = int(device or 0)
        if self.id:
            raise ValueError(f"the emulator has no device {self.id}")

    def __enter__(self) -> Device:
        use_device()
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def use(self) -> None:
        use_device()

    def synchronize(self) -> None:
        use_device()
        order.check_safe()
        work.finish_all()
        check()


class runtime:
    """Functions of the runtime."""

    @staticmethod
    def getDevice() -> int:
        return 0

    @staticmethod
    def getDeviceCount() -> int:
        return 1

    @staticmethod
    def memGetInfo() -> tuple[int, int]:
        return memory.num_free(), memory.TOTAL_BYTES

    @staticmethod
    def hostAlloc(size: int, flags: int) -> int:
        return memory.allocate(size, "hostAlloc", kind=HOST)

    @staticmethod
    def hostRegister(address: int, size: int, flags: int) -> None:
        memory.register(address, size)

    @staticmethod
    def hostUnregister(address: int) -> None:
        memory.free(address)


class _Thread(threading.local):
    stream: Stream | None = None


_thread = _Thread()


def current(device_id: int = -1) -> Stream:
    """Return the thread's current stream."""
    return _thread.stream or Stream.null


def use_device() -> None:
    """Let the calling thread have a context, as the runtime does by itself."""
    if not order.thread.context:
        order.thread.context = order.CONTEXT


def check() -> None:
    """Fail if a kernel has, as whoever waits for it is told."""
    trial.current.check()
    if trial.current.failures:
        raise RuntimeError(f"CUDA_ERROR_LAUNCH_FAILED: {trial.current.failures[0]}")


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)
order.thread.context = 0  # which the two have set
