"""Merge of two sorted arrays on CPU cores."""

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
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import bound

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.merge_problem import Merge

Array: TypeAlias = np.ndarray[Any, Any]

_BYTE_WORK = 16  # weight of a comparison for `threads.run`, in bytes


def merge(
    problem: Merge, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write the merge of two sorted arrays, and of their values, to non-overlapping outputs."""
    count, num_values = problem.num_keys, problem.num_values
    a, b = (_dense(arrays[i : i + count], order.element) for i in (0, count))
    all_values = arrays[2 * count :]
    pairs = list(zip(all_values[:num_values], all_values[num_values:], strict=True))
    key_buffer = _dense_target(results[:count], order.element)
    value_buffer: Array | None = None
    values = a, b  # unused without values
    if len(pairs) == 1 and all_values[0].itemsize in VALUE_BYTES:
        word = np.dtype(f"V{all_values[0].itemsize}")
        values = _dense(all_values[:1], word), _dense(all_values[1:], word)
        value_buffer = _dense_target(results[count:], word)
    elif pairs:
        positions = np.arange(key_buffer.size)
        values = positions[: a.size], positions[a.size :]
        value_buffer = np.empty(key_buffer.size, np.int64)
    if order.op is None:
        _run(order, (a, b), key_buffer, values, value_buffer)
    else:
        with bound(order.op):
            _run(order, (a, b), key_buffer, values, value_buffer)
    scattered(key_buffer, results[:count])
    if value_buffer is None:
        return
    if value_buffer.dtype.kind == "V":
        scattered(value_buffer, results[count:])
    else:
        joined = [_concatenated(first, second) for first, second in pairs]
        fetch(joined, results[count:], value_buffer)


def _concatenated(first: Array, second: Array) -> Array:
    """Return two arrays concatenated, in their byte order."""
    joined = np.empty(first.size + second.size, first.dtype)
    joined[: first.size], joined[first.size :] = first, second
    return joined


def _run(
    order: Comparison, keys: tuple[Array, Array], dest: Array, values: tuple[Array, ...],
    target: Array | None,
) -> None:  # fmt: skip
    value_bytes = 0 if target is None else target.itemsize
    moved = [0, 0] if target is None else [address(x) for x in values]
    to = 0 if target is None else address(target)
    a, b = keys
    pieces = max(1, dest.size // mk.PIECE_ITEMS)
    table = np.array(
        [address(a), moved[0], address(b), moved[1], address(dest), to, dest.size, a.size, b.size,
         0, 1, pieces], np.int64,
    )  # fmt: skip
    work = dest.size * (dest.itemsize + value_bytes + _BYTE_WORK)
    run_tasks(kernel("merge_kernel", order, value_bytes), table, pieces, work)


def _dense(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return the arrays as one dense array of elements."""
    if len(arrays) == 1:
        items = arrays[0].view(element) if element.kind == "V" else arrays[0]
        return np.ascontiguousarray(items)
    packed = np.empty(arrays[0].shape, element)
    for name, field in zip(element.names or (), arrays, strict=True):
        copied(field, packed[name])
    return packed


def _dense_target(results: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return a dense array for the results: the output itself if possible."""
    if len(results) == 1 and results[0].flags.c_contiguous:
        return results[0].view(element) if element.kind == "V" else results[0]
    return np.empty(results[0].shape, element)
