"""Rolling windows on CPU cores: scans and transformations, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gpualgo._algorithms.rolling.problem import Rolling, Step, argument_of
from gpualgo._algorithms.scan import cpu as scans
from gpualgo._algorithms.transform import cpu as elementwise
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied
from gpualgo._cpu.plan import Plan
from gpualgo._operators.operator import Operator, mirrored
from gpualgo._operators.tokens import same
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array


@planners.for_cpu.register(Rolling)
def _(problem: Rolling, arrays: Sequence[Array], results: Sequence[Array], op: Operator) -> Plan:
    acc, source, axis = problem.acc, problem.source, len(problem.buffer_shape)
    copied = elements = Applied(Operator(same), (argument_of(acc),), acc)
    if isinstance(source, records.Computed):
        numbers = tuple(map(records.operand_dtype, source.numbers))
        elements = Applied(op.source, numbers, acc)
    else:
        elements = Applied(Operator(same), (argument_of(source),), acc)
    # In the order of the kinds of steps.
    plans_of = (
        partial(elementwise.plan_of, elements),
        partial(elementwise.plan_of, copied),
        lambda x, outs: scans.plan_of(x, outs, mirrored(op), axis, False, True, acc, acc),
        lambda x, outs: scans.plan_of(x, outs, op, axis, False, False, acc, acc),
        lambda x, outs: elementwise.combine(op, acc, x, outs),
    )

    def steps(arrays: Sequence[Array], results: Sequence[Array]) -> list[Step]:
        buffers = [np.empty(problem.buffer_shape, leaf) for leaf in problem.buffers]
        return problem.steps(arrays, results, buffers)

    plans = [plans_of[kind](inputs, outs) for kind, inputs, outs in steps(arrays, results)]

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        for plan, step in zip(plans, steps(arrays, results), strict=True):
            plan.run(step.inputs, step.outs, 0)

    return Plan(run, [routine for plan in plans for routine in plan.routines])
