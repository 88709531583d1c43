"""Kernels for rows that one thread sorts within its caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_parameters import (
    BUCKETS,
    BUFFERS,
    COUNT,
    COUNTS,
    FIND,
    HEAD,
    KEY_BYTES,
    KEYS,
    LENGTH,
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
)  # fmt: skip
from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import call, copy_bytes, load, pointer_to, store

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@rk.inline
def _rank(codes: int, order_ptr: int, count: int, used: Any) -> None:
    """Write the order of few codes by comparing each with all others, which vectorises."""
    code, order, rank = rk.unsigned(codes), rk.words(order_ptr), rk.words(order_ptr + 8 * SHORT)
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
def locate(table: int, row: int, places: int) -> None:
    """Write the start addresses of a row of keys, values and their outputs; 0 if absent."""
    p, ndim, lengths = rk.words(table), load(rk.words(table), NDIM), table + 8 * HEAD
    for which in range(4):
        start, strides = load(p, which), lengths + 8 * ndim * (which + 1)
        if start:
            start += offset(row, ndim, lengths, strides)
        store(rk.words(places), which, start)


@rk.inline
def pack(table: int, which: int, strided: int, buffer: int, packing: int) -> None:
    """Copy a row to a dense buffer, or from it."""
    p, length, step = rk.words(table), table + 8 * LENGTH, table + 8 * (STEPS + which)
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
    store(rk.words(table), SHIFT, shift)
    store(rk.words(table), BUCKETS, 1 << bits)
    above = shift + bits
    return differ >> types.uint64(above) << types.uint64(above) if above < stop else _ZERO


def take_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return take(places, count, keys, values, out_keys, out_values), which gathers items."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    cast, nwords = rk.word(value_size), -(-value_size // 8)

    def take(
        order_ptr: int, count: int, keys: int, values: int, out_keys: int, out_values: int
    ) -> None:
        order, source, target = rk.words(order_ptr), as_key(keys), as_key(out_keys)
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
        p, own, work = rk.words(table), rk.words(scratch), scratch + ROW_WORK
        length, size, value_size = load(p, LENGTH), load(p, KEY_BYTES), load(p, VALUE_BYTES)
        x = scratch + BUFFERS
        y = x + (length * size + 63) // 64 * 64
        vx = y + (length * size + 63) // 64 * 64
        vy = vx + (length * value_size + 63) // 64 * 64
        store(own, PARTS, 1)
        store(own, COUNTS, scratch + ROW_COUNTS)
        store(own, SURVEY, scratch + ROW_SURVEY)
        for row in range(first, last):
            locate(table, row, scratch + ROW)
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
