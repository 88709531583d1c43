"""Copies of memory by the threads that stand by: what travels to a GPU and back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from gpualgo._base import threads
from gpualgo._cpu import team
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.memory import Memory

LEAST_BYTES = 256 << 10  # worth several threads
PIECE_BYTES = 64 << 10
BYTE_SECONDS = 2e-10  # of one thread, which decides by how many threads
TARGET, SOURCE, SIZE, PIECE = range(4)


def copy(target: int, source: int, size: int) -> None:
    """Copy memory that does not overlap."""
    if size >= LEAST_BYTES and (most := threads.num_threads()) > 1:
        leader = team.current()
        if leader is not None:
            kernel = _kernel()
            table = Memory(32)
            words = table.words
            words[TARGET], words[SOURCE], words[SIZE], words[PIECE] = (
                target, source, size, PIECE_BYTES,
            )  # fmt: skip
            tasks = -(-size // PIECE_BYTES)
            code = kernel.loaded.address  # type: ignore[attr-defined]
            if leader.run(code, table.address, 0, tasks, size * BYTE_SECONDS, most):
                return
    ctypes.memmove(target, source, size)


_made: list[Kernel] = []


def _kernel() -> Kernel:
    if not _made:
        _made.append(get_kernel(("copy memory", PIECE_BYTES), _write))
    return _made[0]


def _write() -> Callable[..., None]:
    from numba import types

    from gpualgo._cpu.pointers import copy_bytes, load, pointer_to

    words = pointer_to(types.intp)

    def copied(table: int, scratch: int, first: int, last: int) -> None:
        p = words(table)
        start, end = first * load(p, PIECE), min(last * load(p, PIECE), load(p, SIZE))
        copy_bytes(load(p, TARGET) + start, load(p, SOURCE) + start, end - start)

    return copied
