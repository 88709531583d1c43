"""Kernels of reductions and scans by index on the CPU.

A reduction has one table per share, joined in order; many results that have initial values need no
tables. A scan has one table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.by_index import problem as at
from gpualgo._cpu.fields import access_by_index
from gpualgo._cpu.packing import load, pointer_to, storage, store

_words, _bytes = pointer_to(types.intp), pointer_to(types.uint8)


def fold_kernel(fn: Any, acc: np.dtype[Any], index: np.dtype[Any]) -> Callable[..., None]:
    fields = access_by_index(acc)
    as_a, as_index = pointer_to(storage(acc)), pointer_to(storage(index))
    pointers, get = fields.pointers, fields.load

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        indices, x = as_index(load(p, at.INDICES)), pointers(table + 8 * at.X)
        values, marks = as_a(load(p, at.VALUES)), _bytes(load(p, at.MARKS))
        size, share, count = load(p, at.SIZE), load(p, at.SHARE_ITEMS), load(p, at.NUM_ITEMS)
        for task in range(first_task, last_task):
            for i in range(task * share, min(count, (task + 1) * share)):
                k = load(indices, i)
                if types.uint64(k) < types.uint64(size):  # a negative index becomes too large
                    slot = task * size + types.intp(k)
                    # Loads the value before it is known to exist: for plain sums LLVM then makes no
                    # branch, which would be mispredicted if many results have few elements.
                    value, previous, has_one = get(x, i), load(values, slot), load(marks, slot)
                    store(marks, slot, types.uint8(1))
                    store(values, slot, fn(previous, value) if has_one else value)

    return kernel


def direct_kernel(fn: Any, acc: np.dtype[Any], index: np.dtype[Any]) -> Callable[..., None]:
    """Return the kernel that folds all elements into the initial values, without tables."""
    fields = access_by_index(acc)
    as_a, as_index = pointer_to(storage(acc)), pointer_to(storage(index))
    pointers, get, put, number = fields.pointers, fields.load, fields.store, fields.number

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        indices, x = as_index(load(p, at.INDICES)), pointers(table + 8 * at.X)
        out = pointers(table + 8 * (at.X + number))
        start, step = as_a(load(p, at.START)), load(p, at.START_STEP)
        size, count = load(p, at.SIZE), load(p, at.NUM_ITEMS)
        for k in range(size):
            put(out, k, load(start, step * k))
        for i in range(count):
            k = load(indices, i)
            if types.uint64(k) < types.uint64(size):  # a negative index becomes too large
                put(out, types.intp(k), fn(get(out, types.intp(k)), get(x, i)))

    return kernel


def scan_kernel(
    fn: Any, acc: np.dtype[Any], index: np.dtype[Any], is_exclusive: bool
) -> Callable[..., None]:
    """Return the kernel that scans all elements in order; the table holds each index's last value.

    All indices are in range. An exclusive scan has an initial value.
    """
    fields = access_by_index(acc)
    as_a, as_index = pointer_to(storage(acc)), pointer_to(storage(index))
    pointers, get, put, number = fields.pointers, fields.load, fields.store, fields.number

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        indices, x = as_index(load(p, at.INDICES)), pointers(table + 8 * at.X)
        out = pointers(table + 8 * (at.X + number))
        values, marks = as_a(load(p, at.VALUES)), _bytes(load(p, at.MARKS))
        start, count = as_a(load(p, at.START)), load(p, at.NUM_ITEMS)
        if load(p, at.IS_START):
            for k in range(load(p, at.SIZE)):
                store(values, k, load(start, 0))
                store(marks, k, types.uint8(1))
        for i in range(count):
            slot = types.intp(load(indices, i))
            value, previous, has_one = get(x, i), load(values, slot), load(marks, slot)
            following = fn(previous, value) if has_one else value
            store(marks, slot, types.uint8(1))
            store(values, slot, following)
            put(out, i, previous if is_exclusive else following)

    return kernel


def join_kernel(fn: Any, acc: np.dtype[Any]) -> Callable[..., None]:
    fields, as_a = access_by_index(acc), pointer_to(storage(acc))
    pointers, put, number = fields.pointers, fields.store, fields.number
    indices_per_task = at.JOINED

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        values, marks = as_a(load(p, at.VALUES)), _bytes(load(p, at.MARKS))
        out = pointers(table + 8 * (at.X + number))
        start, step = as_a(load(p, at.START)), load(p, at.START_STEP)
        is_start, size, shares = load(p, at.IS_START), load(p, at.SIZE), load(p, at.NUM_SHARES)
        for k in range(first_task * indices_per_task, min(size, last_task * indices_per_task)):
            total, is_empty = load(start, step * k), not is_start
            has_none = True
            for share in range(shares):
                if load(marks, share * size + k):
                    value = load(values, share * size + k)
                    total = value if is_empty else fn(total, value)
                    is_empty = has_none = False
            put(out, k, load(start, step * k) if has_none else total)

    return kernel
