"""Kernels of histograms on the CPU: map samples to slots, and count the slots or add to their sums.

A slot is the index of a counter in a row's table. A stage finds slots; it is
called by address, so that these kernels are compiled once for all dtypes and bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.histogram import problem as at
from gpualgo._cpu.packing import call, dense_address, load, offset, pointer_to, store
from gpualgo._cpu.plan import LEAF, START

# --- Joint and weighted histograms: a slot is a bin of all dimensions; one more slot is for samples
# that are not counted.

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_words = pointer_to(types.intp)
_slots = pointer_to(types.int32)


def joint_kernel() -> Callable[..., None]:
    """Return the kernel that processes tasks: a row, and a share of its samples.

    Scratch memory holds slots, buffers of fields and computed samples. TABLES has a table for each
    share and row.
    """
    combine = numba.njit(**_OPTIONS)(_combine)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        dims, rows, split = load(p, at.JOINT_DIMS), load(p, at.JOINT_ROWS), load(p, at.JOINT_SPLIT)
        outer, inner, reads = (
            load(p, at.JOINT_OUTER),
            load(p, at.JOINT_INNER),
            load(p, at.JOINT_READS),
        )
        addresses, computed = (
            scratch + load(p, at.JOINT_PLACES),
            scratch + load(p, at.JOINT_COMPUTED),
        )
        stages = table + 8 * at.JOINT_TAIL
        outer_at = stages + 8 * at.JOINT_STAGE_SIZE * dims
        inner_at = outer_at + 8 * outer
        fields = inner_at + 8 * inner
        dim_slots = scratch + at.JOINT_SLOT_BYTES
        for task in range(first, last):
            part = task // rows
            row = task - part * rows
            sums = load(p, at.JOINT_TABLES)
            sums += part * load(p, at.JOINT_SHARE_BYTES) + row * load(p, at.JOINT_ROW_BYTES)
            end = min(load(p, at.JOINT_LENGTH), (part + 1) * split)
            for begin in range(part * split, end, at.JOINT_MOST):
                count = min(at.JOINT_MOST, end - begin)
                weights = num_bins = 0
                for k in range(reads):
                    field = fields + 8 * k * (LEAF + outer + inner)
                    strides = field + 8 * LEAF
                    base = load(_words(field), START) + offset(row, outer, outer_at, strides)
                    strides += 8 * outer
                    weights = dense_address(
                        field, scratch, base, begin, count, inner, inner_at, strides
                    )
                    store(_words(addresses), k, weights)
                if load(p, at.JOINT_COMPUTE):
                    call(load(p, at.JOINT_COMPUTE), (addresses, computed, count))
                for k in range(dims):
                    q = _words(stages + 8 * at.JOINT_STAGE_SIZE * k)
                    base, target = load(_words(addresses), k), scratch if k == 0 else dim_slots
                    call(
                        load(q, at.JOINT_STAGE),
                        (load(q, at.JOINT_STAGE_TABLE), base, target, count),
                    )
                    if k == 0:
                        num_bins = load(q, at.JOINT_BINS)
                    else:
                        num_bins = combine(
                            scratch, dim_slots, num_bins, load(q, at.JOINT_BINS), count
                        )
                call(load(p, at.JOINT_ADD), (sums, scratch, weights, count))

    return kernel


def _combine(slots: int, dim_slots: int, num_bins: int, bins: int, count: int) -> int:
    """Combine slots with those of one more dimension; the greatest slot means not counted."""
    last, width = types.int32(num_bins), types.int32(bins)
    total = types.int32(last * width)
    for i in range(count):
        slot, index = load(_slots(slots), i), load(_slots(dim_slots), i)
        is_inside = (slot != last) & (index != width)
        store(_slots(slots), i, types.int32(slot * width + index) if is_inside else total)
    return num_bins * bins


def finishing_kernel() -> Callable[..., None]:
    def kernel(table: int, unused: int, first: int, last: int) -> None:
        p = _words(table)
        target = load(p, 4) + first * load(p, 5)
        call(load(p, 0), (load(p, 1), load(p, 2), load(p, 3), first, last, target))

    return kernel


# --- Counts of one sample each.


def counting_kernel(element: Any) -> Callable[..., None]:
    """Return the kernel that counts tasks of samples in tables of counters of type `element`.

    A task is a group of rows, interleaved sample by sample, and a split of their samples. With a
    TARGET, a task is a whole group, whose tables start at zero and are written to the target at the
    end. Without it, a thread's tasks share tables of all rows, which the caller adds up.
    """
    size = element.bitwidth // 8
    clear, tally, flush = (
        numba.njit(**_OPTIONS)(write(pointer_to(element), element))
        for write in (_clear, _tally, _flush)
    )

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        groups, split, pack = load(p, at.GROUPS), load(p, at.SPLIT), load(p, at.PACK)
        outer, inner = load(p, at.OUTER), load(p, at.INNER)
        outer_at = table + 8 * at.TAIL
        inner_at = outer_at + 16 * outer
        counters = load(p, at.GROUP_ROWS) * load(p, at.COPIES) * load(p, at.SLOTS)
        for task in range(first, last):
            part = task // groups
            group = task - part * groups
            tables = scratch + at.HEAD_BYTES
            if load(p, at.TARGET):
                clear(tables, counters)
            else:
                tables += group * counters * size
            start = load(p, at.X) + offset(group, outer, outer_at, outer_at + 8 * outer)
            end = min(load(p, at.LENGTH), (part + 1) * split)
            for begin in range(part * split, end, load(p, at.STEP)):
                count = min(load(p, at.STEP), end - begin)
                if pack:
                    samples = scratch + at.BUFFER
                    dims = (inner_at, inner_at + 8 * inner)
                    call(pack, (samples, start, begin, count, inner, *dims, 1))
                else:
                    samples = start + begin * load(p, at.X_SIZE)
                call(load(p, at.STAGE), (load(p, at.STAGE_TABLE), samples, scratch, count))
                tally(scratch, load(p, at.TABLES), tables, count)
            if load(p, at.TARGET):
                for row in range(load(p, at.GROUP_ROWS)):
                    flush(table, tables, row, group * load(p, at.GROUP_ROWS) + row)

    return kernel


def _clear(as_counters: Any, element: Any) -> Callable[..., None]:
    def clear(tables: int, count: int) -> None:
        for i in range(count):
            store(as_counters(tables), i, element(0))

    return clear


def _tally(as_counters: Any, element: Any) -> Callable[..., None]:
    one = element(1)

    def tally(slots: int, offsets: int, tables: int, count: int) -> None:
        """Count each slot in the table at the sample's offset: its row's, one of several copies."""
        for i in range(count):
            j = types.intp(load(_slots(slots), i)) + load(_slots(offsets), i)
            store(as_counters(tables), j, load(as_counters(tables), j) + one)

    return tally


def _flush(as_counters: Any, element: Any) -> Callable[..., None]:
    size = element.bitwidth // 8
    as_result = pointer_to(types.int64)

    def flush(table: int, tables: int, row: int, target_row: int) -> None:
        """Write one row's counts, the sums of its copies, to the target."""
        p = _words(table)
        slots, copies, bins = load(p, at.SLOTS), load(p, at.COPIES), load(p, at.BINS)
        target = as_result(load(p, at.TARGET) + target_row * bins * 8)
        bin_of_slot = load(p, at.BIN_OF_SLOT)
        if bin_of_slot:
            for i in range(bins):
                store(target, i, 0)
        for i in range(slots if bin_of_slot else bins):
            total = 0
            for k in range(copies):
                start = tables + (row * copies + k) * slots * size
                total += types.int64(load(as_counters(start), i))
            if not bin_of_slot:
                store(target, i, total)
            elif load(_slots(bin_of_slot), i) >= 0:
                j = types.intp(load(_slots(bin_of_slot), i))
                store(target, j, load(target, j) + total)

    return flush


