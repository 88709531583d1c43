"""Reduction by index on CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.by_index import problem as at
from gpualgo._algorithms.by_index.problem import ByIndex, check_indices
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied, Kernel, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import table
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array, host_values


@planners.for_cpu.register(ByIndex)
def _(problem: ByIndex, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    """Results overlap no input."""
    acc, size, shape, where = problem.acc, problem.size, problem.shape, problem.where
    num_own, has_row_init = problem.num_own, problem.row_init is not None
    has_init = problem.is_start
    broadcast = [np.broadcast_to(array, shape) for array in arrays[:num_own]]
    kinds = problem.index, *records.field_dtypes(acc)
    elements_of = cpu.gapless(problem.source, kinds, broadcast, op)
    num_items, item_bytes = prod(shape), acc.itemsize
    is_unchecked = isinstance(problem.source, records.Computed) and num_items > 0
    shares = max(1, min(at.MOST_SHARES, num_items // max(at.SHARE, 8 * size)))
    share_items = -(-num_items // shares)
    steps = [("fold", num_items, share_items, num_items), ("join", size, at.JOINED, shares * size)]
    if has_init and shares <= at.DIRECT_SHARES:
        steps, shares = [("direct", num_items, num_items, num_items)], 0
    head = num_items, share_items, shares, size, has_init, 0, has_row_init, 0, 0, 0
    fields = range(at.X, at.X + 2 * len(results))
    slots, arguments = (at.START, at.INDICES, at.VALUES, at.MARKS, *fields), table(head, fields)
    routines = [
        compiled("by_index", items, max(1, tile), work * item_bytes)
        for _, items, tile, work in steps
    ]
    launches = [
        Launch(_kernel(kind, problem, op), arguments, slots, 0, step.tasks, step.work)
        for (kind, *_), step in zip(steps, routines, strict=True)
    ]

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        own = [x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays[:num_own]]
        indices, *elements = elements_of(own)
        if is_unchecked:
            check_indices(indices, size, where)
        start: Any = init
        if has_row_init:
            start = host_values(acc, size, arrays[num_own:])
        values, marks = np.empty((shares, size), acc), np.zeros((shares, size), np.uint8)
        for launch in launches:
            launch((start, indices, values, marks, *elements, *results))

    return Plan(run, routines).into(results)


def _kernel(kind: str, problem: ByIndex, op: Operator) -> Kernel:
    acc, options = problem.acc, () if kind == "join" else (problem.index,)
    code = named("by_index", f"{kind}_kernel", acc, *options)
    return get_kernel(*code, Applied(op, (acc, acc), acc))
