"""Prepares calls on device arrays that are not warm: outputs, stream order, and the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gpualgo._arrays import device_array, ordering
from gpualgo._arrays.view import View, alignment_of, byte_bounds
from gpualgo._base.strides import inverse, ordered
from gpualgo._cuda.plan import Plan
from gpualgo._pipeline import checks, outputs, planners
from gpualgo._pipeline.problem import Problem, Result


class Decided(NamedTuple):
    """A prepared call: queue the plan, if there is one, then call `finish`."""

    plan: Plan | None
    stream: int
    targets: tuple[int, ...]
    result: Any
    finish: Callable[[], None] | None


def decide(
    problem: Problem, views: tuple[View, ...], op: Any, init: Any, out: Any, stream: Any
) -> Decided:
    """Prepare a call on device arrays: allocate results, order streams; queue nothing but fills."""
    problem.start(init)  # checks init, even if nothing is launched
    first, where = views[0], problem.where
    outs = () if out is None else outputs.check(problem, views, init, out)
    inputs = (*views, init) if type(init) is View else views
    streams = ordering.streams_of((*inputs, *outs))
    handle = ordering.handle_for(stream, first, where, streams)
    targets = outs or outputs.new(problem, first, None if stream is None else handle)
    result = out.owner if type(out) is View else out
    if out is None:
        result, *others = [target.owner for target in targets]
        result = (result, *others) if others else result
    finish = partial(ordering.keep, handle, streams, (*inputs, *targets)) if streams else None
    if all(0 in target.shape for target in targets):
        return Decided(None, handle, (), result, None)
    if problem.is_empty:
        contents = problem.parts_of(problem.of_empty(op, init))
        for target, content in zip(targets, contents, strict=True):
            device_array.fill(target, content, handle)
        if finish is not None:
            finish()
        return Decided(None, handle, (), result, None)
    plan = plan_for(problem, views, op, targets, is_new=out is None)
    return Decided(plan, handle, tuple([target.ptr for target in targets]), result, finish)


def plan_for(
    problem: Problem, views: tuple[View, ...], op: Any, targets: tuple[View, ...], is_new: bool
) -> Plan:
    """Return the cached plan for arrays of these alignments, or build one.

    `is_new`: the targets are new results of the library, aligned to 16 bytes.
    """
    if is_new:
        alignment = alignment_of(views)
        plan = problem.plans.get(alignment)
        if plan is None:
            plan = _new_plan(problem, views, op, targets)
            if problem.is_direct and not problem.makers:  # before other threads see the plan
                library, device = views[0].library, problem.device
                problem.makers = [_maker(result, library, device) for result in problem.results]
            planners.keep(problem, problem.plans, alignment, plan)
        return plan
    key = problem.key_of_outputs(views, targets)
    if problem.views_on_host:  # kernels read them in place or as contiguous copies
        key += tuple([view.strides for view in views])
    entry = problem.plans_into.get(key)
    if entry is None:
        plan = _new_plan(problem, views, op, targets)
        entry = plan, tuple(map(_extent, (*views, *targets)))
        planners.keep(problem, problem.plans_into, key, entry)
    return entry[0]


def _maker(result: Result, library: Any, device: int) -> Callable[[], Any]:
    maker: Callable[[], Any] = library.maker(
        ordered(result.shape, result.order), result.dtype, device
    )
    if not result.order:
        return maker
    axes = inverse(result.order)
    return lambda: library.transposed(maker(), axes)


def _extent(view: View) -> tuple[int, int]:
    """Return the first byte of a view and the one past its last, relative to its pointer."""
    low, high = byte_bounds(view)
    return low - view.ptr, high - view.ptr


def _new_plan(
    problem: Problem, views: tuple[View, ...], op: Any, targets: tuple[View, ...]
) -> Plan:
    if problem.needs_alignment:
        for name, view in zip(problem.inputs, views, strict=False):
            checks.aligned(view, name, problem.where)
        for name, target in zip(outputs.names_of(problem), targets, strict=True):
            checks.aligned(target, name, problem.where)
    return planners.cuda_plan(problem, views, problem.operator(op), targets)
