"""Pauses Python's garbage collector while a compiler is loaded or runs.

numba creates some hundred thousand long-lived objects. Repeated collections, which scan all of
them, would take a sixth of the time of loading numba and compiling a first operator.
"""

from __future__ import annotations

import gc
import threading

from gpualgo._base import forks


class _Pause:
    """A reentrant context manager that pauses collection, shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._was_enabled = gc.isenabled()
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth = max(0, self._depth - 1)  # already 0 in a child forked inside the block
            if not self._depth and self._was_enabled:
                gc.enable()

    def end(self) -> None:
        """Resume collection in a forked child: threads of its parent may have paused it."""
        if self._depth and self._was_enabled:
            gc.enable()
        self._lock, self._depth = threading.Lock(), 0


paused = _Pause()
forks.in_child(paused.end)
