"""Reductions by index on CPU cores; reductions and scans by key of integers of a narrow range."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.by_index import problem as at
from gpualgo._algorithms.by_index.problem import ByIndex, check_indices
from gpualgo._algorithms.by_key import cpu as by_key
from gpualgo._algorithms.by_key.problem import (
    EXCLUSIVE,
    INCLUSIVE,
    REDUCE,
    ByKey,
    InclusiveScan,
    Reduction,
)
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied, Kernel, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import table
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array, host_values


class _Tables:
    """Folds elements into results by index: one table per share, joined in order; or scans them.

    A result without elements is `start`, or its own initial value.
    """

    def __init__(
        self, op: Operator, acc: np.dtype[Any], index: np.dtype[Any], num_items: int, size: int,
        has_init: bool, has_row_init: bool = False, may_fold_directly: bool = False,
        mode: str = REDUCE,
    ) -> None:  # fmt: skip
        self.acc, self.size, item_bytes = acc, size, acc.itemsize
        most = at.MOST_SHARES if size > at.FEW_RESULTS else at.MOST_SHARES_OF_FEW
        shares = max(1, min(most, num_items // max(at.SHARE, 8 * size)))
        share_items = -(-num_items // shares)
        steps = [("fold", num_items, share_items, num_items)]
        steps += [("join", size, at.JOINED, shares * size)]
        if may_fold_directly and has_init and shares <= at.DIRECT_SHARES:
            steps, shares = [("direct", num_items, num_items, num_items)], 0
        if mode != REDUCE:
            steps, shares = [(mode, num_items, num_items, num_items)], 1
        self.shares = shares
        head = num_items, share_items, shares, size, has_init, 0, has_row_init, 0, 0, 0
        fields = range(at.X, at.X + 2 * len(records.field_dtypes(acc)))
        slots, arguments = (at.START, at.INDICES, at.VALUES, at.MARKS, *fields), table(head, fields)
        self.routines = [
            compiled("by_index", items, max(1, tile), work * item_bytes)
            for _, items, tile, work in steps
        ]
        self._launches = [
            Launch(_kernel(kind, acc, index, op), arguments, slots, 0, step.tasks, step.work)
            for (kind, *_), step in zip(steps, self.routines, strict=True)
        ]

    def run(
        self, start: Any, indices: Array, elements: Sequence[Array], results: Sequence[Array]
    ) -> Array:
        """Write the results; return the marks of each table's results that have elements."""
        tables = self.shares, self.size
        values, marks = np.empty(tables, self.acc), np.zeros(tables, np.uint8)
        for launch in self._launches:
            launch((start, indices, values, marks, *elements, *results))
        return marks


@planners.for_cpu.register(ByIndex)
def _(problem: ByIndex, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    """Results overlap no input."""
    acc, size, shape, where = problem.acc, problem.size, problem.shape, problem.where
    num_own, has_row_init = problem.num_own, problem.row_init is not None
    broadcast = [np.broadcast_to(array, shape) for array in arrays[:num_own]]
    kinds = problem.index, *records.field_dtypes(acc)
    elements_of = cpu.gapless(problem.source, kinds, broadcast, op)
    is_unchecked = isinstance(problem.source, records.Computed) and prod(shape) > 0
    has_init = problem.is_start
    tables = _Tables(op, acc, problem.index, prod(shape), size, has_init, has_row_init, True)

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        own = [x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays[:num_own]]
        indices, *elements = elements_of(own)
        if is_unchecked:
            check_indices(indices, size, where)
        start: Any = init
        if has_row_init:
            start = host_values(acc, size, arrays[num_own:])
        tables.run(start, indices, elements, results)

    return Plan(run, tables.routines).into(results)


def _kernel(kind: str, acc: np.dtype[Any], index: np.dtype[Any], op: Operator) -> Kernel:
    options: tuple[Any, ...] = () if kind == "join" else (index,)
    if kind in (INCLUSIVE, EXCLUSIVE):
        kind, options = "scan", (index, kind == EXCLUSIVE)
    code = named("by_index", f"{kind}_kernel", acc, *options)
    return get_kernel(*code, Applied(op, (acc, acc), acc))


# --- Keys in any order: integers of a narrow range are not sorted.

TABLES_FROM = 1 << 14  # elements: fewer are sorted about as fast
KEY_ITEMS = 8  # least number of elements for each integer of the range


@planners.for_cpu.register(Reduction)
@planners.for_cpu.register(InclusiveScan)
def _(problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    """Each call looks at its keys and chooses tables or the sort; each is planned when needed."""
    acc, key, shape = problem.acc, problem.key, problem.shape
    num_items, fields = prod(shape), records.field_dtypes(acc)
    is_plain = problem.in_any_order and problem.num_keys == 1 and key.kind in "biu"
    if not is_plain or num_items < TABLES_FROM:
        return by_key.planned(problem, arrays, results, op)
    unsigned = np.dtype(f"u{key.itemsize}")
    no_init = np.zeros(1, acc)
    sorting: list[Plan] = []

    @lru_cache(maxsize=4)
    def tables_of(size: int) -> _Tables:
        has_init, mode = problem.has_init, problem.mode
        return _Tables(op, acc, unsigned, num_items, size, has_init, mode=mode)

    def way(arrays: Sequence[Array], results: Sequence[Array]) -> tuple[int, _Tables | Plan]:
        """Return the first key of tables, and how keys of this range are processed."""
        low, end = int(arrays[0].min()), int(arrays[0].max()) + 1
        if low > 0 and end * KEY_ITEMS <= num_items:
            low = 0  # keys are indices then
        if (end - low) * KEY_ITEMS <= num_items:
            return low, tables_of(end - low)
        if not sorting:
            sorting.append(by_key.planned(problem, arrays, results, op))
        return low, sorting[0]

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        low, chosen = way(arrays, results)
        if isinstance(chosen, Plan):
            chosen.run(arrays, results, init)
            return
        keys, *elements = (np.ascontiguousarray(np.broadcast_to(x, shape)) for x in arrays)
        if key.kind == "b":  # of other memory, any byte but 0 is True
            keys = keys.view(unsigned) != 0
        with np.errstate(all="ignore"):  # kernels do not warn
            pairs = zip(elements, fields, strict=True)
            values = [x.astype(field, copy=False) for x, field in pairs]
        # Differences modulo the keys' range: they fit, though neither number has to be positive.
        first = np.array(low, key).view(unsigned)
        indices = keys.view(unsigned) if low == 0 else keys.view(unsigned) - first
        if problem.mode != REDUCE:
            chosen.run(init or no_init, indices, values, results)
            return
        totals = [np.empty(chosen.size, field) for field in fields]
        marks = chosen.run(init or no_init, indices, values, totals)
        *outs, count = results
        present = np.flatnonzero(marks.any(axis=0))
        count[...] = present.size
        present = present[: outs[0].size]
        outs[0][: present.size] = (present.astype(unsigned) + first).view(key)
        for out, total in zip(outs[1:], totals, strict=True):
            out[: present.size] = total[present]

    plan = Plan(run, way(arrays, results)[1].routines)
    return plan if problem.mode == REDUCE else plan.into(results)
