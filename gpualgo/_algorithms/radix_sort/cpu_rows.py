"""Many rows, or one short one: each is sorted by one thread, in its caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._base import threads
from gpualgo._cpu.kernels import get_kernel, scratch
from gpualgo._cpu.layout import address, is_dense, merge, offset, packer, table
from gpualgo._cpu.pointers import call, copy_bytes, load, pointer_to, store

_ZERO, _ONE = np.uint64(0), np.uint64(1)

_SHORT = 128  # keys up to which each is compared with all others
_BITS = 8  # of a digit

# Beyond the table of radix_sort_kernels: addresses of kernels; the size of values; for keys, values
# and their outputs in turn, the function that packs what is not dense, or 0, and the stride along
# the row. Then lengths of the outer dimensions, and their strides in each array.
_FIND, _COUNT, _PLACE, _MOVE, _TAKE, _VALUE_BYTES, _PACKS = range(rk.SIZE, rk.SIZE + 7)
_STEPS, _NDIM, _HEAD = _PACKS + 4, _PACKS + 8, _PACKS + 9

# Scratch memory of a thread: a table of its own, addresses of the row, counts, what the survey
# finds, what kernels need; then two buffers for keys and two for values.
_ROW = 8 * rk.SIZE
_COUNTS = _ROW + 32
_SURVEY = _COUNTS + (8 << _BITS)
_WORK = _SURVEY + 16
_BUFFERS = (_WORK + rk.CODES_BYTES + (8 << _BITS) + 63) // 64 * 64


def sort(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> None:
    """Sort rows along the last axis: keys, values, and where each goes, None if nowhere.

    Without values, positions in the row are moved. All are of plain bytes, and any strides.
    """
    keys, _, _, out_values = arrays
    assert keys is not None
    *outer, length = keys.shape
    shape = keys.shape
    strides = [(0,) * len(shape) if a is None else a.strides for a in arrays]
    dims = list(zip(outer, *strides, strict=False))
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1])))
    packs = [
        0 if a is None or is_dense([(length, a.strides[-1])], 0, a.itemsize) else packer(a.itemsize)
        for a in arrays
    ]
    sizes = (keys.itemsize, 0 if out_values is None else out_values.itemsize)
    head = [0] * rk.CODES
    head[: rk.LENGTH + 1] = [*(0 if a is None else address(a) for a in arrays), length]
    head[rk.ENTRY] = rk.entry("rows", row_kernel)
    arguments = table(
        head, numbers, _entries(*sizes), [sizes[1]], packs, [s[-1] for s in strides], [len(dims)],
        *zip(*dims, strict=True),
    )  # fmt: skip
    kernel = get_kernel("radix_sort", rk.invoke_kernel)
    at, num_bytes = address(arguments), _BUFFERS + 2 * length * sum(sizes) + 4 * 64

    def body(first: int, last: int) -> None:
        memory = scratch(num_bytes)
        kernel(at, address(memory), first, last)

    threads.run(body, prod(outer), keys.size * sum(sizes))


def _entries(size: int, value_size: int) -> list[int]:
    """Return the addresses of the kernels that the one for rows calls."""
    return [
        rk.entry("survey", rk.survey_kernel),
        rk.entry("count", rk.count_kernel),
        rk.entry("place", rk.place_kernel),
        rk.entry(("scatter", size, value_size), lambda: rk.scatter_kernel(size, value_size)),
        rk.entry(("take", size, value_size), lambda: take_kernel(size, value_size)),
    ]


@rk.inline
def _rank(codes: int, places: int, count: int, used: Any) -> None:
    """Write the order of codes, each compared with all: so few that vectors of them beat passes."""
    code, place, rank = rk.unsigned(codes), rk.words(places), rk.words(places + 8 * _SHORT)
    for i in range(count):
        store(code, i, load(code, i) & used)
    padded = (count + 31) // 32 * 32
    for i in range(count, padded):
        store(code, i, ~_ZERO)  # below nothing
    total = 0
    for i in range(count):
        mine, below = load(code, i), 0
        for j in range(padded):
            below += types.intp(load(code, j) < mine)
        store(rank, i, below)
        total += below
    is_distinct = 2 * total == count * (count - 1)
    for i in range(count):
        at = load(rank, i)
        if not is_distinct:
            for j in range(i):
                at += types.intp(load(code, j) == load(code, i))
        store(place, at, i)


@rk.inline
def _locate(table: int, row: int, places: int) -> None:
    """Write where a row of keys, values and their outputs starts; 0 if it is nowhere."""
    p, ndim, lengths = rk.words(table), load(rk.words(table), _NDIM), table + 8 * _HEAD
    for which in range(4):
        start, strides = load(p, which), lengths + 8 * ndim * (which + 1)
        if start:
            start += offset(row, ndim, lengths, strides)
        store(rk.words(places), which, start)


@rk.inline
def _pack(table: int, which: int, strided: int, buffer: int, packing: int) -> None:
    """Copy a row to a dense buffer, or from it."""
    p, length, step = rk.words(table), table + 8 * rk.LENGTH, table + 8 * (_STEPS + which)
    pack, count = load(p, _PACKS + which), load(p, rk.LENGTH)
    call(pack, (buffer, strided, 0, count, 1, length, step, packing))


@rk.inline
def _next_digit(table: int, differ: Any) -> Any:
    """Set the digit that starts at the lowest bit in which codes differ; return the bits above."""
    shift, stop = 0, 64
    while differ != _ZERO and not (differ >> types.uint64(shift)) & _ONE:
        shift += 1
    while stop > shift and not (differ >> types.uint64(stop - 1)) & _ONE:
        stop -= 1
    bits = min(_BITS, stop - shift)
    store(rk.words(table), rk.SHIFT, shift)
    store(rk.words(table), rk.BUCKETS, 1 << bits)
    above = shift + bits
    return differ >> types.uint64(above) << types.uint64(above) if above < stop else _ZERO


def take_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Write take(places, count, keys, values, out_keys, out_values): all from places in order."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    make, pieces = rk.word(value_size), -(-value_size // 8)

    def take(
        places: int, count: int, keys: int, values: int, out_keys: int, out_values: int
    ) -> None:
        place, source, target = rk.words(places), as_key(keys), as_key(out_keys)
        value_source, value_target = as_value(values), as_value(out_values)
        for j in range(count):
            i = load(place, j)
            store(target, j, load(source, i))
            if pieces == 1:
                store(value_target, j, load(value_source, i) if values else make(i))
            else:
                for w in range(pieces):
                    store(value_target, pieces * j + w, load(value_source, pieces * i + w))

    return take


def row_kernel() -> Callable[..., None]:
    """Write the kernel that sorts rows."""

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        copy_bytes(scratch, table, 8 * rk.SIZE)
        p, own, work = rk.words(table), rk.words(scratch), scratch + _WORK
        length, size, value_size = load(p, rk.LENGTH), load(p, rk.KEY_BYTES), load(p, _VALUE_BYTES)
        x = scratch + _BUFFERS
        y = x + (length * size + 63) // 64 * 64
        vx = y + (length * size + 63) // 64 * 64
        vy = vx + (length * value_size + 63) // 64 * 64
        store(own, rk.PARTS, 1)
        store(own, rk.COUNTS, scratch + _COUNTS)
        store(own, rk.SURVEY, scratch + _SURVEY)
        for row in range(first, last):
            _locate(table, row, scratch + _ROW)
            keys, values = load(own, _ROW // 8), load(own, _ROW // 8 + 1)
            out_keys, out_values = load(own, _ROW // 8 + 2), load(own, _ROW // 8 + 3)
            if load(p, _PACKS):
                _pack(table, 0, keys, x, 1)
                keys = x
            if load(p, _PACKS + 1):
                _pack(table, 1, values, vx, 1)
                values = vx
            differ, more = _ZERO, False
            if length <= _SHORT:
                rk.read_codes(table, keys, length, work)
                _rank(work, scratch + _COUNTS, length, load(rk.unsigned(table), rk.USED))
                call(load(p, _TAKE), (scratch + _COUNTS, length, keys, values, y, vy))
                keys, values = y, vy
            else:
                store(own, rk.KEYS, keys)
                call(load(p, _FIND), (scratch, work, 0, 1))
                if load(own, _SURVEY // 8 + 1):
                    differ = load(rk.unsigned(scratch), _SURVEY // 8)
                more = differ != _ZERO or (value_size > 0 and values == 0)
            while more:
                differ = _next_digit(scratch, differ)
                more = differ != _ZERO
                target = y if keys == x else x
                value_target = vy if values == vx else vx
                if not more:  # the last: straight to the outputs, where these are free
                    if not load(p, _PACKS + 2) and out_keys != keys:
                        target = out_keys
                    if not load(p, _PACKS + 3) and out_values != values:
                        value_target = out_values
                store(own, rk.KEYS, keys)
                store(own, rk.VALUES, values)
                store(own, rk.OUT_KEYS, target)
                store(own, rk.OUT_VALUES, value_target)
                call(load(p, _COUNT), (scratch, work, 0, 1))
                call(load(p, _PLACE), (scratch, work, 0, 1))
                call(load(p, _MOVE), (scratch, work, 0, 1))
                keys, values = target, value_target
            if load(p, _PACKS + 2):
                _pack(table, 2, out_keys, keys, 0)
            elif out_keys and out_keys != keys:
                copy_bytes(out_keys, keys, length * size)
            if load(p, _PACKS + 3):
                _pack(table, 3, out_values, values, 0)
            elif out_values and out_values != values:
                copy_bytes(out_values, values, length * value_size)

    return kernel
