"""Kernels around NumPy's sorts: merge runs, restore zeros and NaNs, count runs.

NumPy orders numbers, not their bits: zeros of either sign, and NaNs, may change order or lose their
bits. All other equal keys have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_kernels as digits
from gpualgo._algorithms.radix_sort import digits as at
from gpualgo._cpu.packing import copy_bytes, inline, load, pointer_to, storage, store

_KINDS = {"i": "int", "u": "uint", "f": "float"}


def pointer_of(kind: str, size: int) -> Any:
    return pointer_to(storage(np.dtype(f"{_KINDS[kind]}{8 * size}")))


@inline
def _sorts_before(b: Any, a: Any, falls: int) -> Any:
    """Return whether b sorts before a, which is earlier in the input; NaN is last."""
    return ((b > a) if falls else (b < a)) | ((a != a) & (b == b))


@inline
def _merges_before(b: Any, a: Any) -> Any:
    """Return the same for a merge in ascending order, in which the order of NaNs is free."""
    return (b < a) | (a != a)


def ordered_kernel(kind: str, size: int, falls: int) -> Callable[[int, int, int, int], int]:
    """Return f(keys, 0, length, 0): 1 if a key sorts before its left neighbour, else 0.

    It stops at the first block that has one, so unsorted keys cost almost nothing.
    """
    as_key = pointer_of(kind, size)

    def kernel(keys: int, _: int, length: int, _unused: int) -> int:
        key, i = as_key(keys), 1
        while i < length:
            stop, is_unordered = min(length, i + at.BLOCK), False
            for j in range(i, stop):
                is_unordered |= _sorts_before(load(key, j), load(key, j - 1), falls)
            if is_unordered:
                return 1
            i = stop
        return 0

    return kernel


def merge_kernel(kind: str, size: int) -> Callable[..., None]:
    """Return the kernel that merges neighbouring runs of SOURCE into SORTED, piece by piece.

    Run i begins at LENGTH · i // RUNS; each pair of runs is merged in PIECES pieces. A piece is
    split into lanes, which are merged in an interleaved loop because each step of a lane depends on
    its previous one.
    """
    as_key = pointer_of(kind, size)

    @inline
    def split(a: int, na: int, b: int, nb: int, index: int) -> int:
        """Return how many items of a are among the first `index` merged items."""
        low, high = max(0, index - nb), min(index, na)
        while low < high:
            middle = (low + high) // 2
            if _merges_before(load(as_key(b), index - middle - 1), load(as_key(a), middle)):
                high = middle
            else:
                low = middle + 1
        return low

    @inline
    def finish(a: int, a_stop: int, b: int, b_stop: int, out: int) -> None:
        while a < a_stop and b < b_stop:
            x, y = load(as_key(a), 0), load(as_key(b), 0)
            takes_b = _merges_before(y, x)
            store(as_key(out), 0, y if takes_b else x)
            b += size if takes_b else 0
            a += 0 if takes_b else size
            out += size
        copy_bytes(out, a, max(0, a_stop - a))
        copy_bytes(out + max(0, a_stop - a), b, max(0, b_stop - b))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = digits.as_intp(table)
        source, target, length = load(p, at.SOURCE), load(p, at.SORTED), load(p, at.NUM_KEYS)
        runs, pieces = load(p, at.RUNS), load(p, at.PIECES)
        lanes = digits.as_intp(scratch)  # per lane: the addresses in a, in b, and of the output
        for task in range(first, last):
            run, piece = task // pieces * 2, task % pieces
            start, middle = length * run // runs, length * (run + 1) // runs
            stop = length * (run + 2) // runs
            a, b, na, nb = source + start * size, source + middle * size, middle - start, 0
            nb = stop - middle
            low, high = (stop - start) * piece // pieces, (stop - start) * (piece + 1) // pieces
            for lane in range(at.LANES + 1):
                index = low + (high - low) * lane // at.LANES
                i = split(a, na, b, nb, index)
                store(lanes, 3 * lane, a + i * size)
                store(lanes, 3 * lane + 1, b + (index - i) * size)
                store(lanes, 3 * lane + 2, target + (start + index) * size)
            a0, b0, out0 = load(lanes, 0), load(lanes, 1), load(lanes, 2)
            a1, b1, out1 = load(lanes, 3), load(lanes, 4), load(lanes, 5)
            a2, b2, out2 = load(lanes, 6), load(lanes, 7), load(lanes, 8)
            a3, b3, out3 = load(lanes, 9), load(lanes, 10), load(lanes, 11)
            a_end, b_end = load(lanes, 12), load(lanes, 13)
            a1_start, a2_start, a3_start = a1, a2, a3
            b1_start, b2_start, b3_start = b1, b2, b3
            while True:
                num_bytes = min(
                    min(min(a1_start - a0, b1_start - b0), min(a2_start - a1, b2_start - b1)),
                    min(min(a3_start - a2, b3_start - b2), min(a_end - a3, b_end - b3)),
                )
                if num_bytes < 16 * size:
                    break
                for _ in range(num_bytes // size):
                    x0, y0 = load(as_key(a0), 0), load(as_key(b0), 0)
                    x1, y1 = load(as_key(a1), 0), load(as_key(b1), 0)
                    x2, y2 = load(as_key(a2), 0), load(as_key(b2), 0)
                    x3, y3 = load(as_key(a3), 0), load(as_key(b3), 0)
                    t0, t1 = _merges_before(y0, x0), _merges_before(y1, x1)
                    t2, t3 = _merges_before(y2, x2), _merges_before(y3, x3)
                    store(as_key(out0), 0, y0 if t0 else x0)
                    store(as_key(out1), 0, y1 if t1 else x1)
                    store(as_key(out2), 0, y2 if t2 else x2)
                    store(as_key(out3), 0, y3 if t3 else x3)
                    b0, a0, out0 = b0 + size * t0, a0 + size * (1 - t0), out0 + size
                    b1, a1, out1 = b1 + size * t1, a1 + size * (1 - t1), out1 + size
                    b2, a2, out2 = b2 + size * t2, a2 + size * (1 - t2), out2 + size
                    b3, a3, out3 = b3 + size * t3, a3 + size * (1 - t3), out3 + size
            finish(a0, a1_start, b0, b1_start, out0)
            finish(a1, a2_start, b1, b2_start, out1)
            finish(a2, a3_start, b2, b3_start, out2)
            finish(a3, a_end, b3, b_end, out3)

    return kernel


def mend_kernel(size: int, falls: int) -> Callable[..., None]:
    """Return the kernel that restores zeros and NaNs of sorted rows; a task is a row.

    Its table: the addresses of adjacent rows of keys and of the sorted rows, and a row's length.
    """
    as_key, as_bits = pointer_of("f", size), pointer_to(digits.word(size))
    negative_zero = np.uint64(1 << 8 * size - 1)

    @inline
    def count_before(row: int, length: int, with_zeros: bool, with_numbers: bool) -> int:
        """Return how many keys sort before zeros, and how many with zeros or all numbers."""
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            key = load(as_key(row), middle)
            is_before = key > 0.0 if falls else key < 0.0
            if is_before or (with_zeros and key == 0.0) or (with_numbers and key == key):
                low = middle + 1
            else:
                high = middle
        return low

    @inline
    def has_negative_zero(keys: int, length: int) -> Any:
        i, has_any = 0, False
        while i < length and not has_any:
            stop = min(length, i + at.BLOCK)
            for j in range(i, stop):
                has_any |= load(as_bits(keys), j) == negative_zero
            i = stop
        return has_any

    @inline
    def gather(keys: int, length: int, row: int, index: int, todo: int, wants_nan: bool) -> None:
        """Write all zeros (or NaNs) of keys to row[index:]; there are `todo` of them.

        There may be fewer if another thread has written to keys since the row was copied.
        """
        source, target, i = as_key(keys), as_key(row), 0
        while todo > 0 and i < length:
            stop, has_any = min(length, i + at.BLOCK), False
            for j in range(i, stop):
                key = load(source, j)
                has_any |= (key != key) if wants_nan else (key == 0.0)
            if has_any:
                for j in range(i, stop):
                    key = load(source, j)
                    store(target, index, key)  # overwritten unless wanted
                    is_wanted = (key != key) if wants_nan else (key == 0.0)
                    index += 1 if is_wanted else 0
                    todo -= 1 if is_wanted else 0
                    if todo == 0:
                        break
            i = stop

    def kernel(table: int, _: int, first: int, last: int) -> None:
        p = digits.as_intp(table)
        keys, rows, length = load(p, 0), load(p, 1), load(p, 2)
        for i in range(first, last):
            source, row = keys + i * length * size, rows + i * length * size
            zero = count_before(row, length, False, False)
            above = count_before(row, length, True, False)
            nan = count_before(row, length, True, True)
            # A single zero has kept its sign. Without negative zeros all zeros are equal.
            if above - zero > 1 and has_negative_zero(source, length):
                gather(source, length, row, zero, above - zero, False)
            gather(source, length, row, nan, length - nan, True)

    return kernel


# --- The kernel that estimates the cost of a merge sort.


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
