"""Segmented sort on CPU cores.

Keys without values whose equal keys have equal bits are sorted segment by segment: short ones by
insertion, longer ones by NumPy's SIMD sort, a giant one by all cores. Other inputs are sorted once,
as pairs of the segment's start and the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort.cpu import Order, sort_rows
from gpualgo._algorithms.radix_sort.cpu_numpy import SHARED_BYTES, has_vectors_for
from gpualgo._algorithms.radix_sort.problem import sort_problem
from gpualgo._algorithms.segmented_sort import problem as at
from gpualgo._algorithms.segmented_sort.problem import SegmentedSort
from gpualgo._arrays.view import NumPy
from gpualgo._base import threads
from gpualgo._cpu.kernels import get_kernel, named
from gpualgo._cpu.launch import run_tasks
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, Routine, compiled, of_numpy
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]


@planners.for_cpu.register(SegmentedSort)
def _(problem: SegmentedSort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    count, descending = problem.num_keys, problem.order.directions[0]
    keys, may_be_plain = arrays[0], False
    pairs = _pairs(problem, arrays, results)
    routines: Sequence[Routine] = pairs.routines
    if len(arrays) == 2 and has_vectors_for(keys.dtype):  # floats may be sorted as pairs
        may_be_plain, items, segments = True, keys.size, len(arrays[count]) - 1
        routines = [
            compiled("merge_sort", items + segments, at.TASK, 4 * keys.nbytes),
            of_numpy("sort", items, segments, 8 * keys.nbytes),
        ]

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        """Sort each segment; elements in no segment are copied."""
        ends = arrays[count].astype(np.int64)
        if may_be_plain and _is_plain(arrays[0]):
            _sort_each(arrays[0], ends, descending, results[0])
            return
        begins = _positions(len(arrays[0]))
        begins[ends[0] : ends[-1]] = np.repeat(ends[:-1], np.diff(ends))
        items = [begins, *arrays[:count], *arrays[count + 1 :]]
        pairs.run(items, [np.empty_like(begins), *results], 0)

    return Plan(run, routines)


def _pairs(problem: SegmentedSort, arrays: Sequence[Array], results: Sequence[Array]) -> Plan:
    """Return the plan that sorts by the start of an element's segment, then by its key."""
    count, begins = problem.num_keys, _positions(len(arrays[0]))
    items = [begins, *arrays[:count], *arrays[count + 1 :]]
    views, directions = [NumPy.view(x) for x in items], (False, *problem.order.directions)
    pairs = sort_problem(views, 1 + count, problem.where, CPU, directions=directions)
    return planners.cpu_plan(pairs, items, [begins, *results], None)


def _positions(length: int) -> Array:
    return np.arange(length, dtype=np.uint32 if length <= 1 << 32 else np.uint64)


def _is_plain(keys: Array) -> bool:
    """Return whether equal keys have equal bits."""
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
        sort_rows([giant], [giant], Order(giant.dtype, False))
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
    kernel = get_kernel(*named("merge_sort", "segments_kernel", keys.dtype, at.SHORT))
    run_tasks(kernel, table, num_tasks, 4 * keys.nbytes)


def _sort_long(keys: Array, ends: Array, which: Array) -> None:
    """Sort the given segments by NumPy; a task sorts a few of them."""
    if not len(which):
        return
    begins, stops = ends[which].tolist(), ends[which + 1].tolist()

    def body(first: int, last: int) -> None:
        for begin, stop in zip(begins[first:last], stops[first:last], strict=True):
            keys[begin:stop].sort()

    threads.run(body, len(which), 8 * keys.nbytes)
