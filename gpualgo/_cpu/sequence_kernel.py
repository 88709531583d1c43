"""The kernel that runs others, one after another."""

from __future__ import annotations

from numba import types

from gpualgo._cpu.parameters import ENTRY, STEP, TABLE, TASKS
from gpualgo._cpu.pointers import call, load, pointer_to

_words = pointer_to(types.intp)


def run_all(table: int, scratch: int, first: int, last: int) -> None:
    """Run launches, all tasks of each."""
    p = _words(table)
    for k in range(first, last):
        at = STEP * k
        call(load(p, at + ENTRY), (load(p, at + TABLE), scratch, 0, load(p, at + TASKS)))
