"""Kernels of the radix sort, which call each other by address: each is compiled once.

A key's code is an unsigned number in the order wanted. Codes are made of keys block by block; no
other kernel knows what keys are. Keys themselves are moved bit for bit, as two floats of one code
may differ (zeros of either sign, NaNs).
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
)  # fmt: skip
from gpualgo._cpu.pointers import call, load, pointer_to, store

words = pointer_to(types.intp)
unsigned = pointer_to(types.uint64)
counters = pointer_to(types.uint32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def word(size: int) -> Any:
    """Return the type of the words that keys or values of a size in bytes are moved by."""
    return types.Integer.from_bitwidth(8 * (min(size, 8) or 1), signed=False)


def inline(function: Callable[..., Any]) -> Any:
    """Return function as one that kernels call, compiled when they are."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def invoke_kernel() -> Callable[..., None]:
    """Write the kernel that Python calls: it runs any other without the GIL."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        call(load(words(table), ENTRY), (table, scratch, first, last))

    return kernel


def codes_kernel(size: int, is_float: bool) -> Callable[..., None]:
    """Write codes(keys, count, codes, flip, infinity), which makes unsigned words from keys.

    flip inverts bits of keys: the sign bit of signed integers, and for descent all of integers, the
    sign of floats. A float of magnitude m is above or below the middle by m, so that the zeros are
    one; NaN, of a magnitude above infinity, is all ones, whatever its sign.
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
    """Write the same for words of several numbers, of which some are floats.

    `floats`: of each its lowest bit, its bits, and its infinity. Other numbers' bits are codes.
    """
    make, as_key = word(size), pointer_to(word(size))
    fields = [floats[i : i + 3] for i in range(0, len(floats), 3)]
    taken = sum((1 << bits) - 1 << shift for shift, bits, _ in fields)
    plain = np.uint64((1 << 64) - 1 ^ taken)

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
    """Return a function that makes the code of one more float within a word."""
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
    """Make the codes of `count` keys from an address on."""
    p = words(table)
    call(load(p, CODES), (keys, count, codes, load(p, FLIP), load(p, INFINITY)))


def survey_kernel() -> Callable[..., None]:
    """Write the kernel that finds the bits in which codes differ, and whether they ever fall."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = words(table), unsigned(scratch)
        used, length, parts = load(unsigned(table), USED), load(p, LENGTH), load(p, PARTS)
        keys, size = load(p, KEYS), load(p, KEY_BYTES)
        found = unsigned(load(p, SURVEY))
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
            store(found, 2 * part, differ & used)
            store(found, 2 * part + 1, falls)

    return kernel


def count_kernel() -> Callable[..., None]:
    """Write the kernel that counts the keys of each part in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = words(table), unsigned(scratch)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        keys, size, shift = load(p, KEYS), load(p, KEY_BYTES), load(unsigned(table), SHIFT)
        mask = np.uint64(buckets - 1)
        # Two counts for a bucket, in turn: equal neighbours need not wait for each other.
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
            total = words(load(p, COUNTS) + 8 * buckets * part)
            for b in range(buckets):
                store(total, b, types.intp(load(even, b)) + types.intp(load(odd, b)))

    return kernel


def place_kernel() -> Callable[..., None]:
    """Write the kernel that turns counts into the first place of each part in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = words(table)
        parts, buckets, count = load(p, PARTS), load(p, BUCKETS), words(load(p, COUNTS))
        total = 0
        for b in range(buckets):
            for part in range(parts):
                number = load(count, part * buckets + b)
                store(count, part * buckets + b, total)
                total += number

    return kernel


def fill_kernel(size: int) -> Callable[..., None]:
    """Write the kernel that writes integer keys from how many there are of each."""
    make, as_key = word(size), pointer_to(word(size))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, flip = words(table), load(unsigned(table), FLIP)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        start, target = words(load(p, COUNTS)), as_key(load(p, OUT_KEYS))
        at, stop = length * first // parts, length * last // parts
        low, high = 0, buckets
        while high - low > 1:  # the last bucket that starts here or before
            middle = (low + high) // 2
            if load(start, middle) <= at:
                low = middle
            else:
                high = middle
        while at < stop:
            end = stop if low + 1 == buckets else min(stop, load(start, low + 1))
            key = make(np.uint64(low) ^ flip)
            for i in range(at, end):
                store(target, i, key)
            at = end
            low += 1

    return kernel


def scatter_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Write the kernel that moves the keys of each part, and values, to the places of buckets."""
    as_key, as_value, make = pointer_to(word(size)), pointer_to(word(value_size)), word(value_size)
    pieces = -(-value_size // 8)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, code = words(table), unsigned(scratch)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        keys, values, out_keys = load(p, KEYS), load(p, VALUES), load(p, OUT_KEYS)
        shift, mask = load(unsigned(table), SHIFT), np.uint64(buckets - 1)
        source, target = as_key(keys), as_key(out_keys)
        value_source, value_target = as_value(values), as_value(load(p, OUT_VALUES))
        for part in range(first, last):
            place = words(load(p, COUNTS) + 8 * buckets * part)
            start, stop = length * part // parts, length * (part + 1) // parts
            while start < stop:
                count = min(BLOCK, stop - start)
                read_codes(table, keys + size * start, count, scratch)
                for j in range(count):
                    i, bucket = start + j, types.intp((load(code, j) >> shift) & mask)
                    at = load(place, bucket)
                    store(place, bucket, at + 1)
                    if pieces == 0 or out_keys:
                        store(target, at, load(source, i))
                    if pieces == 1:
                        store(value_target, at, load(value_source, i) if values else make(i))
                    else:
                        for w in range(pieces):
                            store(value_target, pieces * at + w, load(value_source, pieces * i + w))
                start += count

    return kernel
