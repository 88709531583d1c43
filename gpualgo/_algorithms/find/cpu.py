"""Counting and finding on CPU cores: a search of all elements, or a reduction along axes."""

from __future__ import annotations

from collections.abc import Sequence

from gpualgo._algorithms.find import UNSIGNED, Counting, Finding
from gpualgo._algorithms.reduce import cpu as reduction
from gpualgo._algorithms.select import cpu as selection
from gpualgo._base.strides import squeezed
from gpualgo._cpu.plan import Plan
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array


@planners.for_cpu.register(Counting)
def _(problem: Counting, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    if problem.shape:
        return _along_axes(problem, arrays, results, op)
    return selection.count_of(problem.source, arrays, op)


@planners.for_cpu.register(Finding)
def _(problem: Finding, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    if not problem.shape:
        return selection.first_of(problem.source, arrays, op)
    plan = _along_axes(problem, arrays, [results[0].view(UNSIGNED)], op)
    return Plan(
        lambda arrays, outs, init: plan.run(arrays, [outs[0].view(UNSIGNED)], init), plan.routines
    )


def _along_axes(
    problem: Counting | Finding, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    outs = squeezed(results, problem.axes, len(problem.shape))
    has_init, source, acc = problem.has_init, problem.source, problem.acc
    return reduction.plan_of(arrays, outs, op, problem.axes, source, acc, has_init=has_init)
