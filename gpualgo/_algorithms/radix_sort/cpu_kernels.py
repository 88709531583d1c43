"""Radix sort kernels. They call each other by address, so that each is compiled once.

A key's code is an unsigned number in the order of the sort. Only the codes kernel depends on the
key dtype; it converts keys block by block. The keys are moved bit for bit, because floats with one
code may differ (signed zeros, NaNs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import problem as at
from gpualgo._cpu.packing import call, copy_bytes, inline, load, offset, pointer_to, storage, store

as_intp = pointer_to(types.intp)
unsigned = pointer_to(types.uint64)
counters = pointer_to(types.uint32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def word(size: int) -> Any:
    """Return the unsigned type that moves keys or values of a size in bytes."""
    return types.Integer.from_bitwidth(8 * (min(size, 8) or 1), signed=False)


def invoke_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Run another kernel without the GIL; Python calls this one."""
    call(load(as_intp(table), at.ENTRY), (table, scratch, first, last))


def codes_kernel(size: int, *floats: tuple[int, int, int]) -> Callable[..., None]:
    """Return codes(keys, count, codes, flip), which converts keys to unsigned words.

    `floats`: lowest bit, width and infinity of each float in a key. flip inverts key bits: the sign
    bit of signed integers; if descending, all bits of integers or the sign of floats. Then the bits
    of integers are codes already. A float of magnitude m has the code middle ± m, so both zeros
    have one code. NaN (magnitude above infinity) has all bits set, whatever its sign.
    """
    as_key = pointer_to(word(size))
    float_bits = sum((1 << bits) - 1 << shift for shift, bits, _ in floats)
    plain = np.uint64((1 << 64) - 1 ^ float_bits)

    @inline
    def code_of(bits: Any) -> Any:
        return bits & plain

    for field in floats:
        code_of = _with_float(code_of, *field)

    def codes_of(keys: int, count: int, codes: int, flip: int) -> None:
        source, target, mask = as_key(keys), unsigned(codes), np.uint64(flip)
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
    call(load(p, at.CODES), (keys, count, codes, load(p, at.FLIP)))


def survey_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Find the bits in which codes differ, and whether codes ever fall."""
    p, code = as_intp(table), unsigned(scratch)
    used, length, parts = load(unsigned(table), at.USED), load(p, at.LENGTH), load(p, at.PARTS)
    keys, size = load(p, at.KEYS), load(p, at.KEY_BYTES)
    survey = unsigned(load(p, at.SURVEY))
    for part in range(first, last):
        i, stop = length * part // parts, length * (part + 1) // parts
        read_codes(table, keys, 1, scratch)
        head = load(code, 0)
        read_codes(table, keys + size * max(0, i - 1), 1, scratch)
        differ, falls = _ZERO, _ZERO
        while i < stop:
            count = min(at.BLOCK, stop - i)
            read_codes(table, keys + size * i, count, scratch + 8)
            for j in range(count):
                bits = load(code, j + 1)
                differ |= bits ^ head
                falls |= np.uint64(bits & used < load(code, j) & used)
            store(code, 0, load(code, count))
            i += count
        store(survey, 2 * part, differ & used)
        store(survey, 2 * part + 1, falls)


def count_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Count the keys of each part in each bucket."""
    p, code = as_intp(table), unsigned(scratch)
    length, parts, buckets = load(p, at.LENGTH), load(p, at.PARTS), load(p, at.BUCKETS)
    keys, size, shift = load(p, at.KEYS), load(p, at.KEY_BYTES), load(unsigned(table), at.SHIFT)
    mask = np.uint64(buckets - 1)
    # Alternate between two counters per bucket: equal neighbours need not wait for each other.
    even = counters(scratch + at.CODES_BYTES)
    odd = counters(scratch + at.CODES_BYTES + 4 * buckets)
    for part in range(first, last):
        for b in range(2 * buckets):
            store(even, b, np.uint32(0))
        i, stop = length * part // parts, length * (part + 1) // parts
        while i < stop:
            count = min(at.BLOCK, stop - i)
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
        total = as_intp(load(p, at.COUNTS) + 8 * buckets * part)
        for b in range(buckets):
            store(total, b, types.intp(load(even, b)) + types.intp(load(odd, b)))


def place_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Turn counts into each part's first index in each bucket."""
    p = as_intp(table)
    parts, buckets, count = load(p, at.PARTS), load(p, at.BUCKETS), as_intp(load(p, at.COUNTS))
    total = 0
    for b in range(buckets):
        for part in range(parts):
            size = load(count, part * buckets + b)
            store(count, part * buckets + b, total)
            total += size


