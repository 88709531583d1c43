"""Kernels around NumPy's sort: merge runs, restore zeros and NaNs, reverse rows.

NumPy orders numbers, not their bits: zeros of either sign, and NaNs, may change order or lose their
bits. All other equal keys have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_parameters import (
    BLOCK,
    LANES,
    LENGTH,
    PIECES,
    RUNS,
    SORTED,
    SOURCE,
)
from gpualgo._cpu.elements import storage
from gpualgo._cpu.packing import copy_bytes, load, pointer_to, store

_KINDS = {"i": "int", "u": "uint", "f": "float"}


def pointer_of(kind: str, size: int) -> Any:
    return pointer_to(storage(np.dtype(f"{_KINDS[kind]}{8 * size}")))


@rk.inline
def _sorts_before(b: Any, a: Any) -> Any:
    """Return whether b sorts before a, which is earlier in the input; NaN is last."""
    return (b < a) | (a != a)


@rk.inline
def _sorts_before_descending(b: Any, a: Any) -> Any:
    """Return the same for descending order; NaN is last here, too."""
    return (b > a) | (a != a)


def ordered_kernel(kind: str, size: int) -> Callable[..., None]:
    """Return f(keys, answer, length, is_turned): whether a row is sorted (descending if
    `is_turned`).

    It stops at the first block that is not, so unsorted keys cost almost nothing.
    """
    as_key = pointer_of(kind, size)

    def kernel(keys: int, answer: int, length: int, is_turned: int) -> None:
        key, falls = as_key(keys), False
        i = 1
        while i < length and not falls:
            stop = min(length, i + BLOCK)
            if is_turned:
                for j in range(i, stop):
                    falls |= _sorts_before_descending(load(key, j), load(key, j - 1))
            else:
                for j in range(i, stop):
                    falls |= _sorts_before(load(key, j), load(key, j - 1))
            i = stop
        store(rk.as_intp(answer), 0, 0 if falls else 1)

    return kernel


def merge_kernel(kind: str, size: int) -> Callable[..., None]:
    """Return the kernel that merges neighbouring runs of SOURCE into SORTED, piece by piece.

    Run i begins at LENGTH · i // RUNS; each pair of runs is merged in PIECES pieces. A piece is
    split into lanes, which are merged in an interleaved loop because each step of a lane depends on
    its previous one.
    """
    as_key = pointer_of(kind, size)

    @rk.inline
    def split(a: int, na: int, b: int, nb: int, index: int) -> int:
        """Return how many items of a are among the first `index` merged items."""
        low, high = max(0, index - nb), min(index, na)
        while low < high:
            middle = (low + high) // 2
            if _sorts_before(load(as_key(b), index - middle - 1), load(as_key(a), middle)):
                high = middle
            else:
                low = middle + 1
        return low

    @rk.inline
    def finish(a: int, a_stop: int, b: int, b_stop: int, out: int) -> None:
        """Merge the remaining items between the addresses."""
        while a < a_stop and b < b_stop:
            x, y = load(as_key(a), 0), load(as_key(b), 0)
            takes_b = _sorts_before(y, x)
            store(as_key(out), 0, y if takes_b else x)
            b += size if takes_b else 0
            a += 0 if takes_b else size
            out += size
        copy_bytes(out, a, max(0, a_stop - a))
        copy_bytes(out + max(0, a_stop - a), b, max(0, b_stop - b))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = rk.as_intp(table)
        source, target, length = load(p, SOURCE), load(p, SORTED), load(p, LENGTH)
        runs, pieces = load(p, RUNS), load(p, PIECES)
        lanes = rk.as_intp(scratch)  # per lane: the addresses in a, in b, and of the output
        for task in range(first, last):
            run, piece = task // pieces * 2, task % pieces
            start, middle = length * run // runs, length * (run + 1) // runs
            stop = length * (run + 2) // runs
            a, b, na, nb = source + start * size, source + middle * size, middle - start, 0
            nb = stop - middle
            low, high = (stop - start) * piece // pieces, (stop - start) * (piece + 1) // pieces
            for lane in range(LANES + 1):
                index = low + (high - low) * lane // LANES
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
                    t0, t1 = _sorts_before(y0, x0), _sorts_before(y1, x1)
                    t2, t3 = _sorts_before(y2, x2), _sorts_before(y3, x3)
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


def _restore(size: int) -> Any:
    """Return mend(keys, row, length, is_turned), which restores zeros and NaNs of a sorted row.

    It returns how many keys are not NaN. If the row will be reversed, zeros are written in reverse.
    """
    as_key, as_bits = pointer_of("f", size), pointer_to(rk.word(size))
    negative_zero = np.uint64(1 << 8 * size - 1)

    @rk.inline
    def count(row: int, length: int, is_above: int) -> int:
        """Count keys below zero (0), zeros included (1), or all numbers except NaN (2)."""
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            key = load(as_key(row), middle)
            is_before = key < 0.0
            if is_above == 1:
                is_before = key <= 0.0
            elif is_above == 2:
                is_before = key == key
            if is_before:
                low = middle + 1
            else:
                high = middle
        return low

    @rk.inline
    def has_negative_zero(keys: int, length: int) -> Any:
        i, has_any = 0, False
        while i < length and not has_any:
            stop = min(length, i + BLOCK)
            for j in range(i, stop):
                has_any |= load(as_bits(keys), j) == negative_zero
            i = stop
        return has_any

    @rk.inline
    def gather(
        keys: int, length: int, row: int, index: int, todo: int, step: int, wants_nan: bool
    ) -> None:
        """Write all zeros (or NaNs) of keys to row from `index` in steps; there are `todo` of them.

        There may be fewer if another thread has written to keys since the row was copied.
        """
        source, target, i = as_key(keys), as_key(row), 0
        while todo > 0 and i < length:
            stop, has_any = min(length, i + BLOCK), False
            for j in range(i, stop):
                key = load(source, j)
                has_any |= (key != key) if wants_nan else (key == 0.0)
            if has_any:
                for j in range(i, stop):
                    key = load(source, j)
                    store(target, index, key)  # overwritten unless wanted
                    is_wanted = (key != key) if wants_nan else (key == 0.0)
                    index += step if is_wanted else 0
                    todo -= 1 if is_wanted else 0
                    if todo == 0:
                        break
            i = stop

    @rk.inline
    def restore(keys: int, row: int, length: int, is_turned: bool) -> Any:
        zero, above, nan = count(row, length, 0), count(row, length, 1), count(row, length, 2)
        # A single zero has kept its sign. Without negative zeros all zeros are equal.
        if above - zero > 1 and has_negative_zero(keys, length):
            if is_turned:
                gather(keys, length, row, above - 1, above - zero, -1, False)
            else:
                gather(keys, length, row, zero, above - zero, 1, False)
        gather(keys, length, row, nan, length - nan, 1, True)
        return nan

    return restore


def mend_kernel(size: int) -> Callable[..., None]:
    """Return f(keys, row, length, numbers), which restores zeros and NaNs of a sorted row.

    numbers: 0, or the address that receives how many keys are not NaN and will be reversed.
    """
    restore = _restore(size)

    def kernel(keys: int, row: int, length: int, numbers: int) -> None:
        nan = restore(keys, row, length, numbers != 0)
        if numbers:
            store(rk.as_intp(numbers), 0, nan)

    return kernel


def mend_rows_kernel(size: int, is_turned: int) -> Callable[..., None]:
    """Return f(keys, rows, length, count): the same for adjacent rows, reversed if `is_turned`."""
    restore, as_bits = _restore(size), pointer_to(rk.word(size))

    def kernel(keys: int, rows: int, length: int, count: int) -> None:
        for i in range(count):
            offset = i * length * size
            nan = restore(keys + offset, rows + offset, length, is_turned != 0)
            if is_turned:
                row = as_bits(rows + offset)
                for j in range(nan // 2):
                    first, last = load(row, j), load(row, nan - 1 - j)
                    store(row, j, last)
                    store(row, nan - 1 - j, first)

    return kernel


def turn_kernel(size: int) -> Callable[..., None]:
    """Return the kernel that reverses the first LENGTH keys of a row, in PIECES pieces."""
    as_key = pointer_to(rk.word(size))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = rk.as_intp(table)
        length, pieces = load(p, LENGTH), load(p, PIECES)
        for task in range(first, last):
            row, half = as_key(load(p, SORTED)), length // 2
            for i in range(half * task // pieces, half * (task + 1) // pieces):
                key = load(row, i)
                store(row, i, load(row, length - 1 - i))
                store(row, length - 1 - i, key)

    return kernel


# --- Kernels that convert 16-bit floats to int16 codes and back, around NumPy's integer sort.
#
# Codes have the order of the sort. The zeros are -1 and 0; NaNs have the largest code, which
# no other key has. With SIMD, NumPy sorts int16 in two thirds of the time of float16; it has
# no SIMD sort of bfloat16.

_as_bits, _as_code = pointer_to(types.uint16), pointer_to(types.int16)
_to_uint16, _sign, _magnitude = types.uint16, np.uint16(15), np.uint16(0x7FFF)
_NAN, _LOW_ZERO, _ABOVE_ZERO = 0x7FFF, -1, 1
_ZERO = np.uint16(0)


@rk.inline
def _swap_sign_order(bits: Any) -> Any:
    """Convert sign-magnitude bits to two's complement order, or back."""
    return _to_uint16(bits ^ (_to_uint16(_ZERO - (bits >> _sign)) & _magnitude))


