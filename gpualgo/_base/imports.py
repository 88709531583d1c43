"""A lock around imports of packages that cannot be imported by two threads at once.

While one thread imports cuda.core or numba, an import in another thread does not wait and
returns an incomplete package.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpualgo._base import forks
from gpualgo._base.memo import paused

PATIENCE = 60.0  # seconds to wait for somebody else's import
_IN_PARTS = ("numba", "llvmlite")  # packages that find their modules in sys.modules, and fail
_PACKAGES = ("cuda.core", "cuda.bindings", "cupy", "llvmlite", "numba")

_lock = forks.Lock()
_registering = forks.Lock()
_is_registered = _is_loading = False


@contextmanager
def loading() -> Iterator[None]:
    """Let only this thread import such packages in a block."""
    global _is_loading, _is_registered
    forks.check("loading a package")
    with _registering:
        if not _is_registered:  # forks wait for the lock before any thread holds it
            forks.wait_for(_lock)
            _is_registered = True
    with _lock, paused():
        if _is_loading:  # this thread: a package that loads another
            yield
            return
        _wait_for_others()
        _forget_parts()
        try:
            _is_loading = True
            yield
        finally:
            _is_loading = False


def _forget_parts() -> None:
    """Forget the modules of a package whose import was interrupted: it is imported as a whole."""
    for package in _IN_PARTS:
        if package not in sys.modules:
            for name in [name for name in sys.modules if name.startswith(package + ".")]:
                del sys.modules[name]


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
