"""A GPU's primary context, shared with CuPy and torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._driver import driver
from gpualgo._driver.driver import check


class Context:
    """The primary context of a GPU, retained at first use."""

    __slots__ = ("_handle", "_lock", "ordinal")

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._handle: Any = None
        self._lock = threading.Lock()

    @property
    def handle(self) -> Any:
        if self._handle is None:
            with self._lock:
                if self._handle is None:
                    retained = driver.api().cuDevicePrimaryCtxRetain(self.ordinal)
                    self._handle = check(retained, "cuDevicePrimaryCtxRetain")
        return self._handle

    def enter(self) -> Any:
        """Make the context current; return the previous one, or None if it was current already."""
        driver.check_process()
        api, handle = driver.api(), self.handle
        previous = check(api.cuCtxGetCurrent(), "cuCtxGetCurrent")
        if int(previous) == int(handle):
            return None
        check(api.cuCtxSetCurrent(handle), "cuCtxSetCurrent")
        return previous

    def current(self) -> Current:
        """Return a `with` block in which the context is current."""
        return Current(self)

    @contextmanager
    def outside_capture(self) -> Iterator[None]:
        """Make the context current and exempt this thread's work from any stream capture."""
        with Current(self), driver.relaxed():
            yield

    def ensure(self) -> None:
        """Make the context current if the thread has none."""
        if not int(check(driver.api().cuCtxGetCurrent(), "cuCtxGetCurrent")):
            self.adopt_thread()

    def adopt_thread(self) -> None:
        """Make the context current in a thread that has none yet."""
        driver.check_process()
        check(driver.api().cuCtxSetCurrent(self.handle), "cuCtxSetCurrent")

    def stream_id(self, stream: int) -> int:
        """Return a stream's unique id, which is never reused, unlike its handle."""
        api = driver.api()
        result = api.cuStreamGetId(stream)
        if result[0]:
            if result[0] == api.CUresult.CUDA_ERROR_INVALID_CONTEXT:
                self.adopt_thread()
                result = api.cuStreamGetId(stream)
            check(result, "cuStreamGetId")
        return int(result[1])


class Current:
    """A `with` block in which a context is current; restores the previous one."""

    __slots__ = ("_before", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = self._context.enter()

    def __exit__(self, *exc: object) -> None:
        leave(self._before)


def leave(before: Any) -> None:
    """Restore the context that `Context.enter` returned."""
    if before is not None:
        driver.api().cuCtxSetCurrent(before)
