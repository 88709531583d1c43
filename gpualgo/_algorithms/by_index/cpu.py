"""A reduction by index on the CPU's cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.by_index import cpu_parameters as at
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records, threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.layout import address, table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.by_index.problem import ByIndex

Array: TypeAlias = np.ndarray[Any, Any]


def reduce(
    problem: ByIndex, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
    init: Array | None,
) -> None:  # fmt: skip
    """Write what the elements of each index fold to; results have any strides and lie apart."""
    acc, size = problem.acc, problem.size
    indices, elements = _elements(problem, arrays[: problem.num_own], op)
    homes = [
        result if result.flags.c_contiguous else np.empty(result.shape, result.dtype)
        for result in results
    ]
    num_items = indices.size
    shares = max(1, min(at.MOST_SHARES, num_items // max(at.SHARE, 4 * size)))
    share_items = -(-num_items // shares)
    starts = _starts(problem, arrays[problem.num_own :], init)
    values, marks = np.empty((shares, size), acc), np.zeros((shares, size), np.uint8)
    places = [address(array) for array in (indices, values, marks, *elements, *homes)]
    arguments = table(
        [
            num_items, share_items, shares, size, problem.is_start or problem.has_starts,
            address(starts), problem.has_starts, *places,
        ]
    )  # fmt: skip
    with bound(op):
        _run("fold", problem, op, arguments, shares, num_items * acc.itemsize)
        tasks = -(-size // at.JOINED)
        _run("join", problem, op, arguments, tasks, shares * size * acc.itemsize)
    for result, home in zip(results, homes, strict=True):
        if home is not result:
            result[...] = home


def _run(
    kind: str, problem: ByIndex, op: Operator, arguments: Array, tasks: int, work: int
) -> None:
    kernel, where = _kernel(kind, problem, op), address(arguments)
    threads.run(lambda first, last: kernel(where, 0, first, last), tasks, work)


def _starts(problem: ByIndex, arrays: Sequence[Array], init: Array | None) -> Array:
    """Return the start of all results, or one for each."""
    acc = problem.acc
    if not problem.has_starts:
        return np.zeros((), acc) if init is None else init
    starts = np.zeros(max(1, problem.size), acc)
    fields = [starts] if acc.names is None else [starts[name] for name in acc.names]
    for field, array in zip(fields, arrays, strict=True):
        field[: problem.size] = array
    return starts


def _elements(problem: ByIndex, arrays: Sequence[Array], op: Operator) -> tuple[Array, list[Array]]:
    """Return indices, and elements as the accumulator has them, without gaps."""
    source, acc = problem.source, problem.acc
    spread = [np.broadcast_to(array, problem.shape).reshape(-1) for array in arrays]
    if isinstance(source, records.Computed):
        element = records.held(source)
        made = [np.empty(spread[0].shape, leaf) for leaf in records.leaves(element)]
        if made[0].size:
            numbers = tuple(map(records.number_of, source.numbers))
            cpu.transform(Applied(op.source, numbers, element), spread, made)
            problem.check_indices(made[0])
        spread = made
    indices, *x = spread
    with np.errstate(all="ignore"):  # kernels warn of nothing
        return np.ascontiguousarray(indices), [
            np.ascontiguousarray(array, leaf)
            for array, leaf in zip(x, records.leaves(acc), strict=True)
        ]


def _kernel(kind: str, problem: ByIndex, op: Operator) -> Kernel:
    acc, index = problem.acc, problem.index

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.by_index import cpu_kernels as kernels

        if kind == "fold":
            return kernels.fold_kernel(fn, acc, index)
        return kernels.join_kernel(fn, acc)

    key = ("by_index", kind, acc, index if kind == "fold" else None)
    return get_kernel(key, write, Applied(op, (acc, acc), acc))
