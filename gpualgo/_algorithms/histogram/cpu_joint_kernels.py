"""The kernels of joint and weighted histograms: samples become slots, slots get their sums.

A slot is a bin of all dimensions, with one more for samples that are not counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
from numba import types

from gpualgo._algorithms.histogram.cpu_joint_parameters import (
    ADD,
    BINS,
    COMPUTE,
    COMPUTED,
    DIMS,
    FINISH,
    HEAD,
    HIGH,
    INNER,
    LENGTH,
    LOW,
    MOST,
    NO_HIGH,
    NO_LOW,
    OUTER,
    PLACES,
    PLANE,
    READS,
    ROW_BYTES,
    ROWS,
    SLOT_BYTES,
    SLOTS,
    SPECIALS,
    SPLIT,
    STAGE,
    STAGE_SIZE,
    STAGE_TABLE,
    TABLES,
    TAIL,
    TARGET,
)  # fmt: skip
from gpualgo._cpu.packing import fetched, offset
from gpualgo._cpu.parameters import LEAF, START
from gpualgo._cpu.pointers import call, load, pointer_to, store

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_words = pointer_to(types.int64)
_slots = pointer_to(types.int32)


def joint_kernel() -> Callable[..., None]:
    """Write the kernel that adds up tasks: a row, and a split of its samples.

    Scratch memory has slots, what leaves and what is computed need, and at TABLES the tables: of
    all rows, or with a TARGET of one, which is written there in the end and cleared.
    """
    combine = numba.njit(**_OPTIONS)(_combine)

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        tables = scratch + load(p, TABLES)
        dims, rows, split, plane = load(p, DIMS), load(p, ROWS), load(p, SPLIT), load(p, PLANE)
        outer, inner, reads = load(p, OUTER), load(p, INNER), load(p, READS)
        places, computed = scratch + load(p, PLACES), scratch + load(p, COMPUTED)
        stages = table + 8 * TAIL
        outer_at = stages + 8 * STAGE_SIZE * dims
        inner_at = outer_at + 8 * outer
        leaves = inner_at + 8 * inner
        found = scratch + SLOT_BYTES
        for task in range(first, last):
            part = task // rows
            row = task - part * rows
            sums = tables + 8 * HEAD
            if not load(p, TARGET):
                sums += 8 * row * load(p, SLOTS)
            end = min(load(p, LENGTH), (part + 1) * split)
            for begin in range(part * split, end, MOST):
                count = min(MOST, end - begin)
                weights = before = 0
                for k in range(reads):
                    leaf = leaves + 8 * k * (LEAF + outer + inner)
                    strides = leaf + 8 * LEAF
                    at = load(_words(leaf), START) + offset(row, outer, outer_at, strides)
                    strides += 8 * outer
                    weights = fetched(leaf, scratch, at, begin, count, inner, inner_at, strides)
                    store(_words(places), k, weights)
                if load(p, COMPUTE):
                    call(load(p, COMPUTE), (places, computed, count))
                for k in range(dims):
                    q = _words(stages + 8 * STAGE_SIZE * k)
                    at, target = load(_words(places), k), scratch if k == 0 else found
                    call(load(q, STAGE), (load(q, STAGE_TABLE), at, target, count))
                    if k == 0:
                        before = load(q, BINS)
                    else:
                        before = combine(scratch, found, before, load(q, BINS), count)
                call(load(p, ADD), (tables, sums, plane, scratch, weights, count))
            if load(p, TARGET):
                target = load(p, TARGET) + row * load(p, ROW_BYTES)
                call(load(p, FINISH), (tables, sums, plane, 0, load(p, SLOTS), target))
                store(_words(tables), LOW, NO_LOW)
                store(_words(tables), HIGH, NO_HIGH)
                store(_words(tables), SPECIALS, 0)

    return kernel


def _combine(slots: int, found: int, before: int, bins: int, count: int) -> int:
    """Make slots of one dimension more; the greatest one says that a sample is not counted."""
    last, width = types.int32(before), types.int32(bins)
    total = types.int32(last * width)
    for i in range(count):
        slot, step = load(_slots(slots), i), load(_slots(found), i)
        is_inside = (slot != last) & (step != width)
        store(_slots(slots), i, types.int32(slot * width + step) if is_inside else total)
    return before * bins


def finishing_kernel() -> Callable[..., None]:
    """Write the kernel that finishes slots [first, last)."""

    def kernel(table: int, unused: int, first: int, last: int) -> None:
        p = _words(table)
        target = load(p, 4) + first * load(p, 5)
        call(load(p, 0), (load(p, 1), load(p, 2), load(p, 3), first, last, target))

    return kernel
