"""Search on CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.searchsorted import cpu_parameters as at
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.operator import Applied
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._algorithms.searchsorted.problem import Search

Array: TypeAlias = np.ndarray[Any, Any]

_STEP_BYTES = 8  # cost of a search step, as bytes for `threads.run`


def search(problem: Search, order: Comparison, arrays: Sequence[Array], result: Array) -> None:
    """Write the indices of the queries; result may be the queries' own memory."""
    if result.size == 0:
        return
    count = problem.num_leaves
    a, v = _joined(arrays[:count], order.element), _joined(arrays[count:], order.element)
    axes = problem.results[0].order  # the memory order of a new result, and perhaps of the queries
    if axes:
        v, view = v.transpose(axes), result.transpose(axes)
    else:
        view = result
    queries = np.ascontiguousarray(v)
    dense = view if view.flags.c_contiguous else np.empty(view.shape, result.dtype)
    if order.op is None:
        _run(problem, order, a, queries, dense)
    else:
        with captures_bound(order.op):
            _run(problem, order, a, queries, dense)
    if dense is not view:
        view[...] = dense


def routines(arrays: Sequence[Array], result: Array, num_leaves: int) -> list[Routine]:
    """Return what `search` would run, for `explain`."""
    if result.size == 0:
        return []
    work = result.size * arrays[0].size.bit_length() * _STEP_BYTES
    return [compiled("searchsorted", result.size, at.BLOCK, work)]


def _joined(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return elements as one array: tuples become records of the dtypes that are compared."""
    if len(arrays) == 1 and element.names is None:
        return arrays[0]
    joined = np.empty(arrays[0].shape, element)
    for name, array in zip(element.names or (), arrays, strict=True):
        joined[name] = array
    return joined


def _run(problem: Search, order: Comparison, a: Array, queries: Array, dense: Array) -> None:
    step = a.strides[0]
    kernel = _kernel(problem, order, a.dtype, queries.dtype, step == a.itemsize)
    table = np.array(
        [address(a), step, a.size, address(queries), address(dense), queries.size], np.int64
    )
    table_address = address(table)

    def body(first: int, last: int) -> None:
        memory = scratch(8 * at.BLOCK)
        kernel(table_address, address(memory), first, last)

    work = queries.size * a.size.bit_length() * _STEP_BYTES
    threads.run(body, -(-queries.size // at.BLOCK), work)


def _kernel(
    problem: Search, order: Comparison, sorted_dtype: Any, query_dtype: Any, is_dense: bool
) -> Kernel:
    element, ways, index = order.element, order.ways, problem.results[0].dtype
    sides, is_right = (sorted_dtype, query_dtype), problem.is_right

    def write(fn: Any = None) -> Any:
        from gpualgo._algorithms.searchsorted.cpu_kernels import search_kernel

        return search_kernel(fn, sides, element, ways, is_right, index, is_dense)

    key = ("searchsorted", *sides, element, ways, is_right, index, is_dense)
    if order.op is None:
        return get_kernel(key, write)
    return get_kernel(key, write, Applied(order.op, (element, element), BOOL))
