"""Kernels of segments on the CPU: tasks have equal numbers of elements plus segment ends.

Tasks divide the merge path of both lists (Merrill and Garland, "Merge-based parallel sparse
matrix-vector multiplication", SC16, doi:10.1109/SC.2016.57), so that a giant segment and millions
of empty ones are balanced alike. One thread joins the parts of a segment that several tasks share,
strictly from left to right. There may be more tasks than steps: the last ones are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.segments import problem as at
from gpualgo._cpu.fields import access_by_index
from gpualgo._cpu.packing import inline, load, pointer_to, storage, store

_words, _bytes = pointer_to(types.intp), pointer_to(types.uint8)
_TASK, _FAN, _CHAIN = at.TASK, at.FAN, at.CHAIN
_LEAST_IN_CHAINS = 4 * _FAN


@inline
def _segment_of(offsets: Any, num_segments: int, step: int) -> int:
    """Return the segment at a step of the merge path of elements and segment ends."""
    origin, low, high = load(offsets, 0), 0, num_segments
    while low < high:
        middle = (low + high) // 2
        if load(offsets, middle + 1) - origin + middle + 1 <= step:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _task_range(table: int, task: int) -> Any:
    """Return a task's first segment and element, last segment, and end of elements."""
    p = _words(table)
    offsets, count = _words(load(p, at.OFFSETS)), load(p, at.NUM_SEGMENTS)
    origin = load(offsets, 0)
    steps = load(offsets, count) - origin + count
    start, end = task * _TASK, min(steps, (task + 1) * _TASK)
    first, last = _segment_of(offsets, count, start), _segment_of(offsets, count, end)
    return first, origin + start - first, last, origin + end - last


