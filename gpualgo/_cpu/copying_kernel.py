"""Kernel that copies memory: each task copies one piece."""

from __future__ import annotations

from numba import types

from gpualgo._cpu.parameters import PIECE, SIZE_OF_ALL, SOURCE, TARGET
from gpualgo._cpu.pointers import copy_bytes, load, pointer_to

_words = pointer_to(types.intp)


def copied(table: int, scratch: int, first: int, last: int) -> None:
    """Copy the pieces of some tasks, which are contiguous, at once."""
    p = _words(table)
    start, end = first * load(p, PIECE), min(last * load(p, PIECE), load(p, SIZE_OF_ALL))
    copy_bytes(load(p, TARGET) + start, load(p, SOURCE) + start, end - start)
