"""A GPU's primary context, which CuPy and torch use as well, and what is done within it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._driver import driver
from gpualgo._driver.driver import check


class Context:
    """The primary context of a GPU, retained when it is first used."""

    __slots__ = ("_handle", "_lock", "ordinal")

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._handle: Any = None
        self._lock = threading.Lock()

    @property
    def handle(self) -> Any:
        """The driver's handle."""
        if self._handle is None:
            with self._lock:
                if self._handle is None:
                    retained = driver.api().cuDevicePrimaryCtxRetain(self.ordinal)
                    self._handle = check(retained, "cuDevicePrimaryCtxRetain")
        return self._handle

    def enter(self) -> Any:
        """Make it current; return the one before, for `leave`: None if it was so already."""
        driver.check_process()
        api, handle = driver.api(), self.handle
        before = check(api.cuCtxGetCurrent(), "cuCtxGetCurrent")
        if int(before) == int(handle):
            return None
        check(api.cuCtxSetCurrent(handle), "cuCtxSetCurrent")
        return before

    def current(self) -> Current:
        """Make it current within a ``with`` block."""
        return Current(self)

    @contextmanager
    def outside_capture(self) -> Iterator[None]:
        """Do here what a capture would forbid, and what is no part of it."""
        with Current(self), driver.relaxed():
            yield

    def ensure(self) -> None:
        """Adopt the calling thread unless it has a context already."""
        if not int(check(driver.api().cuCtxGetCurrent(), "cuCtxGetCurrent")):
            self.adopt_thread()

    def adopt_thread(self) -> None:
        """Make it the context of a thread that CUDA has not seen yet."""
        driver.check_process()
        check(driver.api().cuCtxSetCurrent(self.handle), "cuCtxSetCurrent")

    def stream_id(self, stream: int) -> int:
        """Return a stream's identity, which no later stream shares even if it gets its handle."""
        api = driver.api()
        result = api.cuStreamGetId(stream)
        if result[0]:
            if result[0] == api.CUresult.CUDA_ERROR_INVALID_CONTEXT:
                self.adopt_thread()
                result = api.cuStreamGetId(stream)
            check(result, "cuStreamGetId")
        return int(result[1])


class Current:
    """A with block in which a context is current; the one before comes back."""

    __slots__ = ("_before", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = self._context.enter()

    def __exit__(self, *exc: object) -> None:
        leave(self._before)


def leave(before: Any) -> None:
    """Bring back the context that was current before `Context.enter`."""
    if before is not None:
        driver.api().cuCtxSetCurrent(before)
