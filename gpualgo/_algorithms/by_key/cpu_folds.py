"""Functions of an operator that fold runs of elements, part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.by_key.cpu_kernels import inline
from gpualgo._algorithms.by_key.cpu_parameters import (
    BEFORE,
    HAS_CARRY,
    HAS_VALUE,
    HEADS,
    LAST,
    MADE,
    NEXT,
    START_AT,
    VALUE,
    value_bytes,
)  # fmt: skip
from gpualgo._cpu.elements import storage
from gpualgo._cpu.leaves import leaves_of
from gpualgo._cpu.pointers import load, pointer_to, reader, store, writer

_words = pointer_to(types.intp)
_bytes = pointer_to(types.uint8)


def _join_functions(fn: Any, acc: np.dtype[Any]) -> tuple[Any, Any]:
    """Return a function that gives a part's open run, and one that passes it to later parts."""
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)

    def joined(record: int) -> Any:
        """Return the value of the run that is open at a part's end."""
        value = get(record + VALUE)
        if load(_words(record), HEADS) == 0 and load(_words(record), HAS_CARRY):
            value = fn(get(record + VALUE + gap), value)
        return value

    joined_ = inline(joined)

    def hand_on(record: int, count: int, size: int) -> None:
        for _ in range(count):
            p, q = _words(record), _words(record + size)
            put(record + size + VALUE + gap, joined_(record))
            store(q, HAS_CARRY, 1)
            store(q, BEFORE, load(p, BEFORE) + load(p, HEADS))
            record += size

    return joined_, inline(hand_on)


def reduce_kernel(fn: Any, acc: np.dtype[Any], has_init: bool) -> Callable[..., None]:
    """Return f(step, record, marks, xs, count, ys) of a reduction.

    It folds elements, of which those that begin a run are marked, and writes the aggregates of the
    runs that end.
    """
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)
    element = leaves_of(acc)
    pointers, fetch, emit = element.pointers, element.load, element.store
    joined, hand_on = _join_functions(fn, acc)

    def fold(step: int, record: int, marks: int, xs: int, count: int, ys: int) -> None:
        p = _words(record)
        if step == NEXT:
            hand_on(record, count, ys)
            return
        target = pointers(ys)
        if step == LAST:
            value = joined(record)
            emit(target, 0, fn(get(load(p, START_AT)), value) if has_init else value)
            return
        source, marked = pointers(xs), _bytes(marks)
        value, heads, num_written = get(record + VALUE), load(p, HEADS), 0
        has_value = load(p, HAS_VALUE)
        i = 0
        if heads == 0:
            while i < count and load(marked, i) == 0:
                value = fn(value, fetch(source, i)) if has_value else fetch(source, i)
                has_value = 1
                i += 1
            if i < count:
                if load(p, HAS_CARRY):
                    closed = get(record + VALUE + gap)
                    if has_value:
                        closed = fn(closed, value)
                    emit(target, 0, fn(get(load(p, START_AT)), closed) if has_init else closed)
                    num_written = 1
                value = fetch(source, i)
                has_value = heads = 1
                i += 1
        while i < count:
            item = fetch(source, i)
            if load(marked, i):
                emit(target, num_written, fn(get(load(p, START_AT)), value) if has_init else value)
                num_written += 1
                heads += 1
                value = item
            else:
                value = fn(value, item)
            i += 1
        put(record + VALUE, value)
        store(p, HAS_VALUE, has_value)
        store(p, HEADS, heads)
        store(p, MADE, num_written)

    return fold


def scan_kernel(
    fn: Any, acc: np.dtype[Any], has_init: bool, is_exclusive: bool
) -> Callable[..., None]:
    """Return f(step, record, marks, xs, count, ys) of a scan; writes results that are known."""
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)
    element = leaves_of(acc)
    pointers, fetch, emit = element.pointers, element.load, element.store
    _, hand_on = _join_functions(fn, acc)

    def fold(step: int, record: int, marks: int, xs: int, count: int, ys: int) -> None:
        p = _words(record)
        if step == NEXT:
            hand_on(record, count, ys)
            return
        target, source, marked = pointers(ys), pointers(xs), _bytes(marks)
        value, heads, has_value = get(record + VALUE), load(p, HEADS), load(p, HAS_VALUE)
        i = 0
        if heads == 0:
            has_carry, carry = load(p, HAS_CARRY), get(record + VALUE + gap)
            while i < count and load(marked, i) == 0:
                item = fetch(source, i)
                if is_exclusive and has_carry:
                    emit(target, i, fn(carry, value) if has_value else carry)
                value = fn(value, item) if has_value else item
                if not is_exclusive and has_carry:
                    emit(target, i, fn(carry, value))
                has_value = 1
                i += 1
        while i < count:
            item = fetch(source, i)
            if load(marked, i):
                heads += 1
                has_value = 1
                if is_exclusive:
                    emit(target, i, get(load(p, START_AT)))
                value = fn(get(load(p, START_AT)), item) if has_init else item
            else:
                if is_exclusive:
                    emit(target, i, value)
                value = fn(value, item)
            if not is_exclusive:
                emit(target, i, value)
            i += 1
        put(record + VALUE, value)
        store(p, HAS_VALUE, has_value)
        store(p, HEADS, heads)

    return fold
