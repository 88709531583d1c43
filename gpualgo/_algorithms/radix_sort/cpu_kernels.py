"""Radix sort kernels. They call each other by address, so that each is compiled once.

A key's code is an unsigned number in the order of the sort. Only the codes kernel depends on the
key dtype; it converts keys block by block. The keys are moved bit for bit, because floats with one
code may differ (signed zeros, NaNs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort.cpu_parameters import (
    BLOCK,
    BUCKETS,
    CODES,
    CODES_BYTES,
    COUNTS,
    ENTRY,
    FLIP,
    INFINITY,
    KEY_BYTES,
    KEYS,
    LENGTH,
    OUT_KEYS,
    OUT_VALUES,
    PARTS,
    SHIFT,
    SURVEY,
    USED,
    VALUES,
)
from gpualgo._cpu.packing import call, load, pointer_to, store

as_intp = pointer_to(types.intp)
unsigned = pointer_to(types.uint64)
counters = pointer_to(types.uint32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def word(size: int) -> Any:
    """Return the unsigned type that moves keys or values of a size in bytes."""
    return types.Integer.from_bitwidth(8 * (min(size, 8) or 1), signed=False)


def inline(function: Callable[..., Any]) -> Any:
    """Return function compiled as a device function for kernels."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def invoke_kernel() -> Callable[..., None]:
    """Return the kernel that Python calls; it runs another kernel without the GIL."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        call(load(as_intp(table), ENTRY), (table, scratch, first, last))

    return kernel


def codes_kernel(size: int, is_float: bool) -> Callable[..., None]:
    """Return codes(keys, count, codes, flip, infinity), which converts keys to unsigned words.

    flip inverts key bits: the sign bit of signed integers; if descending, all bits of integers or
    the sign of floats. A float of magnitude m has the code middle ± m, so both zeros have one code.
    NaN (magnitude above infinity) has all bits set, whatever its sign.
    """
    make, as_key = word(size), pointer_to(word(size))
    top, middle = np.uint64(8 * size - 1), np.uint64(1 << 8 * size - 1)

    def integer_codes(keys: int, count: int, codes: int, flip: int, infinity: int) -> None:
        source, target, mask = as_key(keys), unsigned(codes), make(flip)
        for i in range(count):
            store(target, i, np.uint64(load(source, i) ^ mask))

    def float_codes(keys: int, count: int, codes: int, flip: int, infinity: int) -> None:
        source, target, mask, limit = as_key(keys), unsigned(codes), make(flip), make(infinity)
        for i in range(count):
            bits = make(load(source, i) ^ mask)
            magnitude, negative = make(bits & (middle - _ONE)), make(_ZERO - (bits >> top))
            code = make(middle + (magnitude ^ negative) - negative)
            is_nan = make(_ZERO - np.uint64(magnitude > limit))
            store(target, i, np.uint64(make(code | is_nan)))

    return float_codes if is_float else integer_codes


def word_codes_kernel(size: int, *floats: int) -> Callable[..., None]:
    """Return the codes function of words that pack several numbers, some of them floats.

    `floats`: lowest bit, width and infinity of each float. The bits of other numbers are codes
    already.
    """
    make, as_key = word(size), pointer_to(word(size))
    fields = [floats[i : i + 3] for i in range(0, len(floats), 3)]
    float_bits = sum((1 << bits) - 1 << shift for shift, bits, _ in fields)
    plain = np.uint64((1 << 64) - 1 ^ float_bits)

    @inline
    def code_of(bits: Any) -> Any:
        return bits & plain

    for field in fields:
        code_of = _with_float(code_of, *field)

    def codes_of(keys: int, count: int, codes: int, flip: int, infinity: int) -> None:
        source, target, mask = as_key(keys), unsigned(codes), np.uint64(make(flip))
        for i in range(count):
            store(target, i, code_of(np.uint64(load(source, i)) ^ mask))

    return codes_of


def _with_float(code_of: Any, shift: int, bits: int, infinity: int) -> Any:
    """Return a function that also converts one more float within a word."""
    down, top, limit = np.uint64(shift), np.uint64(bits - 1), np.uint64(infinity)
    middle, everything = np.uint64(1 << bits - 1), np.uint64((1 << bits) - 1)

    @inline
    def with_float(key: Any) -> Any:
        number = (key >> down) & everything
        magnitude, negative = number & (middle - _ONE), _ZERO - (number >> top)
        code = middle + (magnitude ^ negative) - negative
        is_nan = _ZERO - np.uint64(magnitude > limit)
        return code_of(key) | ((code | is_nan) & everything) << down

    return with_float


@inline
def read_codes(table: int, keys: int, count: int, codes: int) -> None:
    """Write the codes of `count` keys from an address on."""
    p = as_intp(table)
    call(load(p, CODES), (keys, count, codes, load(p, FLIP), load(p, INFINITY)))


def survey_kernel() -> Callable[..., None]:
    """Return the kernel that finds the bits in which codes differ, and whether codes ever fall."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = as_intp(table), unsigned(scratch)
        used, length, parts = load(unsigned(table), USED), load(p, LENGTH), load(p, PARTS)
        keys, size = load(p, KEYS), load(p, KEY_BYTES)
        survey = unsigned(load(p, SURVEY))
        for part in range(first, last):
            i, stop = length * part // parts, length * (part + 1) // parts
            read_codes(table, keys, 1, scratch)
            head = load(code, 0)
            read_codes(table, keys + size * max(0, i - 1), 1, scratch)
            differ, falls = _ZERO, _ZERO
            while i < stop:
                count = min(BLOCK, stop - i)
                read_codes(table, keys + size * i, count, scratch + 8)
                for j in range(count):
                    bits = load(code, j + 1)
                    differ |= bits ^ head
                    falls |= np.uint64(bits & used < load(code, j) & used)
                store(code, 0, load(code, count))
                i += count
            store(survey, 2 * part, differ & used)
            store(survey, 2 * part + 1, falls)

    return kernel


