"""Adjacent differences on CPU cores: a transformation of x and of x shifted by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpualgo._algorithms.adjacent_difference import AdjacentDifference, Parts
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied
from gpualgo._cpu.plan import Plan, Routine
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array


@planners.for_cpu.register(AdjacentDifference)
def _(
    problem: AdjacentDifference, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    """Computed elements are written to memory first."""
    shape, result = problem.shape, problem.result
    parts, has_steps = Parts.along(problem.axis), shape[problem.axis] > 1
    arrays = [np.broadcast_to(array, shape) for array in arrays]
    element = records.register_dtype(problem.source)
    routines: list[Routine] = []
    computing = None
    if isinstance(problem.source, records.Computed):
        fields = records.field_dtypes(element)
        computed = [np.empty(shape, field) for field in fields]
        computing = cpu.plan_of(cpu.elements_of(problem.source, op, element), arrays, computed)
        routines += computing.routines
        arrays = computed
    differing = None
    if has_steps:
        applied = Applied(op, (records.argument_of(element),) * 2, result)
        differing = cpu.plan_of(applied, *parts.split(arrays, results))
        routines += differing.routines

    def run(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        if computing is not None:
            computed = [np.empty(shape, field) for field in fields]
            computing.run([np.broadcast_to(array, shape) for array in arrays], computed, init)
            arrays = computed
        if differing is not None:
            differing.run(*parts.split(arrays, outs), init)
        parts.copy_first(arrays, outs)

    return Plan(run, routines)
