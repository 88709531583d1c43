"""The kernels that estimate the cost of a merge sort, and order rows that are one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_kernels import pointer_of
from gpualgo._cpu.pointers import load, store

_BLOCK = 256  # keys that are looked at together


@rk.inline
def _comes_first(b: Any, a: Any, falls: int) -> Any:
    """Return whether b comes before a, which came earlier: NaN is last."""
    return ((b > a) if falls else (b < a)) | ((a != a) & (b == b))


def levels_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Write f(keys, stride, length, is_strided): levels of merges, MANY if too many.

    Those are two, or of short rows a quarter of all. Distances reach to a 32nd of the row: a place
    where a row turns once is then rarely seen. A Xeon, 10^6 float64 by one thread, the time of
    digits in NumPy's: in order 4.5, falling 29, ten rows that rise 2.6, 64 of them 0.9, a hundredth
    of the keys swapped 0.9, in no order 0.2.
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
            place = (np.int64(state >> np.uint64(40)) * (length - 2 * gap)) >> 24
            at = keys + step * place
            a, b = load(as_key(at), 0), load(as_key(at + step * gap), 0)
            c = load(as_key(at + 2 * step * gap), 0)
            turns += _comes_first(b, a, falls) != _comes_first(c, b, falls)
        return 400 * turns * scales // (samples * min(8, scales))

    return kernel


def one_run_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Write f(table, 0, first, last): the stable order of rows that rise or strictly fall.

    The table holds the address of the keys, their strides from row to row and within a row, the
    length of a row, the address of the order, and its stride from row to row. Returns how many rows
    it has ordered: those before the first row that is more than one run.
    """
    as_key = pointer_of(kind, size)

    def kernel(table: int, _: int, first: int, last: int) -> int:
        p = rk.words(table)
        keys, row_stride, stride, length = load(p, 0), load(p, 1), load(p, 2), load(p, 3)
        for row in range(first, last):
            at = keys + row * row_stride
            order = rk.words(load(p, 4) + row * load(p, 5))
            is_falling = length > 1 and _comes_first(
                load(as_key(at + stride), 0), load(as_key(at), 0), falls
            )
            for start in range(0, length - 1, _BLOCK):
                count, turns = min(_BLOCK, length - 1 - start), 0
                if stride == size:  # known to the compiler, which makes vectors of it
                    key = as_key(at + start * size)
                    for i in range(count):
                        turns += _comes_first(load(key, i + 1), load(key, i), falls) != is_falling
                else:
                    for i in range(start, start + count):
                        a, b = (
                            load(as_key(at + i * stride), 0),
                            load(as_key(at + (i + 1) * stride), 0),
                        )
                        turns += _comes_first(b, a, falls) != is_falling
                if turns:
                    return row - first
            for i in range(length):
                store(order, i, length - 1 - i if is_falling else i)
        return last - first

    return kernel
