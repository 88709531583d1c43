"""CPU kernels of the merge sort: one sorts blocks, one merges pairs of sorted runs; one sorts short
segments for `segmented_sort`.

A merge selects the smaller of two elements without a branch, in loops of as many steps as neither
run can end in. Runs of equal length are merged from both ends: two independent dependency chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.merge_sort import problem as mk
from gpualgo._base import dtypes, records
from gpualgo._cpu.compiler import cast
from gpualgo._cpu.packing import copy_bytes, inline, load, pointer_to, storage, store

# --- Comparison by value in CPU kernels, of elements in their storage representation.


def before(element: np.dtype[Any], directions: tuple[bool, ...]) -> Any:
    """Return before(a, b): NumPy's order; zeros are equal, NaN is last in both directions."""
    if element.names is None:
        return _before_number(element, directions[0])
    compare = _never
    for i in reversed(range(len(element.names))):
        dtype = records.field_dtypes(element)[i]
        compare = _before_by(_field(i), _before_number(dtype, directions[i]), compare)
    return compare


@inline
def _never(a: Any, b: Any) -> Any:
    return False


def _before_by(get_field: Any, first: Any, tie_break: Any) -> Any:
    """Return a comparison by one field, then by `tie_break` if the fields are equal."""

    def compare(a: Any, b: Any) -> Any:
        x, y = get_field(a), get_field(b)
        if first(x, y):
            return True
        if first(y, x):
            return False
        return tie_break(a, b)

    return inline(compare)


def _before_number(dtype: np.dtype[Any], descending: bool) -> Any:
    if dtypes.kind(dtype) != "f":
        return _greater if descending else _smaller
    compare = _greater_float if descending else _smaller_float
    if dtype.itemsize > 2:
        return compare
    wide = cast(dtype, np.dtype(np.float32))
    return inline(lambda a, b: compare(wide(a), wide(b)))


_smaller = inline(lambda a, b: a < b)
_greater = inline(lambda a, b: a > b)
_smaller_float = inline(lambda a, b: (a < b) | ((b != b) & (a == a)))
_greater_float = inline(lambda a, b: (a > b) | ((b != b) & (a == a)))


