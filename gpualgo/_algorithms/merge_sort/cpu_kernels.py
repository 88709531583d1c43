"""CPU kernels of the merge sort: one sorts blocks, one merges pairs of sorted runs; one sorts short
segments for `segmented_sort`.

A merge selects the smaller of two elements without a branch, in loops of as many steps as neither
run can end in. Runs of equal length are merged from both ends: two independent dependency chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from gpualgo._algorithms.merge_sort import problem as mk
from gpualgo._base import records
from gpualgo._cpu.fields import before
from gpualgo._cpu.packing import copy_bytes, inline, load, pointer_to, stack, storage, store

_words = pointer_to(types.intp)
_RUN = mk.RUN
_LANES, _LEAST_STEPS = 4, 16  # parts that one loop merges, and the least steps of it


class _Functions(NamedTuple):
    """Device functions for a key dtype and a value size (0: no values), by `_functions`."""

    as_key: Any
    as_value: Any
    first: Any
    """first(a, b): whether a comes before b."""
    move: Any
    """move(a, i, b, j, out, to, va, vb, vout): writes the lesser of a[i] and b[j] to out[to].

    It returns 1 if that is b[j], else 0, without a branch.
    """
    finish: Any
    """finish(a, i, na, b, j, nb, out, va, vb, vout): merges a[i:na] and b[j:nb]."""
    insert: Any
    """insert(keys, values, n): sorts n elements in place by insertion."""


def _functions(
    fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
) -> _Functions:
    """`fn`: less, of elements in their storage representation; None: the order is by value."""
    as_key, size = pointer_to(storage(key)), key.itemsize
    as_value = pointer_to(storage(_value(value_bytes))) if value_bytes else _words
    if fn is None:
        first = before(key, directions)
    else:
        first = inline(lambda a, b: fn(b, a)) if directions[0] else inline(lambda a, b: fn(a, b))

    @inline
    def move(a: int, i: int, b: int, j: int, out: int, to: int, va: int, vb: int, vout: int) -> int:
        x, y = load(as_key(a), i), load(as_key(b), j)
        takes_b = first(y, x)
        store(as_key(out), to, y if takes_b else x)
        if value_bytes:
            v, w = load(as_value(va), i), load(as_value(vb), j)
            store(as_value(vout), to, w if takes_b else v)
        return 1 if takes_b else 0

    @inline
    def finish(
        a: int, i: int, na: int, b: int, j: int, nb: int, out: int, va: int, vb: int, vout: int
    ) -> None:
        while True:
            steps = min(na - i, nb - j)
            if steps <= 0:
                break
            for _ in range(steps):
                step = move(a, i, b, j, out, i + j, va, vb, vout)
                i, j = i + 1 - step, j + step
        rest_a, rest_b = max(0, na - i), max(0, nb - j)
        copy_bytes(out + (i + j) * size, a + i * size, rest_a * size)
        copy_bytes(out + (i + j + rest_a) * size, b + j * size, rest_b * size)
        if value_bytes:
            to = vout + (i + j) * value_bytes
            copy_bytes(to, va + i * value_bytes, rest_a * value_bytes)
            to += rest_a * value_bytes
            copy_bytes(to, vb + j * value_bytes, rest_b * value_bytes)

    @inline
    def insert(keys: int, values: int, n: int) -> None:
        key = as_key(keys)
        for i in range(1, n):
            x, j = load(key, i), i
            if value_bytes:
                v = load(as_value(values), i)
            while j > 0 and first(x, load(key, j - 1)):
                store(key, j, load(key, j - 1))
                if value_bytes:
                    store(as_value(values), j, load(as_value(values), j - 1))
                j -= 1
            store(key, j, x)
            if value_bytes:
                store(as_value(values), j, v)

    return _Functions(as_key, as_value, first, move, finish, insert)


def _value(size: int) -> np.dtype[Any]:
    if size < 16:
        return np.dtype(f"u{size}")
    return records.record(("0", "1"), (np.dtype(np.uint64),) * 2)


def sort_kernel(
    fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
) -> Callable[..., None]:
    """Return the kernel that sorts blocks of rows, each in its output and scratch memory."""
    as_key, as_value, first, move, finish, insert = _functions(fn, key, directions, value_bytes)
    size, as_position = key.itemsize, pointer_to(types.uintp)

    @inline
    def meet(a: int, b: int, n: int, out: int, va: int, vb: int, vout: int) -> None:
        """Merge two runs of n elements from both ends."""
        i, j = 0, 0  # the first remaining of each
        p, q = n - 1, n - 1  # the last remaining
        for k in range(n):
            forth = move(a, i, b, j, out, k, va, vb, vout)
            x, y = load(as_key(a), p), load(as_key(b), q)
            takes_a = first(y, x)
            store(as_key(out), 2 * n - 1 - k, x if takes_a else y)
            if value_bytes:
                v, w = load(as_value(va), p), load(as_value(vb), q)
                store(as_value(vout), 2 * n - 1 - k, v if takes_a else w)
            back = 1 if takes_a else 0
            i, j = i + 1 - forth, j + forth
            p, q = p - back, q + back - 1

    def kernel(table: int, scratch: int, begin: int, end: int) -> None:
        p = _words(table)
        row_items, block, blocks = load(p, mk.ROW_ITEMS), load(p, mk.BLOCK), load(p, mk.BLOCKS)
        temp, values_temp = scratch, scratch + block * size
        for task in range(begin, end):
            row = task // blocks
            start = (task - row * blocks) * block
            count = min(block, row_items - start)
            base = row * row_items + start
            here, v_here = load(p, mk.OUT_KEYS) + base * size, 0
            there, v_there = temp, values_temp
            if value_bytes:
                v_here = load(p, mk.OUT_VALUES) + base * value_bytes
            width = _RUN
            while width < count:  # the last merge writes the output
                here, there, v_here, v_there = there, here, v_there, v_here
                width *= 2
            source = load(p, mk.KEYS) + base * size
            if source != here:
                copy_bytes(here, source, count * size)
            if value_bytes:
                if load(p, mk.VALUES) == 0:
                    for i in range(count):
                        store(as_position(v_here), i, types.uintp(start + i))
                elif load(p, mk.VALUES) + base * value_bytes != v_here:
                    source = load(p, mk.VALUES) + base * value_bytes
                    copy_bytes(v_here, source, count * value_bytes)
            for i in range(0, count, _RUN):
                insert(here + i * size, v_here + i * value_bytes, min(_RUN, count - i))
            width = _RUN
            while width < count:
                for i in range(0, count, 2 * width):
                    na, nb = min(width, count - i), max(0, min(width, count - i - width))
                    a, b, out = here + i * size, here + (i + width) * size, there + i * size
                    va, vb = v_here + i * value_bytes, v_here + (i + width) * value_bytes
                    vout = v_there + i * value_bytes
                    if nb > 0 and not first(load(as_key(b), 0), load(as_key(a), na - 1)):
                        copy_bytes(out, a, (na + nb) * size)  # already in order
                        if value_bytes:
                            copy_bytes(vout, va, (na + nb) * value_bytes)
                    elif nb == width:
                        meet(a, b, width, out, va, vb, vout)
                    else:
                        finish(a, 0, na, b, 0, nb, out, va, vb, vout)
                here, there, v_here, v_there = there, here, v_there, v_here
                width *= 2

    return kernel


def merge_kernel(
    fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
) -> Callable[..., None]:
    """Return the kernel that merges pairs of runs, piece by piece (merge path).

    Four parts of a piece are merged in one loop: each step of a part depends on its previous one.
    """
    as_key, _, first, move, finish, _ = _functions(fn, key, directions, value_bytes)
    size, words = key.itemsize, stack(2 * (_LANES + 1))

    @inline
    def split(a: int, na: int, b: int, nb: int, index: int) -> int:
        """Return how many of a are among the first `index` merged."""
        low, high = max(0, index - nb), min(index, na)
        while low < high:
            middle = (low + high) // 2
            if first(load(as_key(b), index - middle - 1), load(as_key(a), middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def kernel(table: int, scratch: int, begin: int, end: int) -> None:
        p = _words(table)
        length, first, second = load(p, mk.LENGTH), load(p, mk.FIRST), load(p, mk.SECOND)
        pairs, pieces = load(p, mk.PAIRS), load(p, mk.PIECES)
        bounds, rests = _words(words()), _words(words())
        for task in range(begin, end):
            pair = task // pieces
            piece = task - pair * pieces
            row = pair // pairs
            start = (pair - row * pairs) * (first + second)
            na = min(first, length - start)
            nb = min(second, length - start - na)
            start += row * length
            b_start = start + load(p, mk.SECOND_BEGIN)
            a, b = load(p, mk.A_KEYS) + start * size, load(p, mk.B_KEYS) + b_start * size
            low, high = (na + nb) * piece // pieces, (na + nb) * (piece + 1) // pieces
            va = vb = vout = 0
            if value_bytes:
                va = load(p, mk.A_VALUES) + start * value_bytes
                vb = load(p, mk.B_VALUES) + b_start * value_bytes
                vout = load(p, mk.TO_VALUES) + start * value_bytes
            out = load(p, mk.TO_KEYS) + start * size
            index = i = low
            for lane in range(_LANES + 1):
                previous, index = index, low + (high - low) * lane // _LANES
                found = split(a, na, b, nb, index)
                # Bounds hold even if the runs are not sorted.
                i = found if lane == 0 else max(i, min(found, i + index - previous))
                store(bounds, 2 * lane, i)
                store(bounds, 2 * lane + 1, index - i)
            i0, j0, i1, j1 = load(bounds, 0), load(bounds, 1), load(bounds, 2), load(bounds, 3)
            i2, j2, i3, j3 = load(bounds, 4), load(bounds, 5), load(bounds, 6), load(bounds, 7)
            a1, b1, a2, b2, a3, b3 = i1, j1, i2, j2, i3, j3  # the ends of the parts
            a4, b4 = load(bounds, 8), load(bounds, 9)
            while True:
                steps = min(
                    min(min(a1 - i0, b1 - j0), min(a2 - i1, b2 - j1)),
                    min(min(a3 - i2, b3 - j2), min(a4 - i3, b4 - j3)),
                )
                if steps < _LEAST_STEPS:
                    break
                for _ in range(steps):
                    s0 = move(a, i0, b, j0, out, i0 + j0, va, vb, vout)
                    s1 = move(a, i1, b, j1, out, i1 + j1, va, vb, vout)
                    s2 = move(a, i2, b, j2, out, i2 + j2, va, vb, vout)
                    s3 = move(a, i3, b, j3, out, i3 + j3, va, vb, vout)
                    i0, j0, i1, j1 = i0 + 1 - s0, j0 + s0, i1 + 1 - s1, j1 + s1
                    i2, j2, i3, j3 = i2 + 1 - s2, j2 + s2, i3 + 1 - s3, j3 + s3
            store(rests, 0, i0)
            store(rests, 1, j0)
            store(rests, 2, i1)
            store(rests, 3, j1)
            store(rests, 4, i2)
            store(rests, 5, j2)
            store(rests, 6, i3)
            store(rests, 7, j3)
            for k in range(0, 2 * _LANES, 2):
                a_end, b_end = load(bounds, k + 2), load(bounds, k + 3)
                i, j = load(rests, k), load(rests, k + 1)
                finish(a, i, a_end, b, j, b_end, out, va, vb, vout)

    return kernel


def segments_kernel(key: np.dtype[Any], longest: int) -> Callable[..., None]:
    """Return the kernel that sorts segments of up to `longest` numbers in place, by insertion."""
    insert, size = _functions(None, key, (False,), 0).insert, key.itemsize

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        keys, ends, bounds = load(p, mk.KEYS), _words(load(p, mk.ENDS)), _words(load(p, mk.BOUNDS))
        for segment in range(load(bounds, first_task), load(bounds, last_task)):
            begin, end = load(ends, segment), load(ends, segment + 1)
            if end - begin <= longest:
                insert(keys + begin * size, 0, end - begin)

    return kernel
