"""Segments on CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.segments import problem as at
from gpualgo._algorithms.segments.problem import Segmented, SegmentedReduction, SegmentedScan
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied, Kernel, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array, host_values

_BY_ONE = frozenset(("join", "carry"))  # kernels that one thread runs


@planners.for_cpu.register(SegmentedReduction)
def _(
    problem: SegmentedReduction, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    """Results overlap no input."""
    return _plan_of(problem, arrays, results, op, ["reduce", "join"])


@planners.for_cpu.register(SegmentedScan)
def _(
    problem: SegmentedScan, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    """Elements in no segment are copied; results may overwrite x."""
    last = "exclusive" if problem.is_exclusive else "inclusive"
    return _plan_of(problem, arrays, results, op, ["tail", "carry", last])


def _plan_of(
    problem: Segmented, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
    kinds: Sequence[str],
) -> Plan:  # fmt: skip
    """Return the plan that runs these kernels; a single task needs only the main one."""
    acc, num_own, num_segments = problem.acc, problem.num_own, problem.num_segments
    has_row_init, is_scan = problem.row_init is not None, len(kinds) > 2
    elements_of = cpu.gapless(problem.source, records.field_dtypes(acc), arrays[: num_own - 1], op)
    steps = problem.num_items + num_segments  # at most, as offsets may leave out elements
    routine = compiled("segments", steps, at.TASK, steps * acc.itemsize)
    tasks = routine.tasks
    if tasks == 1:
        kinds = [kinds[-1] if is_scan else kinds[0]]
    head = 0, num_segments, problem.is_start, 0, has_row_init, 0, 0, 0, 0, tasks
    fields = range(at.X, at.X + 2 * len(results))
    arguments = table(head, fields)
    slots = at.OFFSETS, at.START, at.HEADS, at.TAILS, at.HAS_HEAD, at.HAS_TAIL, *fields
    launches = [
        Launch(_kernel(kind, op, acc), arguments, slots, 0, 1, 0)
        if kind in _BY_ONE
        else Launch(_kernel(kind, op, acc), arguments, slots, 0, tasks, routine.work)
        for kind in kinds
    ]
    # Heads, tails and their marks, one of each for a task.
    value_bytes = tasks * acc.itemsize
    places = 0, value_bytes, 2 * value_bytes, 2 * value_bytes + tasks
    part_bytes = 2 * value_bytes + 2 * tasks
    no_init = np.zeros((), acc)

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        offsets = np.ascontiguousarray(arrays[num_own - 1], np.int64)
        elements = elements_of(arrays[: num_own - 1])
        if is_scan:
            _copy_outside(offsets, elements, results)
        start: Any = init or no_init
        if has_row_init:
            start = host_values(acc, num_segments, arrays[num_own:])
        parts = np.empty(part_bytes, np.uint8)
        part_address = address(parts)
        words = (offsets, start, *[part_address + place for place in places], *elements, *results)
        for launch in launches:
            launch(words)

    return Plan(run, [routine]).into(results)


def _copy_outside(offsets: Array, elements: Sequence[Array], results: Sequence[Array]) -> None:
    """Copy the elements in no segment."""
    first, last = int(offsets[0]), int(offsets[-1])
    for result, element in zip(results, elements, strict=True):
        if first > 0:
            result[:first] = element[:first]
        if last < len(element):
            result[last:] = element[last:]


def _kernel(kind: str, op: Operator, acc: np.dtype[Any]) -> Kernel:
    options = (op.commutative,) if kind in ("reduce", "tail") else ()
    if kind in ("exclusive", "inclusive"):
        kind, options = "scan", (kind == "exclusive",)
    code = named("segments", f"{kind}_kernel", acc, *options)
    return get_kernel(*code, Applied(op, (acc, acc), acc))
