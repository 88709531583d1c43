"""CUDA graphs through cuda.core: recording, temporary storage, launches."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from gpualgo._arrays import ordering
from gpualgo._arrays.view import View
from gpualgo._base import log, recording
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, pools, streams
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline.problem import Request
from gpualgo._pipeline.run import run

_MIN_CHUNK_BYTES = 1 << 20


class Arena:
    """A graph's temporary storage. Its calls run one by one and all reuse it from the front."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._chunks: list[tuple[int, int]] = []  # address and size of each
        self._chunk = self._used = 0  # position of the current call
        weakref.finalize(self, _free_chunks, self._chunks, device).atexit = False

    def restart(self) -> None:
        """Let the next call reuse the storage of the last one."""
        self._chunk = self._used = 0

    def take(self, size: int, device: int) -> int:
        """Return the address of `size` bytes for the current call."""
        size = pools.aligned(size)
        while self._chunk < len(self._chunks):
            address, capacity = self._chunks[self._chunk]
            if self._used + size <= capacity:
                self._used += size
                return address + self._used - size
            self._chunk, self._used = self._chunk + 1, 0
        capacity = max(size, _MIN_CHUNK_BYTES)
        with gpu.get(self.device).outside_capture():
            # cuMemAlloc, not stream-ordered: the graph may be launched on any stream.
            result = driver.api().cuMemAlloc(capacity)
            address = int(driver.check(result, f"allocating {capacity} bytes for a graph"))
        self._chunks.append((address, capacity))
        self._used = size
        return address


def _free_chunks(chunks: list[tuple[int, int]], device: int) -> None:
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        for address, _ in chunks:
            driver.api().cuMemFree(address)


class Recording:
    """A context manager that records calls by stream capture."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.arena = Arena(device)
        self.held: list[Any] = [self.arena]
        self.builder: Any = None
        self._stream = 0

    def __enter__(self) -> Recording:
        with gpu.get(self.device).current():
            device = driver.core().Device(self.device)
            device.set_current()
            self.builder = device.create_graph_builder()
            # Relaxed mode allows this thread to allocate on other streams meanwhile.
            self.builder.begin_building(mode="relaxed")
            self._stream = int(self.builder.stream.handle)
        return self

    def record(self, request: Request) -> tuple[Any, Any]:
        """Record a call; return its result twice: it is also the out= for recording it again."""
        self.arena.restart()
        problem, views, op, init, out, _ = request
        with recording.capturing(self.held), pools.supplied(self.arena):
            result = run(problem, views, op, init, out, self._stream)
        return result, result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with gpu.get(self.device).current():
            if kind is None:
                self.builder.end_building()
                return
            with contextlib.suppress(Exception):  # the first error is more informative
                self.builder.end_building()
            with contextlib.suppress(Exception):
                self.builder.close()

    def finish(self, calls: Sequence[Any], views: Sequence[View]) -> Executable:
        return Executable(self, calls, views)


class Executable:
    """An instantiated graph; it holds all memory that it uses."""

    def __init__(self, recorded: Recording, calls: Sequence[Any], views: Sequence[View]) -> None:
        self._device = recorded.device
        self._set_views(views)
        with gpu.get(self._device).current():
            self._graph = recorded.builder.complete()
            self._ran = driver.check(driver.api().cuEventCreate(2), "cuEventCreate")
        # The graph, arguments and results, and the operators' and kernels' own memory.
        self._held: list[Any] = [self._graph, recorded.builder, list(calls), recorded.held]
        weakref.finalize(self, _release, self._ran, self._held).atexit = False

    def _set_views(self, views: Sequence[View]) -> None:
        self._has_host_arrays = any(view.device == CPU for view in views)
        libraries = dict.fromkeys(view.library for view in views if view.device != CPU)
        self._library: Any = next(iter(libraries), None)
        is_joined = len(libraries) > 1 or any(library.has_producers for library in libraries)
        self._libraries = tuple(libraries) if is_joined else ()  # launches join their streams

    @log.each(lambda *_: "graph")
    def launch(self, stream: Any) -> None:
        """Queue the graph on a stream, by default that of the first device array's library.

        If arrays are of several libraries or known by protocol, the launch waits for the streams of
        all of them, and they wait for it.
        """
        if stream is not None:
            handle = streams.handle_of(stream, "Graph.launch")
        else:
            handle = 0 if self._library is None else self._library.stream(self._device)
        joined = [library.stream(self._device) for library in self._libraries]
        ordering.wait_for_streams(handle, joined, self._device, "Graph.launch")
        with gpu.get(self._device).current():
            self._graph.launch(pools.core_stream(handle))
            for later in joined if driver.is_free(handle) else ():
                streams.wait_for(later, handle, self._device)
            if driver.is_capturing(handle):  # captured into another graph, whose end is unknown
                recording.keep_alive(self._held)
                return
            driver.check(driver.api().cuEventRecord(self._ran, handle), "cuEventRecord")
            if stream is None and self._has_host_arrays:
                driver.synchronize(handle)

    def replace(self, recorded: Recording, calls: Sequence[Any], views: Sequence[View]) -> None:
        """Take over another recording of the same calls; running launches are not disturbed."""
        self._set_views(views)
        with gpu.get(self._device).current():
            # The old arrays are released once no launch uses them.
            driver.check(driver.api().cuEventSynchronize(self._ran), "cuEventSynchronize")
            try:
                self._graph.update(recorded.builder)
            except Exception:  # the update is refused if kernels differ, as for another alignment
                self._graph = recorded.builder.complete()
        self._held[:] = [self._graph, recorded.builder, list(calls), recorded.held]


def _release(ran: Any, held: list[Any]) -> None:
    """Keep what a graph has held until its last launch has finished."""
    with contextlib.suppress(RuntimeError):  # a forked child
        streams.keep_until_event(id(held), ran, held)
