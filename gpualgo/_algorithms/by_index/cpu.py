"""Reduction by index on CPU cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.by_index import cpu_parameters as at
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.layout import table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import per_row_init
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._algorithms.by_index.problem import ByIndex

Array: TypeAlias = np.ndarray[Any, Any]


def reduce(
    problem: ByIndex, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
    init: Array | None,
) -> None:  # fmt: skip
    """Write the fold of each index's elements; results have any strides and overlap no input."""
    acc, size = problem.acc, problem.size
    inputs, init_arrays = arrays[: problem.num_own], arrays[problem.num_own :]
    broadcast = [np.broadcast_to(array, problem.shape).reshape(-1) for array in inputs]
    kinds = problem.index, *records.field_dtypes(acc)
    indices, *elements = cpu.gapless(problem.source, kinds, broadcast, op)
    if isinstance(problem.source, records.Computed) and indices.size:
        problem.check_indices(indices)
    dense_results = [
        result if result.flags.c_contiguous else np.empty(result.shape, result.dtype)
        for result in results
    ]
    num_items = indices.size
    shares = _shares(num_items, size)
    share_items = -(-num_items // shares)
    start = np.zeros((), acc) if init is None else init
    if problem.has_row_init:
        start = per_row_init.host_values(acc, size, init_arrays)
    has_init = problem.is_start or problem.has_row_init
    if is_direct := has_init and shares <= at.DIRECT_SHARES:
        shares = 0
    values, marks = np.empty((shares, size), acc), np.zeros((shares, size), np.uint8)
    addresses = [address(array) for array in (indices, values, marks, *elements, *dense_results)]
    arguments = table(
        [
            num_items, share_items, shares, size, has_init, address(start), problem.has_row_init,
            *addresses,
        ]
    )  # fmt: skip
    with captures_bound(op):
        if is_direct:
            _run("direct", problem, op, arguments, 1, num_items * acc.itemsize)
        else:
            _run("fold", problem, op, arguments, shares, num_items * acc.itemsize)
            tasks = -(-size // at.JOINED)
            _run("join", problem, op, arguments, tasks, shares * size * acc.itemsize)
    for result, dense in zip(results, dense_results, strict=True):
        if dense is not result:
            result[...] = dense


def routines(problem: ByIndex) -> list[Routine]:
    """Return what `reduce` would run, for `explain`."""
    items, bytes_each = prod(problem.shape), problem.acc.itemsize
    shares = _shares(items, problem.size)
    if (problem.is_start or problem.has_row_init) and shares <= at.DIRECT_SHARES:
        return [compiled("by_index", items, max(1, items), items * bytes_each)]
    work = shares * problem.size * bytes_each
    return [
        compiled("by_index", items, -(-items // shares), items * bytes_each),
        compiled("by_index", problem.size, at.JOINED, work),
    ]


def _shares(num_items: int, size: int) -> int:
    return max(1, min(at.MOST_SHARES, num_items // max(at.SHARE, 4 * size)))


def _run(
    kind: str, problem: ByIndex, op: Operator, arguments: Array, tasks: int, work: int
) -> None:
    kernel, table_address = _kernel(kind, problem, op), address(arguments)
    threads.run(lambda first, last: kernel(table_address, 0, first, last), tasks, work)


def _kernel(kind: str, problem: ByIndex, op: Operator) -> Kernel:
    acc, index = problem.acc, problem.index

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.by_index import cpu_kernels as kernels

        if kind == "direct":
            return kernels.direct_kernel(fn, acc, index)
        if kind == "fold":
            return kernels.fold_kernel(fn, acc, index)
        return kernels.join_kernel(fn, acc)

    key = ("by_index", kind, acc, None if kind == "join" else index)
    return get_kernel(key, write, Applied(op, (acc, acc), acc))
