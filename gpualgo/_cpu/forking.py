"""A fork waits until nothing is being compiled: numba's locks would never be free in the child."""

from __future__ import annotations

from llvmlite.binding import ffi
from numba.core import compiler_lock

from gpualgo._base import forks

for _owner in (compiler_lock.global_compiler_lock, ffi.lib._lock):
    forks.wait_for(_owner._lock)  # an RLock, which both wrap to call hooks as well


def check() -> None:
    """Raise RuntimeError in a forked child whose parent was compiling and never stopped."""
    forks.check("compiling for the CPU")
