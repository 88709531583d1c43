"""Search on the CPU's cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.searchsorted import cpu_parameters as at
from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.layout import address
from gpualgo._cpu.operator import Applied
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._algorithms.searchsorted.problem import Search

Array: TypeAlias = np.ndarray[Any, Any]

_STEP_WORK = 8  # of a step of a search, in bytes of `threads.run`


def search(problem: Search, order: Comparison, arrays: Sequence[Array], result: Array) -> None:
    """Write the places of queries; result may be the queries' own memory, else lies apart."""
    if result.size == 0:
        return
    count = problem.num_leaves
    a, v = _whole(arrays[:count], order.element), _whole(arrays[count:], order.element)
    axes = problem.results[0].order  # in which a new result lies, and perhaps the queries
    if axes:
        v, turned = v.transpose(axes), result.transpose(axes)
    else:
        turned = result
    queries = np.ascontiguousarray(v)
    home = turned if turned.flags.c_contiguous else np.empty(turned.shape, result.dtype)
    if order.op is None:
        _run(problem, order, a, queries, home)
    else:
        with bound(order.op):
            _run(problem, order, a, queries, home)
    if home is not turned:
        turned[...] = home


def routines(arrays: Sequence[Array], result: Array, num_leaves: int) -> list[Routine]:
    """Return what `search` would run."""
    if result.size == 0:
        return []
    work = result.size * arrays[0].size.bit_length() * _STEP_WORK
    return [compiled("searchsorted", result.size, at.BLOCK, work)]


def _whole(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return elements as one array: tuples become records of the dtypes that are compared."""
    if len(arrays) == 1 and element.names is None:
        return arrays[0]
    whole = np.empty(arrays[0].shape, element)
    for name, each in zip(element.names or (), arrays, strict=True):
        whole[name] = each
    return whole


def _run(problem: Search, order: Comparison, a: Array, queries: Array, home: Array) -> None:
    step = a.strides[0]
    kernel = _kernel(problem, order, a.dtype, queries.dtype, step == a.itemsize)
    table = np.array(
        [address(a), step, a.size, address(queries), address(home), queries.size], np.int64
    )
    where = address(table)

    def body(first: int, last: int) -> None:
        memory = scratch(8 * at.BLOCK)
        kernel(where, address(memory), first, last)

    work = queries.size * a.size.bit_length() * _STEP_WORK
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
