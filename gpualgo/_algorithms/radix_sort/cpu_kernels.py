"""Radix sort kernels. They call each other by address, so that each is compiled once.

A key's code is an unsigned number in the order of the sort. Only the codes kernel depends on the
key dtype; it converts keys block by block. The keys are moved bit for bit, because floats with one
code may differ (signed zeros, NaNs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.radix_sort import digits as at
from gpualgo._cpu.packing import call, copy_bytes, inline, load, offset, pointer_to, store

as_intp = pointer_to(types.intp)
unsigned = pointer_to(types.uint64)
counters = pointer_to(types.uint32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def word(size: int) -> Any:
    """Return the unsigned type that moves keys or values of a size in bytes."""
    return types.Integer.from_bitwidth(8 * (min(size, 8) or 1), signed=False)


def invoke_kernel() -> Callable[..., None]:
    """Return the kernel that Python calls; it runs another kernel without the GIL."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        call(load(as_intp(table), at.ENTRY), (table, scratch, first, last))

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
    call(load(p, at.CODES), (keys, count, codes, load(p, at.FLIP), load(p, at.INFINITY)))


def survey_kernel() -> Callable[..., None]:
    """Return the kernel that finds the bits in which codes differ, and whether codes ever fall."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
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

    return kernel


def count_kernel() -> Callable[..., None]:
    """Return the kernel that counts the keys of each part in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
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

    return kernel


def place_kernel() -> Callable[..., None]:
    """Return the kernel that turns counts into each part's first index in each bucket."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = as_intp(table)
        parts, buckets, count = load(p, at.PARTS), load(p, at.BUCKETS), as_intp(load(p, at.COUNTS))
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


def row_kernel() -> Callable[..., None]:
    def kernel(table: int, scratch: int, first: int, last: int) -> None:
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
            if length <= at.SHORT:
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

    return kernel


# --- Kernel that moves keys by whole cache lines, for rows larger than the caches.
#
# Each bucket collects a line in cache before writing it: the "software write-combining" of N.
# Satish et al. (SIGMOD 2010, 10.1145/1807167.1807207).


def _stream_line(_typing: Any, target: Any, source: Any) -> Any:
    """Write an aligned cache line with a non-temporal store, without reading it first."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        line = ir.VectorType(ir.IntType(64), at.LINE // 8)
        value = builder.load(builder.inttoptr(args[1], line.as_pointer()), align=at.LINE)
        stored = builder.store(value, builder.inttoptr(args[0], line.as_pointer()), align=at.LINE)
        one = ir.Constant(ir.IntType(32), 1)
        stored.set_metadata("nontemporal", builder.module.add_metadata([one]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


def _fence(_typing: Any) -> Any:
    """Order non-temporal stores before this thread's later writes."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


_stream = intrinsic(_stream_line)
_order = intrinsic(_fence)


@inline
def _flush(end: int, line: int, filled: int, valid: int, size: int) -> None:
    """Write the last `valid` of a line's first `filled` items so that they end at address `end`."""
    if valid * size >= at.LINE:
        _stream(end - at.LINE, line)
    else:
        num_bytes = min(filled, valid) * size
        copy_bytes(end - num_bytes, line + filled * size - num_bytes, num_bytes)


@inline
def _flush_rest(out: int, lines: int, ends: int, starts: int, buckets: int, size: int) -> None:
    bucket_end, start = as_intp(ends), as_intp(starts)
    for b in range(buckets):
        end = load(bucket_end, b)
        filled = (end + out % at.LINE // size) & (at.LINE // size - 1)
        _flush(
            out + end * size, lines + at.LINE * b, filled, min(filled, end - load(start, b)), size
        )


def line_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return the kernel that moves the keys of each part; outputs are aligned to their items."""
    as_key, as_value = pointer_to(word(size)), pointer_to(word(value_size))
    cast, nwords, value_bytes = word(value_size), -(-value_size // 8), value_size or 1
    per_line, values_per_line = at.LINE // size, at.LINE // value_bytes

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, u = as_intp(table), unsigned(table)
        keys, values = load(p, at.KEYS), load(p, at.VALUES)
        out_keys, out_values = load(p, at.OUT_KEYS), load(p, at.OUT_VALUES)
        length, parts, buckets = load(p, at.LENGTH), load(p, at.PARTS), load(p, at.BUCKETS)
        shift, mask = load(u, at.SHIFT), np.uint64(buckets - 1)
        source, value_source = as_key(keys), as_value(values)
        value_scratch = scratch + at.LINE * buckets
        starts = value_scratch + at.LINE * buckets
        codes = starts + 8 * buckets
        lines, value_lines, start = as_key(scratch), as_value(value_scratch), as_intp(starts)
        phase, value_phase = out_keys % at.LINE // size, out_values % at.LINE // value_bytes
        code = unsigned(codes)
        for part in range(first, last):
            places = load(p, at.COUNTS) + 8 * buckets * part
            next_index = as_intp(places)
            copy_bytes(starts, places, 8 * buckets)
            i, stop = length * part // parts, length * (part + 1) // parts
            while i < stop:
                count = min(at.BLOCK, stop - i)
                read_codes(table, keys + size * i, count, codes)
                for j in range(count):
                    b = types.intp((load(code, j) >> shift) & mask)
                    place = load(next_index, b) + 1
                    store(next_index, b, place)
                    if nwords == 0 or out_keys:
                        slot = (place - 1 + phase) & (per_line - 1)
                        store(lines, b * per_line + slot, load(source, i + j))
                        if slot == per_line - 1:
                            line = scratch + at.LINE * b
                            end, valid = out_keys + place * size, place - load(start, b)
                            if valid >= per_line:
                                _stream(end - at.LINE, line)
                            else:
                                _flush(end, line, per_line, valid, size)
                    if nwords:
                        slot = (place - 1 + value_phase) & (values_per_line - 1)
                        offset = nwords * (b * values_per_line + slot)
                        if nwords == 1:
                            value = load(value_source, i + j) if values else cast(i + j)
                            store(value_lines, offset, value)
                        else:
                            store(value_lines, offset, load(value_source, 2 * (i + j)))
                            store(value_lines, offset + 1, load(value_source, 2 * (i + j) + 1))
                        if slot == values_per_line - 1:
                            line = value_scratch + at.LINE * b
                            end, valid = out_values + place * value_bytes, place - load(start, b)
                            _flush(end, line, values_per_line, valid, value_bytes)
                i += count
            if out_keys:
                _flush_rest(out_keys, scratch, places, starts, buckets, size)
            if nwords:
                _flush_rest(out_values, value_scratch, places, starts, buckets, value_bytes)
        _order()

    return kernel