def fill_kernel(size: int) -> Callable[..., None]:
    """Return the kernel that writes integer keys from their counts."""
    to_key, as_key = word(size), pointer_to(word(size))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, flip = as_intp(table), load(unsigned(table), at.FLIP)
        length, parts, buckets = load(p, at.LENGTH), load(p, at.PARTS), load(p, at.BUCKETS)
        start, target = as_intp(load(p, at.COUNTS)), as_key(load(p, at.OUT_KEYS))
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
        length, parts, buckets = load(p, at.LENGTH), load(p, at.PARTS), load(p, at.BUCKETS)
        keys, values, out_keys = load(p, at.KEYS), load(p, at.VALUES), load(p, at.OUT_KEYS)
        shift, mask = load(unsigned(table), at.SHIFT), np.uint64(buckets - 1)
        source, target = as_key(keys), as_key(out_keys)
        value_source, value_target = as_value(values), as_value(load(p, at.OUT_VALUES))
        for part in range(first, last):
            next_index = as_intp(load(p, at.COUNTS) + 8 * buckets * part)
            start, stop = length * part // parts, length * (part + 1) // parts
            while start < stop:
                count = min(at.BLOCK, stop - start)
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


# --- Rows that one thread sorts within its caches.


@inline
def _rank(codes: int, order_ptr: int, count: int, used: Any) -> None:
    """Write the order of few codes by comparing each with all others, which vectorises."""
    code, order, rank = unsigned(codes), as_intp(order_ptr), as_intp(order_ptr + 8 * at.SHORT)
    for i in range(count):
        store(code, i, load(code, i) & used)
    padded = (count + 31) // 32 * 32
    for i in range(count, padded):
        store(code, i, ~_ZERO)  # less than no other code
    total = 0
    for i in range(count):
        own, below = load(code, i), 0
        for j in range(padded):
            below += types.intp(load(code, j) < own)
        store(rank, i, below)
        total += below
    is_distinct = 2 * total == count * (count - 1)
    for i in range(count):
        index = load(rank, i)
        if not is_distinct:
            for j in range(i):
                index += types.intp(load(code, j) == load(code, i))
        store(order, index, i)


@inline
def row_addresses(table: int, row: int, places: int) -> None:
    """Write the start addresses of a row of keys, values and their outputs; 0 if absent."""
    p, ndim, lengths = as_intp(table), load(as_intp(table), at.NDIM), table + 8 * at.HEAD
    for which in range(4):
        start, strides = load(p, which), lengths + 8 * ndim * (which + 1)
        if start:
            start += offset(row, ndim, lengths, strides)
        store(as_intp(places), which, start)


@inline
def pack(table: int, which: int, strided: int, buffer: int, packing: int) -> None:
    """Copy a row to a dense buffer, or from it."""
    p, length, step = as_intp(table), table + 8 * at.LENGTH, table + 8 * (at.STEPS + which)
    pack, count = load(p, at.PACKS + which), load(p, at.LENGTH)
    call(pack, (buffer, strided, 0, count, 1, length, step, packing))


@inline
def _next_digit(table: int, differ: Any) -> Any:
    """Set the digit that starts at the lowest differing bit; return the bits above it."""
    shift, stop = 0, 64
    while differ != _ZERO and not (differ >> types.uint64(shift)) & _ONE:
        shift += 1
    while stop > shift and not (differ >> types.uint64(stop - 1)) & _ONE:
        stop -= 1
    bits = min(at.ROW_BITS, stop - shift)
    store(as_intp(table), at.SHIFT, shift)
    store(as_intp(table), at.BUCKETS, 1 << bits)
    above = shift + bits
    return differ >> types.uint64(above) << types.uint64(above) if above < stop else _ZERO


