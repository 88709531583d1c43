"""Search on CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.merge_sort.cpu import compared
from gpualgo._algorithms.searchsorted import problem as at
from gpualgo._algorithms.searchsorted.problem import Search
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import table
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

_STEP_BYTES = 8  # cost of a search step, as bytes for `threads.run`
_SCRATCH_BYTES = 8 * at.BLOCK


@planners.for_cpu.register(Search)
def _(
    problem: Search, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> Plan:
    """A result may be the queries' own memory."""
    order, count = problem.order.with_op(op), problem.num_fields
    element, num_sorted = order.element, problem.num_sorted
    axes = problem.results[0].order  # the memory order of a new result, and perhaps of the queries
    (out,), first = results, arrays[0]
    step = element.itemsize if element.names else first.strides[0]
    sides = [element if element.names else x.dtype for x in (first, arrays[count])]
    options = order.element, order.directions, problem.is_right, problem.results[0].dtype
    kernel = compared(
        "searchsorted", "search_kernel", order, tuple(sides), *options, step == sides[0].itemsize
    )
    slots = at.SORTED, at.QUERIES, at.OUTPUT
    work, tasks = out.size * num_sorted.bit_length() * _STEP_BYTES, -(-out.size // at.BLOCK)
    arguments = table((0, step, num_sorted, 0, 0, out.size))
    launch = Launch(kernel, arguments, slots, _SCRATCH_BYTES, tasks, work)
    is_dense = (out.transpose(axes) if axes else out).flags.c_contiguous

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        a, v = _joined(arrays[:count], element), _joined(arrays[count:], element)
        (result,) = results
        if axes:
            v, result = v.transpose(axes), result.transpose(axes)
        dense = result if is_dense else np.empty(result.shape, result.dtype)
        launch((a, np.ascontiguousarray(v), dense))
        if not is_dense:
            result[...] = dense

    return Plan(run, [compiled("searchsorted", out.size, at.BLOCK, work)])


def _joined(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return elements as one array: tuples become records of the dtypes that are compared."""
    if element.names is None:
        return arrays[0]
    joined = np.empty(arrays[0].shape, element)
    for name, array in zip(element.names, arrays, strict=True):
        joined[name] = array
    return joined
