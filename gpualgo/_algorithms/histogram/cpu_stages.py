"""Stages of a histogram: functions f(table, samples, slots, count) that find samples' slots.

A slot is a bin; one more slot is for samples that are not counted. The slots of 8-bit samples are
the samples themselves, whose counts are mapped to bins at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.histogram.cpu_parameters import (
    CELLS,
    HI,
    LAST,
    LEVELS,
    LO,
    NUM_VALUES,
    ORIGIN,
    OUTSIDE,
    SCALE,
    START,
    UPPER,
    VALUES,
    WIDTH,
)  # fmt: skip
from gpualgo._cpu.pointers import load, pointer_to, store

_words = pointer_to(types.intp)
_doubles = pointer_to(types.float64)
_slots = pointer_to(types.int32)


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
        origin, scale, last = load(p, ORIGIN), load(p, SCALE), load(p, LAST)
        start, width, lo, hi = load(p, START), load(p, WIDTH), load(p, LO), load(p, HI)
        outside = types.int32(load(p, OUTSIDE))
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
        origin, scale, last = load(p, ORIGIN), load(p, SCALE), load(p, LAST)
        first, shift, last_cell = load(q, ORIGIN), load(q, SCALE), types.int64(last)
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
        cells, values = _slots(load(q, CELLS)), as_x(load(q, VALUES))
        for i in range(count):
            store(_slots(slots), i, load(cells, types.intp(load(_slots(slots), i))))
        for level in range(load(q, LEVELS) - 1, -1, -1):
            step = types.int32(1 << level)
            for i in range(count):  # inner loop over samples: its steps are independent
                slot = load(_slots(slots), i)
                is_above = load(as_x(samples), i) >= load(values, types.intp(slot + step))
                store(_slots(slots), i, slot + step if is_above else slot)
        greatest = types.int32(load(q, NUM_VALUES) - 1)
        lower, upper = load(values, 0), load(as_x(table + 8 * UPPER), 0)
        outside = types.int32(load(p, OUTSIDE))
        for i in range(count):
            x = load(as_x(samples), i)
            slot = min(load(_slots(slots), i), greatest)
            store(_slots(slots), i, slot if (x >= lower) & (x <= upper) else outside)

    return find
