"""Kernels by key on the CPU: folds of runs, and the loop over chunks that calls them.

Each part of the elements is folded on its own, from the start of its last run or from its first
element. The run that is open before a part is joined with the part's elements before its first run.
Results therefore do not depend on which thread processes a part, nor when. The loop serves all
dtypes and operators, and is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.by_key import problem as at
from gpualgo._algorithms.by_key.problem import value_bytes
from gpualgo._algorithms.select import problem as select_at
from gpualgo._algorithms.select.cpu_kernels import copy_out, input_entries, load_chunk
from gpualgo._cpu.fields import access_by_index
from gpualgo._cpu.packing import call, inline, load, pointer_to, reader, storage, store, writer

_words = pointer_to(types.intp)
_bytes = pointer_to(types.uint8)


@inline
def _place(
    e: Any, scratch: int, records: int, start: int, earlier: int, outputs: int, is_hidden: bool
) -> None:
    """Store the addresses of values and of results: in the output, or in scratch memory."""
    xs, ys = _words(scratch + load(e, at.XS)), _words(scratch + load(e, at.YS))
    keys, slots, results = load(e, at.KEYS), _words(scratch), scratch + load(e, at.RESULTS)
    for k in range(keys, outputs):
        record = _words(records + 8 * k * select_at.WRITTEN)
        size = load(record, select_at.SIZE)
        store(xs, k - keys, load(slots, k) + earlier * size)
        if is_hidden or load(e, at.REDUCES) or load(record, select_at.PACK):
            store(ys, k - keys, results)
        else:
            store(ys, k - keys, load(record, select_at.OUT) + start * size)
        results += at.CHUNK * size


@inline
def _write(
    table: int, scratch: int, records: int, e: Any, start: int, earlier: int, count: int,
    state: int, kept: int,
) -> None:  # fmt: skip
    """Write a chunk's keys and results to the output; `kept` runs begin in the chunk."""
    p, s, slots = _words(table), _words(state), _words(scratch)
    keys, outputs = load(e, at.KEYS), load(p, select_at.OUTPUTS)
    results = scratch + load(e, at.RESULTS)
    num_begun = load(s, at.BEFORE) + load(s, at.HEADS)
    for k in range(outputs):
        record = records + 8 * k * select_at.WRITTEN
        size = load(_words(record), select_at.SIZE)
        if k < keys:
            if load(e, at.REDUCES):
                packed = scratch + load(p, select_at.PACKED)
                source = load(slots, k) + earlier * size
                marks = scratch + load(p, select_at.MARKS) + earlier
                call(load(_words(record), select_at.PICK), (packed, source, marks, count, 1))
                copy_out(record, packed, num_begun - kept, kept)
            continue
        if load(e, at.REDUCES):
            num_written = load(s, at.NUM_WRITTEN)
            copy_out(record, results, num_begun - 1 - num_written, num_written)
        elif load(_words(record), select_at.PACK):
            copy_out(record, results, start, count)
        results += at.CHUNK * size


@inline
def _close(table: int, scratch: int, records: int, e: Any, state: int) -> None:
    p, s = _words(table), _words(state)
    keys, results = load(e, at.KEYS), scratch + load(e, at.RESULTS)
    total = load(s, at.BEFORE) + load(s, at.HEADS)
    store(_words(load(e, at.TOTAL)), 0, total)
    call(load(e, at.FOLD), (at.LAST, state, 0, 0, 0, scratch + load(e, at.YS)))
    for k in range(keys, load(p, select_at.OUTPUTS)):
        record = records + 8 * k * select_at.WRITTEN
        copy_out(record, results, total - 1, 1)
        results += at.CHUNK * load(_words(record), select_at.SIZE)


def by_key_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Fold the runs of parts first to last and, unless COUNTS is set, write results."""
    p = _words(table)
    outputs, counts = load(p, select_at.OUTPUTS), load(p, select_at.COUNTS)
    records = input_entries(table) + 8 * load(p, select_at.INPUTS) * (
        select_at.READ + load(p, select_at.NDIM)
    )
    extra = records + 8 * select_at.WRITTEN * outputs
    e = _words(extra)
    for part in range(first, last):
        state = load(e, at.PARTS) + part * load(e, at.RECORD)
        if not load(e, at.PARTS):
            state = scratch + load(e, at.STATE)
            for i in range(at.VALUE // 8):
                store(_words(state), i, 0)
        s = _words(state)
        store(s, at.START_AT, load(e, at.INIT))
        store(s, at.HEADS, 0)
        store(s, at.HAS_VALUE, 0)
        start = part * load(p, select_at.PER_TASK)
        stop = min(start + load(p, select_at.PER_TASK), load(p, select_at.LENGTH))
        while start < stop:
            earlier = min(1, start)  # an element that is read for comparison only
            n = min(at.CHUNK - 1, stop - start)
            load_chunk(table, scratch, start - earlier, n + earlier)
            marks = scratch + load(p, select_at.MARKS)
            call(load(p, select_at.MARK), (marks, scratch, n + earlier))
            _place(e, scratch, records, start, earlier, outputs, counts != 0)
            heads_before, marks = load(s, at.HEADS), marks + earlier
            xs, ys = scratch + load(e, at.XS), scratch + load(e, at.YS)
            call(load(e, at.FOLD), (at.ELEMENTS, state, marks, xs, n, ys))
            if not counts:
                kept = load(s, at.HEADS) - heads_before
                _write(table, scratch, records, e, start, earlier, n, state, kept)
            start += n
        if load(e, at.IN_TURN) and part + 1 < load(e, at.NUM_PARTS):
            call(load(e, at.FOLD), (at.NEXT, state, 0, 0, 1, load(e, at.RECORD)))
        if load(e, at.REDUCES) and not counts and part + 1 == load(e, at.NUM_PARTS):
            _close(table, scratch, records, e, state)


def join_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Pass open runs from record to record, by the operator's fold function."""
    p = _words(table)
    call(load(p, 0), (at.NEXT, load(p, 1), 0, 0, load(p, 2), load(p, 3)))


