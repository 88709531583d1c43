"""Checks that numba can compile.

Forks wait for compilations: the child cannot free numba's locks.
"""

from __future__ import annotations

from numba.core import compiler_lock

from gpualgo._base import forks
from gpualgo._cpu import llvm
from gpualgo._operators.numpy_rules.errors import check_numba

forks.wait_for(compiler_lock.global_compiler_lock._lock, around=llvm.LOCK)  # an RLock, too


def check() -> None:
    """Raise CompileError if numba is disabled, RuntimeError in a child forked while compiling."""
    check_numba()
    forks.check("compiling for the CPU")
