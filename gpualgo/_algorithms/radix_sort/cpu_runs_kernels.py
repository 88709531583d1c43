"""Kernels that estimate the cost of a merge sort, and order rows that are one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_kernels import pointer_of
from gpualgo._cpu.pointers import load, store

_BLOCK = 256  # keys examined per step


@rk.inline
def _sorts_before(b: Any, a: Any, falls: int) -> Any:
    """Return whether b sorts before a, which is earlier in the input; NaN is last."""
    return ((b > a) if falls else (b < a)) | ((a != a) & (b == b))


def levels_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Return f(keys, stride, length, is_strided): cost of a merge sort; from MANY on, digits are
    faster.

    The limit is two levels, or for short rows a quarter of all. Distances reach up to a 32nd of the
    row, so a single turning point is rarely sampled. Time of the digit sort relative to NumPy's (a
    Xeon, one thread, 10^6 float64): sorted 4.5, falling 29, ten rising rows 2.6, 64 rising rows
    0.9, a hundredth of the keys swapped 0.9, random 0.2.
    """
    as_key = pointer_of(kind, size)

    def kernel(keys: int, stride: int, length: int, is_strided: int) -> int:
        step = stride if is_strided else size
        samples, scales = min(256, max(32, length >> 7)), 1
        while 32 << scales < length:
            scales += 1
        if length < 3:
            return 0
        turns, state = 0, np.uint64(1)
        for i in range(samples):
            gap = 1 << i % scales
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            index = (np.int64(state >> np.uint64(40)) * (length - 2 * gap)) >> 24
            start = keys + step * index
            a, b = load(as_key(start), 0), load(as_key(start + step * gap), 0)
            c = load(as_key(start + 2 * step * gap), 0)
            turns += _sorts_before(b, a, falls) != _sorts_before(c, b, falls)
        return 400 * turns * scales // (samples * min(8, scales))

    return kernel


def one_run_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Return f(table, 0, first, last): writes the stable order of rows that rise or strictly fall.

    The table holds the address of the keys, their row stride and item stride, the row length, the
    address of the order and its row stride. The function returns how many rows it ordered: those
    before the first row that is not a single run.
    """
    as_key = pointer_of(kind, size)

    def kernel(table: int, _: int, first: int, last: int) -> int:
        p = rk.words(table)
        keys, row_stride, stride, length = load(p, 0), load(p, 1), load(p, 2), load(p, 3)
        for row in range(first, last):
            row_start = keys + row * row_stride
            order = rk.words(load(p, 4) + row * load(p, 5))
            is_falling = length > 1 and _sorts_before(
                load(as_key(row_start + stride), 0), load(as_key(row_start), 0), falls
            )
            for start in range(0, length - 1, _BLOCK):
                count, turns = min(_BLOCK, length - 1 - start), 0
                if stride == size:  # a compile-time stride, so that the loop vectorises
                    key = as_key(row_start + start * size)
                    for i in range(count):
                        turns += _sorts_before(load(key, i + 1), load(key, i), falls) != is_falling
                else:
                    for i in range(start, start + count):
                        a, b = (
                            load(as_key(row_start + i * stride), 0),
                            load(as_key(row_start + (i + 1) * stride), 0),
                        )
                        turns += _sorts_before(b, a, falls) != is_falling
                if turns:
                    return row - first
            for i in range(length):
                store(order, i, length - 1 - i if is_falling else i)
        return last - first

    return kernel
