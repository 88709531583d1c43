"""The kernel that estimates what a merge sort of a row would cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_kernels import pointer_of
from gpualgo._cpu.pointers import load


@rk.inline
def _comes_first(b: Any, a: Any, falls: int) -> Any:
    """Return whether b comes before a, which came earlier: NaN is last."""
    return ((b > a) if falls else (b < a)) | ((a != a) & (b == b))


def levels_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Write f(keys, stride, length, is_strided): levels of merges, MANY if too many.

    Those are two, or of short rows a quarter of all. Distances reach to a 32nd of the row: a place
    where a row turns once is then rarely seen. A Xeon, 10^6 float64 by one thread, ms by digits /
    NumPy: in order 25 / 3, ten rows that rise 25 / 14, 64 of them 25 / 32, a hundredth of the keys
    swapped 25 / 24, in no order 25 / 130.
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
