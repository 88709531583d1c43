"""What a call on a device has to decide: outputs, streams, and a plan if there is none yet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gpualgo._arrays import fill, ordering
from gpualgo._arrays.view import View, alignment_of, byte_bounds, layout_of
from gpualgo._base import forks
from gpualgo._base.extents import inverse, ordered
from gpualgo._cuda.plan import Plan
from gpualgo._pipeline import checks, outputs
from gpualgo._pipeline.problem import Problem
from gpualgo._pipeline.results import Result

_MAX_PLANS = 64  # of a problem: for alignments and outputs


class Decided(NamedTuple):
    """All that is left to do is to queue the plan, if there is one, and to finish."""

    plan: Plan | None
    stream: int
    targets: tuple[int, ...]
    result: Any
    finish: Callable[[], None] | None


def decide(
    problem: Problem, views: tuple[View, ...], op: Any, init: Any, out: Any, stream: Any
) -> Decided:
    """Decide all about a call on device arrays; results are made, nothing is queued but fills."""
    problem.start(init)  # which checks it, though there may be nothing to launch
    first, where = views[0], problem.where
    outs = () if out is None else outputs.check(problem, views, init, out)
    read = (*views, init) if type(init) is View else views
    streams = ordering.streams_of((*read, *outs))
    handle = ordering.handle_for(stream, first, where, streams)
    targets = outs or outputs.new(problem, first, None if stream is None else handle)
    result = outputs.result_of(targets, out)
    finish = partial(ordering.keep, handle, streams, (*read, *targets)) if streams else None
    if all(0 in target.shape for target in targets):
        return Decided(None, handle, (), result, None)
    if problem.is_empty:
        contents = problem.parts_of(problem.of_empty(op, init))
        for target, content in zip(targets, contents, strict=True):
            fill.fill(target, content, handle)
        if finish is not None:
            finish()
        return Decided(None, handle, (), result, None)
    plan = plan_for(problem, views, op, targets, is_new=out is None)
    return Decided(plan, handle, tuple([target.ptr for target in targets]), result, finish)


def plan_for(
    problem: Problem, views: tuple[View, ...], op: Any, targets: tuple[View, ...], is_new: bool
) -> Plan:
    """Return the plan for arrays where they lie, made and kept if there is none yet.

    `is_new`: the targets are new results of the library, which start at multiples of 16.
    """
    if is_new:
        alignment = alignment_of(views)
        plan = problem.plans.get(alignment)
        if plan is None:
            plan = _new_plan(problem, views, op, targets)
            if problem.is_direct and not problem.makers:  # before the plan is seen
                library, device = views[0].library, problem.device
                problem.makers = [_maker(result, library, device) for result in problem.results]
            _keep(problem.plans, alignment, plan)
        return plan
    parts: list[Any] = [alignment_of(views), alignment_of(targets)]
    for target in targets:
        parts.append(layout_of(target))
        parts += [view.ptr == target.ptr for view in views]
    if problem.views_on_host:  # kernels see them in place, or copies without gaps
        parts += [view.strides for view in views]
    key = tuple(parts)
    known = problem.plans_into.get(key)
    if known is None:
        plan = _new_plan(problem, views, op, targets)
        extents = tuple([_extent(view) for view in views])
        known = (plan, _extent(targets[0]), extents)
        _keep(problem.plans_into, key, known)
    return known[0]


def _maker(result: Result, library: Any, device: int) -> Callable[[], Any]:
    """Return what makes new arrays for a result."""
    maker: Callable[[], Any] = library.maker(
        ordered(result.shape, result.order), result.dtype, device
    )
    if not result.order:
        return maker
    axes = inverse(result.order)
    return lambda: library.transposed(maker(), axes)


def _extent(view: View) -> tuple[int, int]:
    """Return a view's first byte and the one past its last, from its pointer on."""
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
    return problem.cuda(views, problem.operator(op), targets)


_lock = threading.Lock()


def _keep(plans: dict[Any, Any], key: Any, plan: Any) -> None:
    with _lock:
        surplus = [plans.pop(next(iter(plans))) for _ in range(len(plans) - _MAX_PLANS + 1)]
        plans[key] = plan
    del surplus  # let go outside the lock


@forks.in_child
def _renew() -> None:
    global _lock
    _lock = threading.Lock()
