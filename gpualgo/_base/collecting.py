"""Python's garbage collector, at rest while a compiler is loaded or runs.

numba makes some hundred thousand objects that stay. The collector looks through all of them, and
all of the program's own, again and again: a sixth of what loading and a first operator take.
"""

from __future__ import annotations

import gc
import threading

from gpualgo._base import forks


class _Pause:
    """A context without collections; threads may be in it together, and enter it again."""

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
            self._depth = max(0, self._depth - 1)  # 0 in a child that was forked in here
            if not self._depth and self._was_enabled:
                gc.enable()

    def end(self) -> None:
        """Collect again in a forked child, whose parent may have been in here in other threads."""
        if self._depth and self._was_enabled:
            gc.enable()
        self._lock, self._depth = threading.Lock(), 0


paused = _Pause()
forks.in_child(paused.end)