def _field(i: int) -> Any:
    def extract(_typing: Any, record: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.extract_value(args[0], i)

        return record.leaves[i](record), generate

    return intrinsic(extract)


_words = pointer_to(types.intp)
_RUN = mk.RUN


class _DeviceFunctions:
    """Generates device functions for a key dtype and a value size (0: no values)."""

    def __init__(
        self, fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
    ) -> None:
        """`fn`: less, of elements in their storage representation; None: the order is by value."""
        self.as_key, self.key_bytes = pointer_to(storage(key)), key.itemsize
        self.value_bytes = value_bytes
        self.as_value = pointer_to(storage(_value(value_bytes))) if value_bytes else _words
        if fn is None:
            self.first = before(key, directions)
        else:
            self.first = (
                inline(lambda a, b: fn(b, a)) if directions[0] else inline(lambda a, b: fn(a, b))
            )

    def finish(self) -> Any:
        """Return finish(a, na, b, nb, out, va, vb, vout): merges the remaining elements."""
        as_key, as_value, first = self.as_key, self.as_value, self.first
        size, value_bytes = self.key_bytes, self.value_bytes

        def finish(
            a: int, na: int, b: int, nb: int, out: int, va: int, vb: int, vout: int
        ) -> None:  # fmt: skip
            i = j = 0
            while True:
                steps = min(na - i, nb - j)
                if steps <= 0:
                    break
                for _ in range(steps):
                    x, y = load(as_key(a), i), load(as_key(b), j)
                    takes_b = first(y, x)
                    store(as_key(out), i + j, y if takes_b else x)
                    if value_bytes:
                        v, w = load(as_value(va), i), load(as_value(vb), j)
                        store(as_value(vout), i + j, w if takes_b else v)
                    step = 1 if takes_b else 0
                    i, j = i + 1 - step, j + step
            rest_a, rest_b = max(0, na - i), max(0, nb - j)
            copy_bytes(out + (i + j) * size, a + i * size, rest_a * size)
            copy_bytes(out + (i + j + rest_a) * size, b + j * size, rest_b * size)
            if value_bytes:
                to = vout + (i + j) * value_bytes
                copy_bytes(to, va + i * value_bytes, rest_a * value_bytes)
                to += rest_a * value_bytes
                copy_bytes(to, vb + j * value_bytes, rest_b * value_bytes)

        return inline(finish)

    def from_both_ends(self) -> Any:
        """Return meet(a, b, n, out, va, vb, vout): merges two runs of n elements from both ends."""
        as_key, as_value, first = self.as_key, self.as_value, self.first
        value_bytes = self.value_bytes

        def meet(a: int, b: int, n: int, out: int, va: int, vb: int, vout: int) -> None:
            i, j = 0, 0  # the first remaining of each
            p, q = n - 1, n - 1  # the last remaining
            for k in range(n):
                x, y = load(as_key(a), i), load(as_key(b), j)
                takes_b = first(y, x)
                store(as_key(out), k, y if takes_b else x)
                x, y = load(as_key(a), p), load(as_key(b), q)
                takes_a = first(y, x)
                store(as_key(out), 2 * n - 1 - k, x if takes_a else y)
                if value_bytes:
                    v, w = load(as_value(va), i), load(as_value(vb), j)
                    store(as_value(vout), k, w if takes_b else v)
                    v, w = load(as_value(va), p), load(as_value(vb), q)
                    store(as_value(vout), 2 * n - 1 - k, v if takes_a else w)
                forth, back = 1 if takes_b else 0, 1 if takes_a else 0
                i, j = i + 1 - forth, j + forth
                p, q = p - back, q + back - 1

        return inline(meet)

    def insertion(self) -> Any:
        """Return insert(keys, values, n): sorts n elements in place by insertion."""
        as_key, as_value, first = self.as_key, self.as_value, self.first
        value_bytes = self.value_bytes

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

        return inline(insert)

    def splitting(self) -> Any:
        """Return split(a, na, b, nb, index): how many of a are among the first `index` merged."""
        as_key, first = self.as_key, self.first

        def split(a: int, na: int, b: int, nb: int, index: int) -> int:
            low, high = max(0, index - nb), min(index, na)
            while low < high:
                middle = (low + high) // 2
                if first(load(as_key(b), index - middle - 1), load(as_key(a), middle)):
                    high = middle
                else:
                    low = middle + 1
            return low

        return inline(split)


def _value(size: int) -> np.dtype[Any]:
    if size < 16:
        return np.dtype(f"u{size}")
    return records.record(("0", "1"), (np.dtype(np.uint64),) * 2)


def sort_kernel(
    fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
) -> Callable[..., None]:
    """Return the kernel that sorts blocks of rows, each in its output and scratch memory."""
    functions = _DeviceFunctions(fn, key, directions, value_bytes)
    as_key, first, size = functions.as_key, functions.first, functions.key_bytes
    insert, meet, finish = functions.insertion(), functions.from_both_ends(), functions.finish()
    as_position = pointer_to(types.uintp)

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
                        finish(a, na, b, nb, out, va, vb, vout)
                here, there, v_here, v_there = there, here, v_there, v_here
                width *= 2

    return kernel


def merge_kernel(
    fn: Any, key: np.dtype[Any], directions: tuple[bool, ...], value_bytes: int
) -> Callable[..., None]:
    """Return the kernel that merges pairs of runs, piece by piece (merge path)."""
    functions = _DeviceFunctions(fn, key, directions, value_bytes)
    size = functions.key_bytes
    split, finish = functions.splitting(), functions.finish()

    def kernel(table: int, scratch: int, begin: int, end: int) -> None:
        p = _words(table)
        length, first, second = load(p, mk.LENGTH), load(p, mk.FIRST), load(p, mk.SECOND)
        pairs, pieces = load(p, mk.PAIRS), load(p, mk.PIECES)
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
            i, k = split(a, na, b, nb, low), split(a, na, b, nb, high)
            k = max(i, min(k, i + high - low))  # stay in bounds even if the runs are not sorted
            j, m = low - i, high - k
            va = vb = vout = 0
            if value_bytes:
                va = load(p, mk.A_VALUES) + (start + i) * value_bytes
                vb = load(p, mk.B_VALUES) + (b_start + j) * value_bytes
                vout = load(p, mk.TO_VALUES) + (start + low) * value_bytes
            out = load(p, mk.TO_KEYS) + (start + low) * size
            finish(a + i * size, k - i, b + j * size, m - j, out, va, vb, vout)

    return kernel


def segments_kernel(key: np.dtype[Any], longest: int) -> Callable[..., None]:
    """Return the kernel that sorts segments of up to `longest` numbers in place, by insertion."""
    insert, size = _DeviceFunctions(None, key, (False,), 0).insertion(), key.itemsize

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p = _words(table)
        keys, ends, bounds = load(p, mk.KEYS), _words(load(p, mk.ENDS)), _words(load(p, mk.BOUNDS))
        for segment in range(load(bounds, first_task), load(bounds, last_task)):
            begin, end = load(ends, segment), load(ends, segment + 1)
            if end - begin <= longest:
                insert(keys + begin * size, 0, end - begin)

    return kernel