# --- Functions of an operator that fold runs of elements, part by part.


def _join_functions(fn: Any, acc: np.dtype[Any]) -> tuple[Any, Any]:
    """Return a function that gives a part's open run, and one that passes it to later parts."""
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)

    @inline
    def joined(record: int) -> Any:
        """Return the value of the run that is open at a part's end."""
        value = get(record + at.VALUE)
        if load(_words(record), at.HEADS) == 0 and load(_words(record), at.HAS_CARRY):
            value = fn(get(record + at.VALUE + gap), value)
        return value

    @inline
    def hand_on(record: int, count: int, size: int) -> None:
        for _ in range(count):
            p, q = _words(record), _words(record + size)
            put(record + size + at.VALUE + gap, joined(record))
            store(q, at.HAS_CARRY, 1)
            store(q, at.BEFORE, load(p, at.BEFORE) + load(p, at.HEADS))
            record += size

    return joined, hand_on


def reduce_kernel(fn: Any, acc: np.dtype[Any], has_init: bool) -> Callable[..., None]:
    """Return f(step, record, marks, xs, count, ys) of a reduction.

    It folds elements, of which those that begin a run are marked, and writes the aggregates of the
    runs that end.
    """
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)
    element = access_by_index(acc)
    pointers, fetch, emit = element.pointers, element.load, element.store
    joined, hand_on = _join_functions(fn, acc)

    def fold(step: int, record: int, marks: int, xs: int, count: int, ys: int) -> None:
        p = _words(record)
        if step == at.NEXT:
            hand_on(record, count, ys)
            return
        target = pointers(ys)
        if step == at.LAST:
            value = joined(record)
            emit(target, 0, fn(get(load(p, at.START_AT)), value) if has_init else value)
            return
        source, marked = pointers(xs), _bytes(marks)
        value, heads, num_written = get(record + at.VALUE), load(p, at.HEADS), 0
        has_value = load(p, at.HAS_VALUE)
        i = 0
        if heads == 0:
            while i < count and load(marked, i) == 0:
                value = fn(value, fetch(source, i)) if has_value else fetch(source, i)
                has_value = 1
                i += 1
            if i < count:
                if load(p, at.HAS_CARRY):
                    closed = get(record + at.VALUE + gap)
                    if has_value:
                        closed = fn(closed, value)
                    emit(target, 0, fn(get(load(p, at.START_AT)), closed) if has_init else closed)
                    num_written = 1
                value = fetch(source, i)
                has_value = heads = 1
                i += 1
        while i < count:
            item = fetch(source, i)
            if load(marked, i):
                emit(
                    target, num_written, fn(get(load(p, at.START_AT)), value) if has_init else value
                )
                num_written += 1
                heads += 1
                value = item
            else:
                value = fn(value, item)
            i += 1
        put(record + at.VALUE, value)
        store(p, at.HAS_VALUE, has_value)
        store(p, at.HEADS, heads)
        store(p, at.NUM_WRITTEN, num_written)

    return fold


def scan_kernel(
    fn: Any, acc: np.dtype[Any], has_init: bool, is_exclusive: bool
) -> Callable[..., None]:
    """Return f(step, record, marks, xs, count, ys) of a scan; writes results that are known."""
    get, put, gap = reader(storage(acc)), writer(storage(acc)), value_bytes(acc.itemsize)
    element = access_by_index(acc)
    pointers, fetch, emit = element.pointers, element.load, element.store
    _, hand_on = _join_functions(fn, acc)

    def fold(step: int, record: int, marks: int, xs: int, count: int, ys: int) -> None:
        p = _words(record)
        if step == at.NEXT:
            hand_on(record, count, ys)
            return
        target, source, marked = pointers(ys), pointers(xs), _bytes(marks)
        value, heads, has_value = get(record + at.VALUE), load(p, at.HEADS), load(p, at.HAS_VALUE)
        i = 0
        if heads == 0:
            has_carry, carry = load(p, at.HAS_CARRY), get(record + at.VALUE + gap)
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
                    emit(target, i, get(load(p, at.START_AT)))
                value = fn(get(load(p, at.START_AT)), item) if has_init else item
            else:
                if is_exclusive:
                    emit(target, i, value)
                value = fn(value, item)
            if not is_exclusive:
                emit(target, i, value)
            i += 1
        put(record + at.VALUE, value)
        store(p, at.HAS_VALUE, has_value)
        store(p, at.HEADS, heads)

    return fold
