"""Kernels for rows that one thread sorts within its caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_kernels import pointer_of
from gpualgo._algorithms.radix_sort.cpu_parameters import (
    BLOCK,
    BUCKETS,
    BUFFERS,
    COUNT,
    COUNTS,
    FIND,
    HEAD,
    KEY_BYTES,
    KEYS,
    LENGTH,
    LINE,
    MOVE,
    NDIM,
    OUT_KEYS,
    OUT_VALUES,
    PACKS,
    PARTS,
    PLACE,
    ROW,
    ROW_BITS,
    ROW_COUNTS,
    ROW_SURVEY,
    ROW_WORK,
    SHIFT,
    SHORT,
    SIZE,
    STEPS,
    SURVEY,
    TAKE,
    USED,
    VALUE_BYTES,
    VALUES,
)
from gpualgo._cpu.packing import call, copy_bytes, load, offset, pointer_to, store

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@rk.inline
def _rank(codes: int, order_ptr: int, count: int, used: Any) -> None:
    """Write the order of few codes by comparing each with all others, which vectorises."""
    code, order, rank = rk.unsigned(codes), rk.as_intp(order_ptr), rk.as_intp(order_ptr + 8 * SHORT)
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


@rk.inline
def row_addresses(table: int, row: int, places: int) -> None:
    """Write the start addresses of a row of keys, values and their outputs; 0 if absent."""
    p, ndim, lengths = rk.as_intp(table), load(rk.as_intp(table), NDIM), table + 8 * HEAD
    for which in range(4):
        start, strides = load(p, which), lengths + 8 * ndim * (which + 1)
        if start:
            start += offset(row, ndim, lengths, strides)
        store(rk.as_intp(places), which, start)


@rk.inline
def pack(table: int, which: int, strided: int, buffer: int, packing: int) -> None:
    """Copy a row to a dense buffer, or from it."""
    p, length, step = rk.as_intp(table), table + 8 * LENGTH, table + 8 * (STEPS + which)
    pack, count = load(p, PACKS + which), load(p, LENGTH)
    call(pack, (buffer, strided, 0, count, 1, length, step, packing))


@rk.inline
def _next_digit(table: int, differ: Any) -> Any:
    """Set the digit that starts at the lowest differing bit; return the bits above it."""
    shift, stop = 0, 64
    while differ != _ZERO and not (differ >> types.uint64(shift)) & _ONE:
        shift += 1
    while stop > shift and not (differ >> types.uint64(stop - 1)) & _ONE:
        stop -= 1
    bits = min(ROW_BITS, stop - shift)
    store(rk.as_intp(table), SHIFT, shift)
    store(rk.as_intp(table), BUCKETS, 1 << bits)
    above = shift + bits
    return differ >> types.uint64(above) << types.uint64(above) if above < stop else _ZERO


def take_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return take(places, count, keys, values, out_keys, out_values), which gathers items."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    cast, nwords = rk.word(value_size), -(-value_size // 8)

    def take(
        order_ptr: int, count: int, keys: int, values: int, out_keys: int, out_values: int
    ) -> None:
        order, source, target = rk.as_intp(order_ptr), as_key(keys), as_key(out_keys)
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
    """Return the kernel that sorts rows."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        copy_bytes(scratch, table, 8 * SIZE)
        p, own, work = rk.as_intp(table), rk.as_intp(scratch), scratch + ROW_WORK
        length, size, value_size = load(p, LENGTH), load(p, KEY_BYTES), load(p, VALUE_BYTES)
        x = scratch + BUFFERS
        y = x + (length * size + 63) // 64 * 64
        vx = y + (length * size + 63) // 64 * 64
        vy = vx + (length * value_size + 63) // 64 * 64
        store(own, PARTS, 1)
        store(own, COUNTS, scratch + ROW_COUNTS)
        store(own, SURVEY, scratch + ROW_SURVEY)
        for row in range(first, last):
            row_addresses(table, row, scratch + ROW)
            keys, values = load(own, ROW // 8), load(own, ROW // 8 + 1)
            out_keys, out_values = load(own, ROW // 8 + 2), load(own, ROW // 8 + 3)
            if load(p, PACKS):
                pack(table, 0, keys, x, 1)
                keys = x
            if load(p, PACKS + 1):
                pack(table, 1, values, vx, 1)
                values = vx
            differ, more = _ZERO, False
            if length <= SHORT:
                rk.read_codes(table, keys, length, work)
                _rank(work, scratch + ROW_COUNTS, length, load(rk.unsigned(table), USED))
                call(load(p, TAKE), (scratch + ROW_COUNTS, length, keys, values, y, vy))
                keys, values = y, vy
            else:
                store(own, KEYS, keys)
                call(load(p, FIND), (scratch, work, 0, 1))
                if load(own, ROW_SURVEY // 8 + 1):
                    differ = load(rk.unsigned(scratch), ROW_SURVEY // 8)
                more = differ != _ZERO or (value_size > 0 and values == 0)
            while more:
                differ = _next_digit(scratch, differ)
                more = differ != _ZERO
                target = y if keys == x else x
                value_target = vy if values == vx else vx
                if not more:  # the last pass writes to the outputs, if these are free
                    if not load(p, PACKS + 2) and out_keys != keys:
                        target = out_keys
                    if not load(p, PACKS + 3) and out_values != values:
                        value_target = out_values
                store(own, KEYS, keys)
                store(own, VALUES, values)
                store(own, OUT_KEYS, target)
                store(own, OUT_VALUES, value_target)
                call(load(p, COUNT), (scratch, work, 0, 1))
                call(load(p, PLACE), (scratch, work, 0, 1))
                call(load(p, MOVE), (scratch, work, 0, 1))
                keys, values = target, value_target
            if load(p, PACKS + 2):
                pack(table, 2, out_keys, keys, 0)
            elif out_keys and out_keys != keys:
                copy_bytes(out_keys, keys, length * size)
            if load(p, PACKS + 3):
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
        line = ir.VectorType(ir.IntType(64), LINE // 8)
        value = builder.load(builder.inttoptr(args[1], line.as_pointer()), align=LINE)
        stored = builder.store(value, builder.inttoptr(args[0], line.as_pointer()), align=LINE)
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


@rk.inline
def _flush(end: int, line: int, filled: int, valid: int, size: int) -> None:
    """Write the last `valid` of a line's first `filled` items so that they end at address `end`."""
    if valid * size >= LINE:
        _stream(end - LINE, line)
    else:
        num_bytes = min(filled, valid) * size
        copy_bytes(end - num_bytes, line + filled * size - num_bytes, num_bytes)


@rk.inline
def _flush_rest(out: int, lines: int, ends: int, starts: int, buckets: int, size: int) -> None:
    """Write the partly filled lines of all buckets."""
    bucket_end, start = rk.as_intp(ends), rk.as_intp(starts)
    for b in range(buckets):
        end = load(bucket_end, b)
        filled = (end + out % LINE // size) & (LINE // size - 1)
        _flush(out + end * size, lines + LINE * b, filled, min(filled, end - load(start, b)), size)


def line_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return the kernel that moves the keys of each part; outputs are aligned to their items."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    cast, nwords, value_bytes = rk.word(value_size), -(-value_size // 8), value_size or 1
    per_line, values_per_line = LINE // size, LINE // value_bytes

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, u = rk.as_intp(table), rk.unsigned(table)
        keys, values = load(p, KEYS), load(p, VALUES)
        out_keys, out_values = load(p, OUT_KEYS), load(p, OUT_VALUES)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        shift, mask = load(u, SHIFT), np.uint64(buckets - 1)
        source, value_source = as_key(keys), as_value(values)
        value_scratch = scratch + LINE * buckets
        starts = value_scratch + LINE * buckets
        codes = starts + 8 * buckets
        lines, value_lines, start = as_key(scratch), as_value(value_scratch), rk.as_intp(starts)
        phase, value_phase = out_keys % LINE // size, out_values % LINE // value_bytes
        code = rk.unsigned(codes)
        for part in range(first, last):
            places = load(p, COUNTS) + 8 * buckets * part
            next_index = rk.as_intp(places)
            copy_bytes(starts, places, 8 * buckets)
            i, stop = length * part // parts, length * (part + 1) // parts
            while i < stop:
                count = min(BLOCK, stop - i)
                rk.read_codes(table, keys + size * i, count, codes)
                for j in range(count):
                    b = types.intp((load(code, j) >> shift) & mask)
                    at = load(next_index, b) + 1
                    store(next_index, b, at)
                    if nwords == 0 or out_keys:
                        slot = (at - 1 + phase) & (per_line - 1)
                        store(lines, b * per_line + slot, load(source, i + j))
                        if slot == per_line - 1:
                            line = scratch + LINE * b
                            if at - load(start, b) >= per_line:
                                _stream(out_keys + at * size - LINE, line)
                            else:
                                _flush(
                                    out_keys + at * size, line, per_line, at - load(start, b), size
                                )
                    if nwords:
                        slot = (at - 1 + value_phase) & (values_per_line - 1)
                        offset = nwords * (b * values_per_line + slot)
                        if nwords == 1:
                            value = load(value_source, i + j) if values else cast(i + j)
                            store(value_lines, offset, value)
                        else:
                            store(value_lines, offset, load(value_source, 2 * (i + j)))
                            store(value_lines, offset + 1, load(value_source, 2 * (i + j) + 1))
                        if slot == values_per_line - 1:
                            end, line = out_values + at * value_bytes, value_scratch + LINE * b
                            valid = at - load(start, b)
                            _flush(end, line, values_per_line, valid, value_bytes)
                i += count
            if out_keys:
                _flush_rest(out_keys, scratch, places, starts, buckets, size)
            if nwords:
                _flush_rest(out_values, value_scratch, places, starts, buckets, value_bytes)
        _order()

    return kernel


# --- Kernels that estimate the cost of a merge sort, and order rows that are one run.

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
        p = rk.as_intp(table)
        keys, row_stride, stride, length = load(p, 0), load(p, 1), load(p, 2), load(p, 3)
        for row in range(first, last):
            row_start = keys + row * row_stride
            order = rk.as_intp(load(p, 4) + row * load(p, 5))
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
