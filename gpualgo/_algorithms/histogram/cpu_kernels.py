"""Kernels of histograms on the CPU: map samples to slots, and count the slots or add to their sums.

A slot is the index of a counter in a row's table: a bin of all dimensions, and one more slot is for
samples that are not counted. Stages and sinks are called by address, so that one kernel is compiled
once for all dtypes, bins and sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from gpualgo._algorithms.histogram import problem as at
from gpualgo._cpu.packing import (
    call,
    dense_address,
    inline,
    instruction,
    load,
    offset,
    pointer_to,
    storage,
    store,
)
from gpualgo._cpu.plan import LEAF, START

_words, _slots, _counts = map(pointer_to, (types.intp, types.int32, types.uint32))
_ONE = np.uint32(1)


@inline
def _combine(slots: int, dim_slots: int, num_bins: int, bins: int, count: int) -> int:
    """Combine slots with those of one more dimension; the greatest slot means not counted."""
    last, width = types.int32(num_bins), types.int32(bins)
    total = types.int32(last * width)
    for i in range(count):
        slot, index = load(_slots(slots), i), load(_slots(dim_slots), i)
        is_inside = (slot != last) & (index != width)
        store(_slots(slots), i, types.int32(slot * width + index) if is_inside else total)
    return num_bins * bins


@inline
def _place(slots: int, places: int, count: int) -> None:
    """Add to each slot where the table begins that counts the sample."""
    for i in range(count):
        store(_slots(slots), i, load(_slots(slots), i) + load(_slots(places), i))


@inline
def _clear(tables: int, count: int) -> None:
    for i in range(count):
        store(_words(tables), i, 0)


def histogram_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Process tasks: shares of the samples of a group of rows.

    Scratch memory holds slots, buffers of fields, computed samples and at TABLES the group's
    tables, which start at zero and are written to the target at the end. The rows of a group are
    interleaved sample by sample.
    """
    p = _words(table)
    dims, groups, split = load(p, at.DIMS), load(p, at.GROUPS), load(p, at.SPLIT)
    outer, inner, reads = load(p, at.OUTER), load(p, at.INNER), load(p, at.READS)
    addresses, computed = scratch + load(p, at.ADDRESSES), scratch + load(p, at.COMPUTED)
    tables, dim_slots = scratch + load(p, at.TABLES), scratch + at.SLOT_BYTES
    rows, copies, slots = load(p, at.ROWS), load(p, at.COPIES), load(p, at.SLOTS)
    bins, stages = load(p, at.BINS_OF_SLOTS), table + 8 * at.TAIL
    outer_at = stages + 8 * at.STAGE_SIZE * dims
    inner_at = outer_at + 8 * outer
    fields = inner_at + 8 * inner
    for task in range(first, last):
        part = task // groups
        group = task - part * groups
        _clear(tables, load(p, at.TABLES_SIZE))
        end = min(load(p, at.LENGTH), (part + 1) * split)
        for begin in range(part * split, end, load(p, at.STEP)):
            count = min(load(p, at.STEP), end - begin)
            weights = num_bins = 0
            for k in range(reads):
                field = fields + 8 * k * (LEAF + 1 + outer + inner)
                strides = field + 8 * (LEAF + 1)
                base = load(_words(field), START) + load(_words(field), LEAF)
                base += offset(group, outer, outer_at, strides)
                strides += 8 * outer
                weights = dense_address(
                    field, scratch, base, begin, count, inner, inner_at, strides
                )
                store(_words(addresses), k, weights)
            if load(p, at.COMPUTE):
                call(load(p, at.COMPUTE), (addresses, computed, count))
            for k in range(dims):
                q = _words(stages + 8 * at.STAGE_SIZE * k)
                base, target = load(_words(addresses), k), scratch if k == 0 else dim_slots
                call(load(q, at.STAGE), (load(q, at.STAGE_TABLE), base, target, count))
                if k == 0:
                    num_bins = load(q, at.STAGE_BINS)
                else:
                    num_bins = _combine(scratch, dim_slots, num_bins, load(q, at.STAGE_BINS), count)
            if load(p, at.PLACES):
                _place(scratch, load(p, at.PLACES), count)
            call(load(p, at.ADD), (tables, scratch, weights, count, load(p, at.COPY_BYTES)))
        target = load(p, at.TARGET) + task * load(p, at.TASK_BYTES)
        call(load(p, at.FLUSH), (tables, target, bins, rows, copies, slots, load(p, at.NUM_SUMS)))