# --- Functions that add a run's weights to the sums in a table.


def add_ones() -> Callable[..., None]:
    as_counts = pointer_to(types.int64)

    def add(table: int, slots: int, weights: int, count: int) -> None:
        for i in range(count):
            slot = types.intp(load(_slots(slots), i))
            store(as_counts(table), slot, load(as_counts(table), slot) + 1)

    return add


def add_weights(element: Any, parts: int) -> Callable[..., None]:
    """Return the function that adds 64-bit integers, which wrap, or floats in `parts`."""
    is_integer = isinstance(element, types.Integer)
    wide = types.int64 if is_integer else types.float64
    as_sums, as_x = pointer_to(wide), pointer_to(element)

    def add(table: int, slots: int, weights: int, count: int) -> None:
        for i in range(count):
            for part in range(parts):
                slot = types.intp(load(_slots(slots), i)) * parts + part
                weight = wide(load(as_x(weights), i * parts + part))
                store(as_sums(table), slot, load(as_sums(table), slot) + weight)

    return add


# --- Stages of a histogram: functions f(table, samples, slots, count) that find samples' slots.
#
# A slot is a bin; one more slot is for samples that are not counted. The slots of 8-bit
# samples are the samples themselves, whose counts are mapped to bins at the end.

_doubles = pointer_to(types.float64)


def by_value(element: Any) -> Callable[..., None]:
    """Return the stage whose slots are the samples' own bit patterns."""
    as_x = pointer_to(element)

    def find(table: int, samples: int, slots: int, count: int) -> None:
        for i in range(count):
            store(_slots(slots), i, types.int32(load(as_x(samples), i)))

    return find


def by_pattern(element: Any) -> Callable[..., None]:
    """Return the stage that looks up the slot of each bit pattern in a table."""
    as_x = pointer_to(element)

    def find(table: int, samples: int, slots: int, count: int) -> None:
        for i in range(count):
            pattern = types.intp(load(as_x(samples), i))
            store(_slots(slots), i, load(_slots(table), pattern))

    return find


def even(element: Any, narrow_sum: bool, narrow_edge: bool) -> Callable[..., None]:
    """Return the stage for even bins: an approximate bin, corrected by its two edges.

    Both edges are computed for every sample, as bins.py describes: without a branch LLVM vectorises
    the loop, and samples on edges take no longer than others. `narrow_sum` rounds the edges'
    product and sum to float32, `narrow_edge` the edges themselves.
    """
    as_x = pointer_to(element)
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


def _bits_of(_typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


_bits = intrinsic(_bits_of)


def search(element: Any, by_bits: bool) -> Callable[..., None]:
    """Return the stage that searches the thresholds of any bins without branches on samples.

    A sample's cell, of equal width in its value or (by_bits) in the bits of its float64, gives the
    greatest bin that may start before the cell; LEVELS halving steps find the bin from there.
    VALUES are the thresholds, padded with maximum values so that no step leaves the table.
    """
    as_x = pointer_to(element)

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