def _fold_of(fn: Any, get: Any, acc: np.dtype[Any], commutes: bool) -> Any:
    """Return fold(x, start, count) of at least one element; its association depends on count only.

    Eight independent chains: of neighbours if fn commutes, which LLVM vectorises, else of
    contiguous stretches. For commutative folds of integers LLVM vectorises a plain loop.
    """

    @inline
    def few(x: Any, start: int, count: int) -> Any:
        value = get(x, start)
        for i in range(start + 1, start + count):
            value = fn(value, get(x, i))
        return value

    if commutes and acc.kind in "iu":
        return few

    @inline
    def chains(x: Any, p: int, gap: int, step: int, length: int) -> Any:
        a, b, c, d = get(x, p), get(x, p + gap), get(x, p + 2 * gap), get(x, p + 3 * gap)
        q = p + 4 * gap
        e, f, g, h = get(x, q), get(x, q + gap), get(x, q + 2 * gap), get(x, q + 3 * gap)
        for _ in range(1, length):
            p += step
            q = p + 4 * gap
            a, b = fn(a, get(x, p)), fn(b, get(x, p + gap))
            c, d = fn(c, get(x, p + 2 * gap)), fn(d, get(x, p + 3 * gap))
            e, f = fn(e, get(x, q)), fn(f, get(x, q + gap))
            g, h = fn(g, get(x, q + 2 * gap)), fn(h, get(x, q + 3 * gap))
        return fn(fn(fn(a, b), fn(c, d)), fn(fn(e, f), fn(g, h)))

    @inline
    def fold(x: Any, start: int, count: int) -> Any:
        if count < _LEAST_IN_CHAINS:
            return few(x, start, count)
        length = min(count // _FAN, _CHAIN)
        value, done = get(x, start), 0
        while count - done >= _FAN * length:
            if commutes:
                partial = chains(x, start + done, 1, _FAN, length)
            else:
                partial = chains(x, start + done, length, 1, length)
            value = fn(value, partial) if done > 0 else partial
            done += _FAN * length
        if done < count:
            value = fn(value, few(x, start + done, count - done))
        return value

    return fold


def reduce_kernel(fn: Any, acc: np.dtype[Any], commutes: bool) -> Callable[..., None]:
    """Return the kernel that folds each task's parts of segments."""
    fields, as_a = access_by_index(acc), pointer_to(storage(acc))
    pointers, get, put, number = fields.pointers, fields.load, fields.store, fields.number
    fold = _fold_of(fn, get, acc, commutes)

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        offsets = _words(load(p, at.OFFSETS))
        x, out = pointers(table + 8 * at.X), pointers(table + 8 * (at.X + number))
        is_start, start = load(p, at.IS_START), as_a(load(p, at.START))
        step = load(p, at.START_STEP)
        heads, tails = as_a(load(p, at.HEADS)), as_a(load(p, at.TAILS))
        has_head, has_tail = _bytes(load(p, at.HAS_HEAD)), _bytes(load(p, at.HAS_TAIL))
        for task in range(first_task, last_task):
            first, element, last, end = _task_range(table, task)
            is_continued = element > load(offsets, first)
            store(has_head, task, types.uint8(0))
            store(has_tail, task, types.uint8(0))
            for segment in range(first, last):
                segment_end = load(offsets, segment + 1)
                count = segment_end - element
                if segment == first and is_continued:
                    if count > 0:
                        store(heads, task, fold(x, element, count))
                        store(has_head, task, types.uint8(1))
                elif count == 0:
                    put(out, segment, load(start, step * segment))
                else:
                    value = fold(x, element, count)
                    if is_start:
                        value = fn(load(start, step * segment), value)
                    put(out, segment, value)
                element = segment_end
            if end > element:
                store(tails, task, fold(x, element, end - element))
                store(has_tail, task, types.uint8(1))

    return kernel


def join_kernel(fn: Any, acc: np.dtype[Any]) -> Callable[..., None]:
    """Return the kernel that joins the parts of segments that all tasks share."""
    fields, as_a = access_by_index(acc), pointer_to(storage(acc))
    pointers, put, number = fields.pointers, fields.store, fields.number

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        offsets = _words(load(p, at.OFFSETS))
        out = pointers(table + 8 * (at.X + number))
        is_start, start = load(p, at.IS_START), as_a(load(p, at.START))
        step = load(p, at.START_STEP)
        heads, tails = as_a(load(p, at.HEADS)), as_a(load(p, at.TAILS))
        has_head, has_tail = _bytes(load(p, at.HAS_HEAD)), _bytes(load(p, at.HAS_TAIL))
        value = load(start, 0)
        for task in range(load(p, at.NUM_TASKS)):
            first, element, last, _ = _task_range(table, task)
            is_continued = element > load(offsets, first)
            if is_continued and last > first:
                if load(has_head, task):
                    value = fn(value, load(heads, task))
                if is_start:
                    value = fn(load(start, step * first), value)
                put(out, first, value)
            if load(has_tail, task):
                tail = load(tails, task)
                value = fn(value, tail) if is_continued and last == first else tail

    return kernel


def tail_kernel(fn: Any, acc: np.dtype[Any], commutes: bool) -> Callable[..., None]:
    """Return the kernel that folds a task's part of the segment that continues in the next task."""
    fields, as_a = access_by_index(acc), pointer_to(storage(acc))
    pointers, fold = fields.pointers, _fold_of(fn, fields.load, acc, commutes)

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        offsets, x = _words(load(p, at.OFFSETS)), pointers(table + 8 * at.X)
        tails, has_tail = as_a(load(p, at.TAILS)), _bytes(load(p, at.HAS_TAIL))
        for task in range(first_task, last_task):
            first, element, last, end = _task_range(table, task)
            start = element if last == first else load(offsets, last)
            store(has_tail, task, types.uint8(end > start))
            if end > start:
                store(tails, task, fold(x, start, end - start))

    return kernel


def carry_kernel(fn: Any, acc: np.dtype[Any]) -> Callable[..., None]:
    """Return the kernel that computes the prefix of each task's first segment."""
    as_a = pointer_to(storage(acc))

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        offsets = _words(load(p, at.OFFSETS))
        is_start, start = load(p, at.IS_START), as_a(load(p, at.START))
        step = load(p, at.START_STEP)
        heads, tails = as_a(load(p, at.HEADS)), as_a(load(p, at.TAILS))
        has_tail = _bytes(load(p, at.HAS_TAIL))
        value = load(start, 0)
        for task in range(load(p, at.NUM_TASKS)):
            first, element, last, _ = _task_range(table, task)
            is_continued = element > load(offsets, first)
            store(heads, task, value)
            if load(has_tail, task):
                tail = load(tails, task)
                if is_continued and last == first:
                    value = fn(value, tail)
                else:
                    value = fn(load(start, step * last), tail) if is_start else tail

    return kernel


def scan_kernel(fn: Any, acc: np.dtype[Any], is_exclusive: bool) -> Callable[..., None]:
    """Return the kernel that scans each task's parts of segments; results may overwrite x."""
    fields, as_a = access_by_index(acc), pointer_to(storage(acc))
    pointers, get, put, number = fields.pointers, fields.load, fields.store, fields.number

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        offsets = _words(load(p, at.OFFSETS))
        x, out = pointers(table + 8 * at.X), pointers(table + 8 * (at.X + number))
        is_start, start = load(p, at.IS_START), as_a(load(p, at.START))
        step = load(p, at.START_STEP)
        heads, count = as_a(load(p, at.HEADS)), load(p, at.NUM_SEGMENTS)
        for task in range(first_task, last_task):
            first, element, last, end = _task_range(table, task)
            is_continued = element > load(offsets, first)
            for segment in range(first, min(last + 1, count)):
                segment_end = end if segment == last else load(offsets, segment + 1)
                if element < segment_end:
                    item = get(x, element)
                    prefix = load(heads, task) if is_continued else load(start, step * segment)
                    value = fn(prefix, item) if is_continued or is_start else item
                    put(out, element, prefix if is_exclusive else value)
                    for i in range(element + 1, segment_end):
                        item = get(x, i)
                        if is_exclusive:
                            put(out, i, value)
                        value = fn(value, item)
                        if not is_exclusive:
                            put(out, i, value)
                element = segment_end
                is_continued = False

    return kernel