# --- Sinks: functions that add a run to tables, and write tables to the target. A row's table has
# `slots` numbers, of which the target gets the first `count`.


def add_ones(tables: int, slots: int, weights: int, count: int, copy_bytes: int) -> None:
    """Count each slot in its row's table, or in two copies of it in turn.

    Then equal neighbours need not wait for each other.
    """
    even, odd = _counts(tables), _counts(tables + copy_bytes)
    for i in range(0, count - 1, 2):
        j, k = types.intp(load(_slots(slots), i)), types.intp(load(_slots(slots), i + 1))
        store(even, j, load(even, j) + _ONE)
        store(odd, k, load(odd, k) + _ONE)
    if count & 1:
        j = types.intp(load(_slots(slots), count - 1))
        store(even, j, load(even, j) + _ONE)


def add_weights(dtype: np.dtype[Any], parts: int) -> Callable[..., None]:
    """Return the function that adds 64-bit integers, which wrap, or floats in `parts`."""
    wide = types.int64 if dtype.kind in "iu" else types.float64
    as_sums, as_x = pointer_to(wide), pointer_to(storage(dtype))

    def add(tables: int, slots: int, weights: int, count: int, copy_bytes: int) -> None:
        for i in range(count):
            for part in range(parts):
                j = types.intp(load(_slots(slots), i)) * parts + part
                weight = wide(load(as_x(weights), i * parts + part))
                store(as_sums(tables), j, load(as_sums(tables), j) + weight)

    return add


def flush(number: np.dtype[Any]) -> Callable[..., None]:
    """Return the function that writes the sums of the copies of each row's table.

    `bins`: 0, or the bins of the slots, of which only those below `count` are written.
    """
    wide = types.float64 if number.kind == "f" else types.int64
    as_numbers, as_target, size = pointer_to(storage(number)), pointer_to(wide), number.itemsize

    def write(
        tables: int, target: int, bins: int, rows: int, copies: int, slots: int, count: int
    ) -> None:
        for row in range(rows):
            end = target + row * count * 8
            for i in range(count):
                store(as_target(end), i, wide(0))
            for copy in range(copies):
                start = tables + (row * copies + copy) * slots * size
                if bins:
                    for i in range(slots):
                        k = types.intp(load(_slots(bins), i))
                        if k < count:
                            number = wide(load(as_numbers(start), i))
                            store(as_target(end), k, load(as_target(end), k) + number)
                else:
                    for i in range(count):
                        number = wide(load(as_numbers(start), i))
                        store(as_target(end), i, load(as_target(end), i) + number)

    return write


# --- Stages of a histogram: functions f(table, samples, slots, count) that find samples' slots.
#
# A slot is a bin of one dimension; one more slot is for samples that are not counted.

_doubles = pointer_to(types.float64)


def by_value(dtype: np.dtype[Any]) -> Callable[..., None]:
    """Return the stage whose slots are the samples' own bit patterns."""
    as_x = pointer_to(storage(dtype))

    def find(table: int, samples: int, slots: int, count: int) -> None:
        for i in range(count):
            store(_slots(slots), i, types.int32(load(as_x(samples), i)))

    return find


def by_pattern(dtype: np.dtype[Any]) -> Callable[..., None]:
    """Return the stage that looks up the slot of each bit pattern in a table."""
    as_x = pointer_to(storage(dtype))

    def find(table: int, samples: int, slots: int, count: int) -> None:
        for i in range(count):
            pattern = types.intp(load(as_x(samples), i))
            store(_slots(slots), i, load(_slots(table), pattern))

    return find


