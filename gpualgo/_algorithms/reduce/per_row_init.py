"""Reduction with one initial value per row: reduces rows, then op(init, result) for each row.

Inputs are the arrays of x, followed by those of init. A plan's second launch applies op once per
row. A single initial value is applied the same way in the first launch, so the bits are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import View
from gpualgo._base.strides import squeezed, without_axes
from gpualgo._cpu import plan as cpu_plan
from gpualgo._cuda import plan as cuda_plan
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import per_row_init, planners
from gpualgo._pipeline.problem import Array, Call


class PerRowInitReduction(per_row_init.PerRowInit, Reduction):
    """Arguments that equal calls of `reduce` share if init is an array."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        # Rows without elements return their initial values.
        self.has_no_items, self.is_empty = self.is_empty, False

    @property
    def init_shape(self) -> tuple[int, ...]:
        return self.shape


@planners.for_cuda.register(PerRowInitReduction)
def _(
    problem: PerRowInitReduction, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> cuda_plan.Plan:
    from gpualgo._algorithms.reduce import cuda
    from gpualgo._algorithms.transform import cuda as elementwise
    from gpualgo._algorithms.transform.tuning import Applied

    args = cuda_plan.ArgMap(len(views), len(targets))
    slots = [args.source(i) for i in range(len(views))]
    out_slots = [args.target(i) for i in range(len(targets))]
    axes, shape, acc, num_own = problem.axes, problem.shape, problem.acc, problem.num_own
    strides = [without_axes(target.strides, axes, len(shape)) for target in targets]
    of_x, inits = views[:num_own], views[num_own:]
    init_slots = slots[num_own:]
    if problem.has_no_items:  # each initial value is a row of one element
        fields = cuda.FieldSlots(args, init_slots, out_slots)
        return cuda.plan_of(inits, without_source(op), (), acc, acc, strides, fields)
    fields = cuda.FieldSlots(args, slots[:num_own], out_slots)
    plan = cuda.plan_of(of_x, op, axes, problem.source, acc, strides, fields)
    outs = [
        target._replace(shape=shape, strides=step)
        for target, step in zip(targets, strides, strict=True)
    ]
    number = per_row_init.join_dtype(acc)
    applied = Applied(without_source(op), (number, number), acc)
    join_slots = out_slots, [*init_slots, *out_slots]
    plan.steps += elementwise.plan_of(applied, [*inits, *outs], shape, outs, join_slots).steps
    return plan


@planners.for_cpu.register(PerRowInitReduction)
def _(
    problem: PerRowInitReduction, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> cpu_plan.Plan:
    from gpualgo._algorithms.reduce import cpu
    from gpualgo._algorithms.transform import cpu as elementwise
    from gpualgo._cpu.operator import Applied

    num_own, acc = problem.num_own, problem.acc
    if problem.has_no_items:
        return cpu_plan.Plan(partial(_copy_inits, problem), ())
    outs = squeezed(results, problem.axes, len(problem.shape))
    first = cpu.plan_of(arrays[:num_own], outs, op, problem.axes, problem.source, acc)
    number = per_row_init.join_dtype(acc)
    applied = Applied(op, (number, number), acc)
    second = elementwise.plan_of(applied, [*arrays[num_own:], *outs], outs)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        first.run(arrays[:num_own], results, 0)
        second.run([*arrays[num_own:], *results], results, 0)

    return cpu_plan.Plan(run, (*first.routines, *second.routines))


def _copy_inits(
    problem: PerRowInitReduction, arrays: Sequence[Array], results: Sequence[Array], _: int
) -> None:
    outs = squeezed(results, problem.axes, len(problem.shape))
    for out, start in zip(outs, arrays[problem.num_own :], strict=True):
        out[...] = start


@planners.for_blocks.register(PerRowInitReduction)
def _(problem: PerRowInitReduction, call: planners.HostCall) -> bool:
    return False