def count_kernel() -> Callable[..., None]:
    """Return the kernel that counts the keys of each part in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = as_intp(table), unsigned(scratch)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        keys, size, shift = load(p, KEYS), load(p, KEY_BYTES), load(unsigned(table), SHIFT)
        mask = np.uint64(buckets - 1)
        # Alternate between two counters per bucket: equal neighbours need not wait for each other.
        even = counters(scratch + CODES_BYTES)
        odd = counters(scratch + CODES_BYTES + 4 * buckets)
        for part in range(first, last):
            for b in range(2 * buckets):
                store(even, b, np.uint32(0))
            i, stop = length * part // parts, length * (part + 1) // parts
            while i < stop:
                count = min(BLOCK, stop - i)
                read_codes(table, keys + size * i, count, scratch)
                for j in range(0, count - 1, 2):
                    b = types.intp((load(code, j) >> shift) & mask)
                    c = types.intp((load(code, j + 1) >> shift) & mask)
                    store(even, b, np.uint32(load(even, b) + 1))
                    store(odd, c, np.uint32(load(odd, c) + 1))
                if count & 1:
                    b = types.intp((load(code, count - 1) >> shift) & mask)
                    store(even, b, np.uint32(load(even, b) + 1))
                i += count
            total = as_intp(load(p, COUNTS) + 8 * buckets * part)
            for b in range(buckets):
                store(total, b, types.intp(load(even, b)) + types.intp(load(odd, b)))

    return kernel


def place_kernel() -> Callable[..., None]:
    """Return the kernel that turns counts into each part's first index in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = as_intp(table)
        parts, buckets, count = load(p, PARTS), load(p, BUCKETS), as_intp(load(p, COUNTS))
        total = 0
        for b in range(buckets):
            for part in range(parts):
                size = load(count, part * buckets + b)
                store(count, part * buckets + b, total)
                total += size

    return kernel


def fill_kernel(size: int) -> Callable[..., None]:
    """Return the kernel that writes integer keys from their counts."""
    to_key, as_key = word(size), pointer_to(word(size))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, flip = as_intp(table), load(unsigned(table), FLIP)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        start, target = as_intp(load(p, COUNTS)), as_key(load(p, OUT_KEYS))
        index, stop = length * first // parts, length * last // parts
        low, high = 0, buckets
        while high - low > 1:  # the last bucket that starts at or before `index`
            middle = (low + high) // 2
            if load(start, middle) <= index:
                low = middle
            else:
                high = middle
        while index < stop:
            end = stop if low + 1 == buckets else min(stop, load(start, low + 1))
            key = to_key(np.uint64(low) ^ flip)
            for i in range(index, end):
                store(target, i, key)
            index = end
            low += 1

    return kernel


def scatter_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return the kernel that moves the keys of each part, and values, to their buckets."""
    as_key, as_value, cast = pointer_to(word(size)), pointer_to(word(value_size)), word(value_size)
    nwords = -(-value_size // 8)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = as_intp(table), unsigned(scratch)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        keys, values, out_keys = load(p, KEYS), load(p, VALUES), load(p, OUT_KEYS)
        shift, mask = load(unsigned(table), SHIFT), np.uint64(buckets - 1)
        source, target = as_key(keys), as_key(out_keys)
        value_source, value_target = as_value(values), as_value(load(p, OUT_VALUES))
        for part in range(first, last):
            next_index = as_intp(load(p, COUNTS) + 8 * buckets * part)
            start, stop = length * part // parts, length * (part + 1) // parts
            while start < stop:
                count = min(BLOCK, stop - start)
                read_codes(table, keys + size * start, count, scratch)
                for j in range(count):
                    i, bucket = start + j, types.intp((load(code, j) >> shift) & mask)
                    to = load(next_index, bucket)
                    store(next_index, bucket, to + 1)
                    if nwords == 0 or out_keys:
                        store(target, to, load(source, i))
                    if nwords == 1:
                        store(value_target, to, load(value_source, i) if values else cast(i))
                    else:
                        for w in range(nwords):
                            store(value_target, nwords * to + w, load(value_source, nwords * i + w))
                start += count

    return kernel
