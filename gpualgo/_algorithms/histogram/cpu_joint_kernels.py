"""Kernels of joint and weighted histograms: map samples to slots, add to the slots' sums.

A slot is a bin of all dimensions; one more slot is for samples that are not counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
from numba import types

from gpualgo._algorithms.histogram import sums as at
from gpualgo._cpu.packing import call, dense_address, load, offset, pointer_to, store
from gpualgo._cpu.parameters import LEAF, START

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_words = pointer_to(types.int64)
_slots = pointer_to(types.int32)


def joint_kernel() -> Callable[..., None]:
    """Return the kernel that processes tasks: a row, and a split of its samples.

    Scratch memory holds slots, buffers of fields and computed samples, and at TABLES the sums: of
    all rows, or with a TARGET of one row, which is written there at the end and cleared.
    """
    combine = numba.njit(**_OPTIONS)(_combine)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        tables = scratch + load(p, at.TABLES)
        dims, rows = load(p, at.DIMS), load(p, at.ROWS)
        split, plane = load(p, at.SPLIT), load(p, at.PLANE)
        outer, inner, reads = load(p, at.OUTER), load(p, at.INNER), load(p, at.READS)
        addresses, computed = scratch + load(p, at.PLACES), scratch + load(p, at.COMPUTED)
        stages = table + 8 * at.TAIL
        outer_at = stages + 8 * at.STAGE_SIZE * dims
        inner_at = outer_at + 8 * outer
        fields = inner_at + 8 * inner
        dim_slots = scratch + at.SLOT_BYTES
        for task in range(first, last):
            part = task // rows
            row = task - part * rows
            sums = tables + 8 * at.HEAD
            if not load(p, at.TARGET):
                sums += 8 * row * load(p, at.SLOTS)
            end = min(load(p, at.LENGTH), (part + 1) * split)
            for begin in range(part * split, end, at.MOST):
                count = min(at.MOST, end - begin)
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
                if load(p, at.COMPUTE):
                    call(load(p, at.COMPUTE), (addresses, computed, count))
                for k in range(dims):
                    q = _words(stages + 8 * at.STAGE_SIZE * k)
                    base, target = load(_words(addresses), k), scratch if k == 0 else dim_slots
                    call(load(q, at.STAGE), (load(q, at.STAGE_TABLE), base, target, count))
                    if k == 0:
                        num_bins = load(q, at.BINS)
                    else:
                        num_bins = combine(scratch, dim_slots, num_bins, load(q, at.BINS), count)
                call(load(p, at.ADD), (tables, sums, plane, scratch, weights, count))
            if load(p, at.TARGET):
                target = load(p, at.TARGET) + row * load(p, at.ROW_BYTES)
                call(load(p, at.FINISH), (tables, sums, plane, 0, load(p, at.SLOTS), target))
                store(_words(tables), at.LOW, at.NO_LOW)
                store(_words(tables), at.HIGH, at.NO_HIGH)
                store(_words(tables), at.SPECIALS, 0)

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
