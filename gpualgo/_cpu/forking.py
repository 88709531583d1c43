"""A fork waits until nothing is being compiled: numba's locks would never be free in the child."""

from __future__ import annotations

from numba.core import compiler_lock

from gpualgo._base import forks
from gpualgo._cpu import llvm

forks.wait_for(compiler_lock.global_compiler_lock._lock, around=llvm.LOCK)  # an RLock, too


def check() -> None:
    """Raise RuntimeError in a forked child whose parent was compiling and never stopped."""
    forks.check("compiling for the CPU")
