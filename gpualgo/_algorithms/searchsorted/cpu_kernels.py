"""The kernel of a search on the CPU: a block of queries is bisected together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.searchsorted import problem as at
from gpualgo._base import dtypes
from gpualgo._cpu.compiler import cast
from gpualgo._cpu.fields import before
from gpualgo._cpu.packing import inline, load, pointer_to, same, storage, store

_words = pointer_to(types.intp)
_BLOCK = at.BLOCK


def search_kernel(
    fn: Any, sides: tuple[np.dtype[Any], np.dtype[Any]], element: np.dtype[Any],
    directions: tuple[bool, ...], is_right: bool, index: np.dtype[Any], is_dense: bool,
) -> Callable[..., None]:  # fmt: skip
    """Return the kernel; `fn` is less, of elements as stored in memory, or None: by value.

    `sides` are the elements of the sorted array and the queries.
    """
    as_sorted, as_query = (pointer_to(storage(side)) for side in sides)
    has_nan = fn is None and element.names is None and dtypes.kind(element) == "f"
    compared = np.dtype(np.float32) if has_nan and element.itemsize == 2 else element
    of_sorted, of_query = (_converted(side, element, compared) for side in sides)
    as_index, index_type = pointer_to(storage(index)), storage(index)
    if has_nan:
        is_behind = _behind_number(directions[0], is_right)
    else:
        is_behind = _behind(fn, element, directions, is_right)
    size = sides[0].itemsize

    @inline
    def load_at(first: int, step: int, i: int) -> Any:
        return of_sorted(load(as_sorted(first + i * step), 0))

    @inline
    def count_numbers(first: int, step: int, num_sorted: int) -> int:
        """Return the number of elements before the first NaN."""
        low, high = 0, num_sorted
        while low < high:
            middle = (low + high) // 2
            x = load_at(first, step, middle)
            if x == x:
                low = middle + 1
            else:
                high = middle
        return low

    def kernel(table: int, scratch: int, first_task: int, last_task: int) -> None:
        p, results = _words(table), _words(scratch)
        first, num_sorted = load(p, at.SORTED), load(p, at.NUM_SORTED)
        step = size if is_dense else load(p, at.STEP)
        num_numbers = count_numbers(first, step, num_sorted) if has_nan else num_sorted
        queries, output = as_query(load(p, at.QUERIES)), as_index(load(p, at.OUTPUT))
        for task in range(first_task, last_task):
            start = task * _BLOCK
            count = min(_BLOCK, load(p, at.NUM_QUERIES) - start)
            for k in range(count):
                store(results, k, 0)
            remaining = num_numbers  # the index of each query is in results[k] + (0 to remaining)
            while remaining > 0:
                half = (remaining + 1) // 2
                probe = first + (half - 1) * step
                for k in range(count):
                    result = load(results, k)
                    x = load_at(probe, step, result)
                    is_later = is_behind(of_query(load(queries, start + k)), x)
                    store(results, k, result + (half if is_later else 0))
                remaining -= half
            for k in range(count):
                result = load(results, k)
                if has_nan and is_right:
                    query = of_query(load(queries, start + k))
                    result = result if query == query else num_sorted
                store(output, start + k, index_type(result))

    return kernel


def _converted(side: np.dtype[Any], element: np.dtype[Any], compared: np.dtype[Any]) -> Any:
    """Return a function that converts an element to the compared dtype, via the common dtype."""
    to_element = same if side == element else cast(side, element)
    if compared == element:
        return to_element
    widened = cast(element, compared)
    return inline(lambda x: widened(to_element(x)))


def _behind_number(falls: bool, is_right: bool) -> Any:
    """Return is_behind(query, x) for an x that is not NaN; a NaN query is behind it.

    It is one comparison, which the compiler does not turn into a branch.
    """
    if is_right:
        return inline(
            (lambda query, x: not query > x) if falls else (lambda query, x: not query < x)
        )
    return inline((lambda query, x: not x <= query) if falls else (lambda query, x: not x >= query))


def _behind(fn: Any, element: np.dtype[Any], directions: tuple[bool, ...], is_right: bool) -> Any:
    """Return is_behind(query, x): whether the query's index is behind that of element x."""
    if fn is None:
        precedes = before(element, directions)
    else:
        precedes = inline(lambda a, b: fn(b, a)) if directions[0] else inline(lambda a, b: fn(a, b))
    if is_right:
        return inline(lambda query, x: not precedes(query, x))
    return inline(lambda query, x: precedes(x, query))
