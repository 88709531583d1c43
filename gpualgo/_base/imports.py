"""A lock around imports of packages that cannot be imported by two threads at once.

While one thread imports cuda.core or numba.cuda, an import in another thread does not wait and
returns an incomplete package.
"""

from __future__ import annotations

import sys
import threading
import time

from gpualgo._base import forks
from gpualgo._base.memo import paused

PATIENCE = 60.0  # seconds to wait for somebody else's import
_PACKAGES = ("cuda.core", "cuda.bindings", "cupy", "llvmlite", "numba", "numba.cuda")


class _Loading:
    """A reentrant context manager in which only this thread imports such packages."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._registering = threading.RLock()
        self._is_registered = False

    def __enter__(self) -> None:
        forks.check("loading a package")
        if not self._is_registered:
            self._register()
        self._lock.acquire()
        paused.__enter__()
        self._depth += 1
        try:
            if self._depth == 1:
                _wait_for_others()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        paused.__exit__()
        self._lock.release()

    def _register(self) -> None:
        """Make forks wait for the lock, before any thread holds it."""
        with self._registering:
            if not self._is_registered:
                forks.wait_for(self._lock)
                self._is_registered = True

    def renew(self) -> None:
        """Replace, in a forked child, locks that a thread of the parent may have held."""
        self._registering = threading.RLock()
        if not self._is_registered:
            self._lock = threading.RLock()


def _wait_for_others() -> None:
    """Wait until no thread imports one of the packages outside of this context."""
    end = time.monotonic() + PATIENCE
    while name := _package_being_imported():
        if time.monotonic() > end:
            raise RuntimeError(
                f"{name} is still being imported by another thread, which may have been lost in a "
                "fork; import it before"
            )
        time.sleep(0.001)


def _package_being_imported() -> str | None:
    for name in _PACKAGES:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            return name
    return None


loading = _Loading()
forks.in_child(loading.renew)