def take_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return take(places, count, keys, values, out_keys, out_values), which gathers items."""
    as_key, as_value = pointer_to(word(size)), pointer_to(word(value_size))
    cast, nwords = word(value_size), -(-value_size // 8)

    def take(
        order_ptr: int, count: int, keys: int, values: int, out_keys: int, out_values: int
    ) -> None:
        order, source, target = as_intp(order_ptr), as_key(keys), as_key(out_keys)
        value_source, value_target = as_value(values), as_value(out_values)
        for j in range(count):
            i = load(order, j)
            store(target, j, load(source, i))
            if nwords == 1:
                store(value_target, j, load(value_source, i) if values else cast(i))
            else:
                for w in range(nwords):
                    store(value_target, nwords * j + w, load(value_source, nwords * i + w))

    return take


def row_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Sort rows, each within this thread's caches."""
    copy_bytes(scratch, table, 8 * at.SIZE)
    p, own, work = as_intp(table), as_intp(scratch), scratch + at.ROW_WORK
    length = load(p, at.LENGTH)
    size, value_size = load(p, at.KEY_BYTES), load(p, at.VALUE_BYTES)
    x = scratch + at.BUFFERS
    y = x + (length * size + 63) // 64 * 64
    vx = y + (length * size + 63) // 64 * 64
    vy = vx + (length * value_size + 63) // 64 * 64
    store(own, at.PARTS, 1)
    store(own, at.COUNTS, scratch + at.ROW_COUNTS)
    store(own, at.SURVEY, scratch + at.ROW_SURVEY)
    for row in range(first, last):
        row_addresses(table, row, scratch + at.ROW)
        keys, values = load(own, at.ROW // 8), load(own, at.ROW // 8 + 1)
        out_keys, out_values = load(own, at.ROW // 8 + 2), load(own, at.ROW // 8 + 3)
        if load(p, at.PACKS):
            pack(table, 0, keys, x, 1)
            keys = x
        if load(p, at.PACKS + 1):
            pack(table, 1, values, vx, 1)
            values = vx
        differ, more = _ZERO, False
        if length <= (at.SHORT if size > 1 else at.SHORT_BYTES):
            read_codes(table, keys, length, work)
            _rank(work, scratch + at.ROW_COUNTS, length, load(unsigned(table), at.USED))
            call(load(p, at.TAKE), (scratch + at.ROW_COUNTS, length, keys, values, y, vy))
            keys, values = y, vy
        else:
            store(own, at.KEYS, keys)
            call(load(p, at.FIND), (scratch, work, 0, 1))
            if load(own, at.ROW_SURVEY // 8 + 1):
                differ = load(unsigned(scratch), at.ROW_SURVEY // 8)
            more = differ != _ZERO or (value_size > 0 and values == 0)
        while more:
            differ = _next_digit(scratch, differ)
            more = differ != _ZERO
            target = y if keys == x else x
            value_target = vy if values == vx else vx
            if not more:  # the last pass writes to the outputs, if these are free
                if not load(p, at.PACKS + 2) and out_keys != keys:
                    target = out_keys
                if not load(p, at.PACKS + 3) and out_values != values:
                    value_target = out_values
            store(own, at.KEYS, keys)
            store(own, at.VALUES, values)
            store(own, at.OUT_KEYS, target)
            store(own, at.OUT_VALUES, value_target)
            call(load(p, at.COUNT), (scratch, work, 0, 1))
            call(load(p, at.PLACE), (scratch, work, 0, 1))
            call(load(p, at.MOVE), (scratch, work, 0, 1))
            keys, values = target, value_target
        if load(p, at.PACKS + 2):
            pack(table, 2, out_keys, keys, 0)
        elif out_keys and out_keys != keys:
            copy_bytes(out_keys, keys, length * size)
        if load(p, at.PACKS + 3):
            pack(table, 3, out_values, values, 0)
        elif out_values and out_values != values:
            copy_bytes(out_values, values, length * value_size)


# --- Kernels around NumPy's sorts: restore zeros and NaNs, count runs.
#
# NumPy orders numbers, not their bits: zeros of either sign, and NaNs, may change order or lose
# their bits. All other equal keys have equal bits.

_KINDS = {"i": "int", "u": "uint", "f": "float"}


def pointer_of(kind: str, size: int) -> Any:
    return pointer_to(storage(np.dtype(f"{_KINDS[kind]}{8 * size}")))


@inline
def _sorts_before(b: Any, a: Any, falls: int) -> Any:
    """Return whether b sorts before a, which is earlier in the input; NaN is last."""
    return ((b > a) if falls else (b < a)) | ((a != a) & (b == b))


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


def mend_kernel(size: int, falls: int) -> Callable[..., None]:
    """Return the kernel that restores zeros and NaNs of sorted rows; a task is a row.

    Its table: the addresses of adjacent rows of keys and of the sorted rows, and a row's length.
    """
    as_key, as_bits = pointer_of("f", size), pointer_to(word(size))
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
        p = as_intp(table)
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
    """Return f(keys, stride, length, 0): cost of a merge sort; from 100 on, digits are faster.

    The limit is two levels, or for short rows a quarter of all. Distances reach up to a 32nd of the
    row, so a single turning point is rarely sampled. Time of the digit sort relative to NumPy's (a
    Xeon, one thread, 10^6 float64): sorted 4.5, falling 29, ten rising rows 2.6, 64 rising rows
    0.9, a hundredth of the keys swapped 0.9, random 0.2.
    """
    as_key = pointer_of(kind, size)

    def kernel(keys: int, stride: int, length: int, _: int) -> int:
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
            start = keys + stride * index
            a, b = load(as_key(start), 0), load(as_key(start + stride * gap), 0)
            c = load(as_key(start + 2 * stride * gap), 0)
            turns += _sorts_before(b, a, falls) != _sorts_before(c, b, falls)
        return 400 * turns * scales // (samples * min(8, scales))

    return kernel