def even(dtype: np.dtype[Any], narrow_sum: bool, narrow_edge: bool) -> Callable[..., None]:
    """Return the stage for even bins: an approximate bin, corrected by its two edges.

    Both edges are computed for every sample, as bins.py describes: without a branch LLVM vectorises
    the loop, and samples on edges take no longer than others. `narrow_sum` rounds the edges'
    product and sum to float32, `narrow_edge` the edges themselves.
    """
    as_x = pointer_to(storage(dtype))
    f4, f8 = types.float32, types.float64

    def find(table: int, samples: int, slots: int, count: int) -> None:
        p = _doubles(table)
        origin, scale, last = load(p, at.ORIGIN), load(p, at.SCALE), load(p, at.LAST)
        start, width, lo, hi = load(p, at.START), load(p, at.WIDTH), load(p, at.LO), load(p, at.HI)
        outside = types.int32(load(p, at.OUTSIDE))
        for i in range(count):
            x = f8(load(as_x(samples), i))
            index = min(max(np.floor((x - origin) * scale), 0.0), last)
            below, above = index * width, (index + 1.0) * width
            if narrow_sum:
                below, above = f8(f4(below)), f8(f4(above))
            below, above = below + start, above + start
            if narrow_sum or narrow_edge:
                below, above = f8(f4(below)), f8(f4(above))
            if x < below:
                index -= 1.0
            elif (x >= above) & (index < last):
                index += 1.0
            is_inside = (x >= lo) & (x <= hi)
            store(_slots(slots), i, types.int32(index) if is_inside else outside)

    return find


@instruction(types.int64, types.float64)
def _bits(_context: Any, builder: Any, value: Any) -> Any:
    return builder.bitcast(value, ir.IntType(64))


def search(dtype: np.dtype[Any], by_bits: bool) -> Callable[..., None]:
    """Return the stage that searches the thresholds of any bins without branches on samples.

    A sample's cell, of equal width in its value or (by_bits) in the bits of its float64, gives the
    greatest bin that may start before the cell; LEVELS halving steps find the bin from there.
    VALUES are the thresholds, padded with maximum values so that no step leaves the table.
    """
    as_x = pointer_to(storage(dtype))

    def find(table: int, samples: int, slots: int, count: int) -> None:
        p, q = _doubles(table), _words(table)
        origin, scale, last = load(p, at.ORIGIN), load(p, at.SCALE), load(p, at.LAST)
        first, shift, last_cell = load(q, at.ORIGIN), load(q, at.SCALE), types.int64(last)
        for i in range(count):
            x = types.float64(load(as_x(samples), i))
            if by_bits:
                bits = _bits(x + 0.0)  # -0.0 becomes 0.0
                cell = ((bits ^ ((bits >> 63) & 0x7FFF_FFFF_FFFF_FFFF)) >> shift) - first
                store(_slots(slots), i, types.int32(min(max(cell, 0), last_cell)))
            else:
                position = (x - origin) * scale
                position = position if position > 0.0 else 0.0  # NaN too
                store(_slots(slots), i, types.int32(position if position < last else last))
        cells, values = _slots(load(q, at.CELLS)), as_x(load(q, at.VALUES))
        for i in range(count):
            store(_slots(slots), i, load(cells, types.intp(load(_slots(slots), i))))
        for level in range(load(q, at.LEVELS) - 1, -1, -1):
            step = types.int32(1 << level)
            for i in range(count):  # inner loop over samples: its steps are independent
                slot = load(_slots(slots), i)
                is_above = load(as_x(samples), i) >= load(values, types.intp(slot + step))
                store(_slots(slots), i, slot + step if is_above else slot)
        greatest = types.int32(load(q, at.NUM_VALUES) - 1)
        lower, upper = load(values, 0), load(as_x(table + 8 * at.UPPER), 0)
        outside = types.int32(load(p, at.OUTSIDE))
        for i in range(count):
            x = load(as_x(samples), i)
            slot = min(load(_slots(slots), i), greatest)
            store(_slots(slots), i, slot if (x >= lower) & (x <= upper) else outside)

    return find
