"""Merging two sorted arrays on the CPU's cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort import cpu_parameters as mk
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.cpu import (
    VALUE_BYTES,
    copied,
    kernel,
    run_tasks,
    scattered,
)
from gpualgo._algorithms.radix_sort.cpu_tuples import fetch
from gpualgo._cpu.captured import bound
from gpualgo._cpu.layout import address

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.merge_problem import Merge

Array: TypeAlias = np.ndarray[Any, Any]

_BYTE_WORK = 16  # of a comparison, in bytes of `threads.run`


def merge(
    problem: Merge, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write the elements of two sorted arrays, and values with them, to outputs apart from them."""
    count, moved = problem.num_keys, problem.num_values
    a, b = (_whole(arrays[i : i + count], order.element) for i in (0, count))
    rest = arrays[2 * count :]
    pairs = list(zip(rest[:moved], rest[moved:], strict=True))
    home = _home(results[:count], order.element)
    target: Array | None = None
    values = a, b  # what travels, if anything does
    if len(pairs) == 1 and rest[0].itemsize in VALUE_BYTES:
        word = np.dtype(f"V{rest[0].itemsize}")
        values = _whole(rest[:1], word), _whole(rest[1:], word)
        target = _home(results[count:], word)
    elif pairs:
        positions = np.arange(home.size)
        values = positions[: a.size], positions[a.size :]
        target = np.empty(home.size, np.int64)
    if order.op is None:
        _run(order, (a, b), home, values, target)
    else:
        with bound(order.op):
            _run(order, (a, b), home, values, target)
    scattered(home, results[:count])
    if target is None:
        return
    if target.dtype.kind == "V":
        scattered(target, results[count:])
    else:
        wholes = [_joined(first, second) for first, second in pairs]
        fetch(wholes, results[count:], target)


def _joined(first: Array, second: Array) -> Array:
    """Return two arrays one behind the other, their items as they are: no byte is turned round."""
    whole = np.empty(first.size + second.size, first.dtype)
    whole[: first.size], whole[first.size :] = first, second
    return whole


def _run(
    order: Comparison, keys: tuple[Array, Array], home: Array, values: tuple[Array, ...],
    target: Array | None,
) -> None:  # fmt: skip
    value_bytes = 0 if target is None else target.itemsize
    places = [0, 0] if target is None else [address(x) for x in values]
    to = 0 if target is None else address(target)
    a, b = keys
    pieces = max(1, home.size // mk.PIECE_ITEMS)
    table = np.array(
        [address(a), places[0], address(b), places[1], address(home), to, home.size, a.size, b.size,
         0, 1, pieces], np.int64,
    )  # fmt: skip
    work = home.size * (home.itemsize + value_bytes + _BYTE_WORK)
    run_tasks(kernel("merge_kernel", order, value_bytes), table, pieces, work)


def _whole(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return elements without gaps."""
    if len(arrays) == 1:
        plain = arrays[0].view(element) if element.kind == "V" else arrays[0]
        return np.ascontiguousarray(plain)
    whole = np.empty(arrays[0].shape, element)
    for name, each in zip(element.names or (), arrays, strict=True):
        copied(each, whole[name])
    return whole


def _home(results: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return where elements are written without gaps."""
    if len(results) == 1 and results[0].flags.c_contiguous:
        return results[0].view(element) if element.kind == "V" else results[0]
    return np.empty(results[0].shape, element)
