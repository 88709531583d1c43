"""Dispatch: look up the cached plan of a call, build it if missing, launch.

A warm call on a device runs only `run` and `Plan.queue`. Calls with new layouts, out= seen for the
first time, or streams that need ordering go through `decide` first.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpualgo._arrays.view import View, alignment_of, layout_of, view_of
from gpualgo._base import recording
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._operators.operator import retried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem, Request

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


def run(
    problem: Problem, views: tuple[View, ...], op: Any, init: Any, out: Any, stream: Any
) -> Any:
    """Run a problem on arrays of its layouts; return the results in the caller's library."""
    if recording.active and (recorder := recording.current()) is not None:
        return recorder.call(Request(problem, views, op, init, out, stream))
    if problem.warm is not None and stream is None:
        result = problem.warm(views, op, init, out)
        if result is not None:
            return result
    plan: Plan | None = None
    targets: Iterable[int]
    if problem.is_direct and stream is None:
        if out is not None:
            if (planned := known_plan(problem, views, init, out)) is not None:
                plan, target = planned
                targets, result = (target.ptr,), target.owner
        elif (plan := problem.plans.get(alignment_of(views))) is not None:
            if len(problem.makers) == 1:
                result = problem.makers[0]()
                targets = (problem.pointer(result),)
            else:
                result = tuple([make() for make in problem.makers])
                targets = map(problem.pointer, result)
    finish = None
    try:
        if plan is not None:
            handle = problem.stream(problem.device)
        else:
            if problem.views_on_host:
                from gpualgo._pipeline import host

                return host.run(problem, views, op, init, out, stream)
            from gpualgo._pipeline.decide import decide

            plan, handle, targets, result, finish = decide(problem, views, op, init, out, stream)
            if plan is None:
                return result
        cached_init, start = problem.last_start
        if cached_init is not init:
            start = problem.start(init)
        scalars = problem.captured_scalars(op) if problem.has_numbers else b""
    except (CapturesChanged, TypeError, CompileError) as error:
        checks.name(error, op, problem.where, problem.op_name)
        # a closure would make each call's variables slower
        attempt = functools.partial(_run_again, problem, views, op, init, out, stream)
        return retried(error, op, problem.op_key, attempt)
    try:
        if len(views) == 1:
            plan.queue(handle, (*start, scalars, views[0].ptr, *targets))
        else:
            plan.queue(handle, (*start, scalars, *[view.ptr for view in views], *targets))
    finally:  # some steps may be queued when an error is raised
        if finish is not None:
            finish()
    return result


def _run_again(problem: Problem, views: tuple[View, ...], op: Any, init: Any, *places: Any) -> Any:
    return run(problem.respecialized(views, op, init), views, op, init, *places)


def known_plan(
    problem: Problem, views: tuple[View, ...], init: Any, out: Any
) -> tuple[Plan, View] | None:
    """Return the cached plan for out= and the view of out; None if `decide` has to check it."""
    if len(problem.results) > 1 or problem.arrays or type(init) is View:
        return None
    target: View = out if type(out) is View else view_of(out, problem.out_name)
    pointer = target.ptr
    is_in_place = [view.ptr == pointer for view in views]
    key = (alignment_of(views), pointer & 15, layout_of(target), *is_in_place)
    entry = problem.plans_into.get(key)
    if entry is None or target.readonly or target.library is not views[0].library:
        return None
    plan, (low, high), extents = entry
    low, high = low + pointer, high + pointer
    for view, (start, stop) in zip(views, extents, strict=True):
        ptr = view.ptr
        if ptr + start < high and low < ptr + stop and ptr != pointer:
            return None
    return plan, target


HAS_RANGES = bool(os.environ.get("NVTX_INJECTION64_PATH") or os.environ.get("GPUALGO_NVTX"))
"""Whether calls are annotated for a profiler (NVTX): then each call goes through `run`."""

if HAS_RANGES:
    from gpualgo._base import log  # imported only if profiling is on

    run = log.each(lambda problem, *_: problem.where)(run)
