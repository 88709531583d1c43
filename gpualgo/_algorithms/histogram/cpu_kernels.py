"""Counting kernel of a histogram: maps samples to slots and counts the slots in tables.

A slot is the index of a counter in a row's table. A stage of cpu_stages.py finds slots; it is
called by address, so that this kernel is compiled once for all dtypes and bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from gpualgo._algorithms.histogram.cpu_parameters import (
    BIN_OF_SLOT,
    BINS,
    BUFFER,
    COPIES,
    GROUP_ROWS,
    GROUPS,
    HEAD_BYTES,
    INNER,
    LENGTH,
    OUTER,
    PACK,
    SLOTS,
    SPLIT,
    STAGE,
    STAGE_TABLE,
    STEP,
    TABLES,
    TAIL,
    TARGET,
    X_SIZE,
    X,
)  # fmt: skip
from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import call, load, pointer_to, store

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_words = pointer_to(types.intp)
_slots = pointer_to(types.int32)


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
        groups, split, pack = load(p, GROUPS), load(p, SPLIT), load(p, PACK)
        outer, inner = load(p, OUTER), load(p, INNER)
        outer_at = table + 8 * TAIL
        inner_at = outer_at + 16 * outer
        counters = load(p, GROUP_ROWS) * load(p, COPIES) * load(p, SLOTS)
        for task in range(first, last):
            part = task // groups
            group = task - part * groups
            tables = scratch + HEAD_BYTES
            if load(p, TARGET):
                clear(tables, counters)
            else:
                tables += group * counters * size
            start = load(p, X) + offset(group, outer, outer_at, outer_at + 8 * outer)
            end = min(load(p, LENGTH), (part + 1) * split)
            for begin in range(part * split, end, load(p, STEP)):
                count = min(load(p, STEP), end - begin)
                if pack:
                    samples = scratch + BUFFER
                    dims = (inner_at, inner_at + 8 * inner)
                    call(pack, (samples, start, begin, count, inner, *dims, 1))
                else:
                    samples = start + begin * load(p, X_SIZE)
                call(load(p, STAGE), (load(p, STAGE_TABLE), samples, scratch, count))
                tally(scratch, load(p, TABLES), tables, count)
            if load(p, TARGET):
                for row in range(load(p, GROUP_ROWS)):
                    flush(table, tables, row, group * load(p, GROUP_ROWS) + row)

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
        slots, copies, bins = load(p, SLOTS), load(p, COPIES), load(p, BINS)
        target = as_result(load(p, TARGET) + target_row * bins * 8)
        bin_of_slot = load(p, BIN_OF_SLOT)
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
