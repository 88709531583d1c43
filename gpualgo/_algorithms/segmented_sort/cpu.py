"""Segmented sort on CPU cores.

Keys without values whose equal keys have equal bits are sorted segment by segment: short ones by
insertion, longer ones by NumPy's SIMD sort, a giant one by all cores. Other inputs are sorted once,
as pairs of the segment's start and the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.radix_sort import cpu as radix_sort
from gpualgo._algorithms.radix_sort.cpu_strategy import SHARED_BYTES, has_vectors_for
from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort
from gpualgo._algorithms.segmented_sort import cpu_parameters as at
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import view_of
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import get_kernel
from gpualgo._pipeline.routines import Routine, bytes_of, compiled, of_numpy

if TYPE_CHECKING:
    from gpualgo._algorithms.segmented_sort.problem import SegmentedSort

Array: TypeAlias = np.ndarray[Any, Any]


def sort(
    problem: SegmentedSort, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Sort each segment; elements in no segment are copied."""
    *items, offsets = arrays
    ends = offsets.astype(np.int64)
    if len(items) == 1 and _is_plain(items[0]):
        _sort_each(items[0], ends, order.ways[0], results[0])
    else:
        _sort_pairs(problem, order, items, ends, results)


def routines(
    problem: SegmentedSort, arrays: Sequence[Array], results: Sequence[Array]
) -> list[Routine]:
    """Return the routines of `sort`; float keys may still be sorted as pairs (see `_is_plain`)."""
    keys, work = arrays[0], bytes_of(arrays, results)
    if len(arrays) > 2 or not has_vectors_for(keys.dtype):
        return [radix_sort.routine_of(keys.size, keys.size, work)]
    items, segments = keys.size, len(arrays[-1]) - 1
    return [
        compiled("segmented_sort", items + segments, at.TASK, 4 * keys.nbytes),
        of_numpy("sort", items, segments, 8 * keys.nbytes),
    ]


def _is_plain(keys: Array) -> bool:
    """Return whether equal keys have equal bits, and NumPy has a SIMD sort for them.

    NumPy's sort also wins where one long row is faster by digits, because pairs have more digits.
    """
    if not has_vectors_for(keys.dtype):
        return False
    if keys.dtype.kind != "f" or not len(keys):
        return True
    bits = np.ascontiguousarray(keys).view(f"i{keys.itemsize}")
    return not (np.isnan(np.min(keys)) or (bits == np.iinfo(bits.dtype).min).any())


def _sort_each(keys: Array, ends: Array, descending: bool, result: Array) -> None:
    keys_out = result if result.flags.c_contiguous else np.empty(result.shape, result.dtype)
    if address(keys_out) != address(keys) or not keys.flags.c_contiguous:
        np.copyto(keys_out, keys)
    inner = keys_out[ends[0] : ends[-1]]
    flip = (np.negative if keys.dtype.kind == "f" else np.invert) if descending else None
    if flip is not None:  # descending: sort the negated or inverted keys
        flip(inner, out=inner)
    lengths = np.diff(ends)
    _sort_short(keys_out, ends)
    giants = np.flatnonzero(lengths * keys_out.itemsize >= SHARED_BYTES)
    for i in giants.tolist():
        giant = keys_out[ends[i] : ends[i + 1]]
        radix_sort.radix_sort(giant, None, giant, None, 0, False, 0, 8 * giant.itemsize)
    lengths[giants] = 0
    _sort_long(keys_out, ends, np.flatnonzero(lengths > at.SHORT))
    if flip is not None:
        flip(inner, out=inner)
    if keys_out is not result:
        result[...] = keys_out


def _sort_short(keys: Array, ends: Array) -> None:
    """Sort short segments by insertion; a task sorts a fixed number of elements."""
    num_tasks = -(-int(ends[-1] - ends[0] + len(ends)) // at.TASK)
    # Task bounds count elements and segments, so that empty segments are balanced, too.
    steps = ends[:-1] - ends[0] + np.arange(len(ends) - 1)
    bounds = np.searchsorted(steps, np.arange(num_tasks + 1) * at.TASK)
    table = np.array([address(keys), address(ends), address(bounds)], np.int64)
    kernel, args = (
        get_kernel(("segmented_sort", "insert", keys.dtype.str), _generator(keys.dtype)),
        address(table),
    )
    threads.run(lambda first, last: kernel(args, 0, first, last), num_tasks, 4 * keys.nbytes)


def _generator(dtype: np.dtype[Any]) -> Any:
    def generate() -> Any:
        from gpualgo._algorithms.segmented_sort import cpu_kernels

        return cpu_kernels.insert_kernel(dtype)

    return generate


def _sort_long(keys: Array, ends: Array, which: Array) -> None:
    """Sort the given segments by NumPy; a task sorts a few of them."""
    if not len(which):
        return
    begins, stops = ends[which].tolist(), ends[which + 1].tolist()

    def body(first: int, last: int) -> None:
        for begin, stop in zip(begins[first:last], stops[first:last], strict=True):
            keys[begin:stop].sort()

    threads.run(body, len(which), 8 * keys.nbytes)


def _sort_pairs(
    problem: SegmentedSort, order: Comparison, items: Sequence[Array], ends: Array,
    results: Sequence[Array],
) -> None:  # fmt: skip
    """Sort by the start of an element's segment, then by its key."""
    n, count = len(items[0]), problem.num_keys
    begins = np.arange(n, dtype=np.uint32 if n <= 1 << 32 else np.uint64)
    begins[ends[0] : ends[-1]] = np.repeat(ends[:-1], np.diff(ends))
    keys, values = (begins, *items[:count]), items[count:]
    views = tuple([view_of(x, problem.where) for x in (*keys, *values)])
    form = Form(tuple, (None,) * len(keys))
    forms = (form, Form(tuple, (None,) * len(values))) if values else (form,)
    params = (False, *order.ways), 0, None, 0, None, forms
    pairs = TupleSort(problem.device, views, None, None, params, problem.where)
    pairs.cpu([*keys, *values], [np.empty_like(begins), *results], None, None)
