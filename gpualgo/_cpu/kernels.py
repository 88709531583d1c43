"""Compiled kernels in memory: one build per key, whichever threads ask for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numba
import numpy as np

_MAX_KERNELS = 1024

Kernel = Callable[[int, int, int, int], None]
"""kernel(table, scratch, first, last): addresses of arguments and scratch, a range of tasks."""

Compiled = TypeVar("Compiled")

_kernels: dict[Hashable, Any] = {}
_lock = threading.RLock()


def get_kernel(key: Hashable, build: Callable[[], Callable[..., None]]) -> Kernel:
    """Return the compiled kernel of key; build() writes its Python source function."""
    return get_compiled(key, lambda: compile_kernel(build()))


def get_compiled(key: Hashable, compile_all: Callable[[], Compiled]) -> Compiled:
    """Return what compile_all() makes for key, made once."""
    found: Compiled | None = _kernels.get(key)
    if found is not None:
        return found
    with _lock:
        found = _kernels.get(key)
        if found is None:
            found = compile_all()
            while len(_kernels) >= _MAX_KERNELS:
                del _kernels[next(iter(_kernels))]
            _kernels[key] = found
    return found


def compile_kernel(function: Callable[..., None]) -> Kernel:
    """Compile a kernel that holds no GIL and raises no ZeroDivisionError."""
    kernel: Kernel = numba.njit("void(intp,intp,intp,intp)", nogil=True, error_model="numpy")(
        function
    )
    return kernel


def scratch(num_bytes: int) -> np.ndarray[Any, Any]:
    """Return scratch memory for one range of tasks, on a cache line's boundary."""
    memory = np.empty(num_bytes + 64, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    return memory[start : start + num_bytes]


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
