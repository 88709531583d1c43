"""Kernel that runs other kernels in sequence."""

from __future__ import annotations

from numba import types

from gpualgo._cpu.parameters import ENTRY, STEP, TABLE, TASKS
from gpualgo._cpu.pointers import call, load, pointer_to

_words = pointer_to(types.intp)


def run_all(table: int, scratch: int, first: int, last: int) -> None:
    """Run all tasks of each launch."""
    p = _words(table)
    for k in range(first, last):
        i = STEP * k
        call(load(p, i + ENTRY), (load(p, i + TABLE), scratch, 0, load(p, i + TASKS)))