def encode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Return f(keys, codes, length, _), which writes the codes of keys."""
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)

    def kernel(keys: int, codes: int, length: int, _unused: int) -> None:
        source, target = _as_bits(keys), _as_bits(codes)
        for i in range(length):
            bits = load(source, i)
            code = _to_uint16(_swap_sign_order(bits) ^ flip)
            store(target, i, _magnitude if _to_uint16(bits & _magnitude) > limit else code)

    return kernel


def decode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Return f(keys, rows, length, count): decodes sorted codes, restoring zeros and NaNs from
    keys.

    Rows are contiguous; a count of 0 means one row.
    """
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)
    negative_zero = np.int16(0 if is_descending else -1)

    @rk.inline
    def count(row: int, length: int, end: int) -> int:
        """Return how many codes are less than `end`."""
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if load(_as_code(row), middle) < end:
                low = middle + 1
            else:
                high = middle
        return low

    @rk.inline
    def is_wanted(bits: Any, wants_nan: bool) -> Any:
        magnitude = _to_uint16(bits & _magnitude)
        return magnitude > limit if wants_nan else magnitude == _ZERO

    @rk.inline
    def gather(keys: int, length: int, row: int, index: int, todo: int, wants_nan: bool) -> None:
        """Write all zeros (or NaNs) of keys to row[index:]; there are `todo` of them.

        There may be fewer if another thread has written to keys since the row was copied.
        """
        source, target, i = _as_bits(keys), _as_bits(row), 0
        while todo > 0 and i < length:
            stop, has_any = min(length, i + BLOCK), False
            for j in range(i, stop):
                has_any |= is_wanted(load(source, j), wants_nan)
            if has_any:
                for j in range(i, stop):
                    bits = load(source, j)
                    if is_wanted(bits, wants_nan):
                        store(target, index, bits)
                        index += 1
                        todo -= 1
                        if todo == 0:
                            break
            i = stop

    @rk.inline
    def decode(keys: int, row: int, length: int) -> None:
        codes, bits, has_negative, zero, above = _as_code(row), _as_bits(row), False, 0, 0
        nan = length
        if length and load(codes, length - 1) == _NAN:
            nan = count(row, length, _NAN)
        for i in range(length):
            has_negative |= load(codes, i) == negative_zero
        if has_negative:
            zero, above = count(row, length, _LOW_ZERO), count(row, length, _ABOVE_ZERO)
        for i in range(length):
            store(bits, i, _swap_sign_order(_to_uint16(load(bits, i) ^ flip)))
        if above - zero > 1:  # a single zero keeps its sign
            gather(keys, length, row, zero, above - zero, False)
        gather(keys, length, row, nan, length - nan, True)

    def kernel(keys: int, rows: int, length: int, count: int) -> None:
        for i in range(max(1, count)):
            decode(keys + 2 * length * i, rows + 2 * length * i, length)

    return kernel
