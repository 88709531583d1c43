"""The kernel that puts keys of one or two bytes in order: their positions are all that is moved.

Between the passes of two digits a position travels in one word of four bytes with the digit that is
still to decide, so that no key is read again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_parameters import (
    BLOCK,
    KEY_BYTES,
    LENGTH,
    NARROW_BUCKETS,
    NARROW_CODES,
    NARROW_COUNTS,
    NARROW_PAIRS,
    NARROW_PLACES,
    PACKS,
    POSITION_BITS,
    USED,
)
from gpualgo._algorithms.radix_sort.cpu_row_kernels import locate, pack
from gpualgo._cpu.pointers import load, pointer_to, store

_as_pair = pointer_to(types.uint32)
_ZERO = np.uint64(0)
_BYTE, _HIGH = np.uint64(NARROW_BUCKETS - 1), np.uint64(8)
_ABOVE = np.uint64(POSITION_BITS)
_POSITION = np.uint64((1 << POSITION_BITS) - 1)


def _counter(is_wide: bool) -> Any:
    """Write count(table, keys, scratch): how many keys have each digit.

    It returns whether a key ever comes before the one in front of it.
    """

    @rk.inline
    def count_digits(table: int, keys: int, scratch: int) -> Any:
        p = rk.words(table)
        length, size, used = load(p, LENGTH), load(p, KEY_BYTES), load(rk.unsigned(table), USED)
        code, low = rk.unsigned(scratch + NARROW_CODES), rk.counters(scratch + NARROW_COUNTS)
        # Two counts for a digit, in turn: equal neighbours need not wait for each other.
        high = rk.counters(scratch + NARROW_COUNTS + 8 * NARROW_BUCKETS)
        for b in range(4 * NARROW_BUCKETS):
            store(low, b, np.uint32(0))
        falls, i = False, 0
        store(code, 0, _ZERO)
        while i < length:
            count = min(BLOCK, length - i)
            rk.read_codes(table, keys + size * i, count, scratch + NARROW_CODES + 8)
            for j in range(1, count + 1):
                store(code, j, load(code, j) & used)
            if not falls:
                for j in range(count):
                    falls |= load(code, j + 1) < load(code, j)
            for j in range(count):
                bits, odd = load(code, j + 1), NARROW_BUCKETS * (j & 1)
                b = types.intp(bits & _BYTE) + odd
                store(low, b, np.uint32(load(low, b) + 1))
                if is_wide:
                    c = types.intp(bits >> _HIGH) + odd
                    store(high, c, np.uint32(load(high, c) + 1))
            store(code, 0, load(code, count))
            i += count
        return falls

    return count_digits


@rk.inline
def _place(counts: int, places: int, length: int) -> Any:
    """Write where each digit starts; return whether all keys have the same."""
    count, place, total, is_one = rk.counters(counts), rk.words(places), 0, False
    for b in range(NARROW_BUCKETS):
        number = types.intp(load(count, b)) + types.intp(load(count, NARROW_BUCKETS + b))
        is_one |= number == length
        store(place, b, total)
        total += number
    return is_one


@rk.inline
def _pairs(table: int, keys: int, scratch: int, pairs: int) -> None:
    """Write positions in the order of the low digit, each with the key's high one."""
    p, used = rk.words(table), load(rk.unsigned(table), USED)
    length, size = load(p, LENGTH), load(p, KEY_BYTES)
    code, place = rk.unsigned(scratch + NARROW_CODES), rk.words(scratch + NARROW_PLACES)
    i = 0
    while i < length:
        count = min(BLOCK, length - i)
        rk.read_codes(table, keys + size * i, count, scratch + NARROW_CODES)
        for j in range(count):
            bits = load(code, j) & used
            b = types.intp(bits & _BYTE)
            at = load(place, b)
            store(place, b, at + 1)
            store(_as_pair(pairs), at, types.uint32(bits >> _HIGH << _ABOVE | np.uint64(i + j)))
        i += count


def _by_digit(value_size: int) -> Any:
    """Write by_digit(table, keys, scratch, digit, out): the order by one digit, 0 the low one."""
    make, as_value = rk.word(value_size), pointer_to(rk.word(value_size))

    @rk.inline
    def by_digit(table: int, keys: int, scratch: int, digit: int, out: int) -> None:
        p, used, shift = rk.words(table), load(rk.unsigned(table), USED), np.uint64(8 * digit)
        length, size = load(p, LENGTH), load(p, KEY_BYTES)
        code, target = rk.unsigned(scratch + NARROW_CODES), as_value(out)
        place = rk.words(scratch + NARROW_PLACES + 8 * NARROW_BUCKETS * digit)
        i = 0
        while i < length:
            count = min(BLOCK, length - i)
            rk.read_codes(table, keys + size * i, count, scratch + NARROW_CODES)
            for j in range(count):
                b = types.intp((load(code, j) & used) >> shift & _BYTE)
                at = load(place, b)
                store(place, b, at + 1)
                store(target, at, make(i + j))
            i += count

    return by_digit


def order_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Write the kernel that puts rows of keys of a size in order, in words of a size."""
    make, as_value = rk.word(value_size), pointer_to(rk.word(value_size))
    is_wide, by_digit = size > 1, _by_digit(value_size)
    count_digits = _counter(is_wide)

    @rk.inline
    def order(table: int, keys: int, scratch: int, pairs: int, out: int) -> None:
        length, target = load(rk.words(table), LENGTH), as_value(out)
        falls = count_digits(table, keys, scratch)
        counts, places, each = scratch + NARROW_COUNTS, scratch + NARROW_PLACES, 8 * NARROW_BUCKETS
        is_one = _place(counts, places, length)
        is_high_one = not is_wide or _place(counts + each, places + each, length)
        if not falls:
            for i in range(length):
                store(target, i, make(i))
        elif is_high_one:
            by_digit(table, keys, scratch, 0, out)
        elif is_one:
            by_digit(table, keys, scratch, 1, out)
        else:
            _pairs(table, keys, scratch, pairs)
            place = rk.words(places + each)
            for i in range(length):
                bits = np.uint64(load(_as_pair(pairs), i))
                b = types.intp(bits >> _ABOVE)
                at = load(place, b)
                store(place, b, at + 1)
                store(target, at, make(bits & _POSITION))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, length = rk.words(table), load(rk.words(table), LENGTH)
        copies = NARROW_PAIRS + ((4 * length if is_wide else 0) + 63) // 64 * 64
        orders = copies + (size * length + 63) // 64 * 64
        for row in range(first, last):
            locate(table, row, scratch)
            keys, out = load(rk.words(scratch), 0), load(rk.words(scratch), 3)
            target = out
            if load(p, PACKS):
                pack(table, 0, keys, scratch + copies, 1)
                keys = scratch + copies
            if load(p, PACKS + 3):
                target = scratch + orders
            order(table, keys, scratch, scratch + NARROW_PAIRS, target)
            if load(p, PACKS + 3):
                pack(table, 3, out, target, 0)

    return kernel
