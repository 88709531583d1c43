"""Compiled kernels in memory: one build per key, whichever threads ask for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from gpualgo._base.memo import Memo
from gpualgo._cpu import forking

Kernel = Callable[[int, int, int, int], None]
"""kernel(table, scratch, first, last): addresses of arguments and scratch, a range of tasks."""

Compiled = TypeVar("Compiled")

_kernels: Memo[Any] = Memo(1024)
_entries: Memo[Any] = Memo(256)  # numba never frees code, so that an address outlives its entry


def get_kernel(key: Hashable, build: Callable[[], Callable[..., None]]) -> Kernel:
    """Return the compiled kernel of key; build() writes its Python source function."""
    return get_compiled(key, lambda: compile_kernel(build()))


def get_compiled(key: Hashable, compile_all: Callable[[], Compiled]) -> Compiled:
    """Return what compile_all() makes for key, made once."""
    found: Compiled = _kernels.made(key, compile_all)
    return found


def get_entry(key: Hashable, write: Callable[[], Callable[..., None]]) -> int:
    """Return the address of key's C function of words; write() makes its Python source."""
    return int(_entries.made(key, lambda: _compile_entry(write())).address)


def _compile_entry(function: Callable[..., None]) -> Any:
    forking.check()
    signature = types.void(*[types.intp] * function.__code__.co_argcount)
    return numba.cfunc(signature, nopython=True, error_model="numpy")(function)


def compile_kernel(function: Callable[..., None]) -> Kernel:
    """Compile a kernel that holds no GIL and raises no ZeroDivisionError."""
    forking.check()
    kernel: Kernel = numba.njit("void(intp,intp,intp,intp)", nogil=True, error_model="numpy")(
        function
    )
    return kernel


def scratch(num_bytes: int) -> np.ndarray[Any, Any]:
    """Return scratch memory for one range of tasks, on a cache line's boundary."""
    memory = np.empty(num_bytes + 64, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    return memory[start : start + num_bytes]
