"""Dispatch: look up the cached plan of a call, build it if missing, launch.

A warm call on a device runs only `run` and `Plan.queue`. Calls with new layouts, out= seen for the
first time, or streams that need ordering go through `decide` first.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View, alignment_of, known_viewer
from gpualgo._base import recording
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._driver.default_device import DEVICE_KEY, chosen
from gpualgo._operators.key import codes
from gpualgo._operators.operator import Operator, operator_key, retried
from gpualgo._pipeline import checks
from gpualgo._pipeline.inputs import Views, outputs
from gpualgo._pipeline.problem import CHECKED_KEY, ENVIRON, PLAIN, Problem, Request, auto_module

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


def run(
    problem: Problem, views: Views, op: Any, init: Any, out: Any, stream: Any, is_flat: bool = False
) -> Any:
    """Run a problem on arrays of its layouts; return the results in the caller's library.

    Results of a problem with a `form` are packed into it, and `out` is structured so, unless
    `is_flat`. Those of a dynamic length are flat, see `counted`.
    """
    if problem.form is not None and not (is_flat or problem.has_dynamic_length):
        is_one = len(problem.results) == 1
        outs: Any = None if out is None else outputs(problem, out)
        outs = outs[0] if is_one and outs else outs
        result = _run(problem, views, op, init, outs, stream, True)
        if type(result) is Request:
            return result
        if out is not None:
            return out
        if problem.structure is not None:
            return result
        return problem.form.packed((result,) if is_one else result)
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
                plan, targets = planned
                result = out.owner if type(out) is View else out
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


def _run_again(problem: Problem, views: Views, op: Any, init: Any, out: Any, stream: Any) -> Any:
    return run(problem.respecialized(views, op, init), views, op, init, out, stream, True)


def known_plan(
    problem: Problem, views: Views, init: Any, out: Any
) -> tuple[Plan, list[int]] | None:  # fmt: skip
    """Return the cached plan for out=, and the addresses; None if `decide` has to check out."""
    outs = out if type(out) is tuple and len(problem.results) > 1 else (out,)
    if problem.arrays or type(init) is View or len(outs) != len(problem.results):
        return None
    targets = []
    for x in outs:
        viewer = known_viewer(type(x))
        if viewer is None and type(x) is not View:
            return None
        targets.append(x if viewer is None else viewer(x))
    entry = problem.plans_into.get(problem.key_of_outputs(views, targets))
    if entry is None:
        return None
    plan, extents = entry
    others, library, pointers = [*views], views[0].library, []
    for target in targets:
        if target.readonly or target.library is not library:
            return None
        pointer = target.ptr
        low, high = extents[len(others)]
        low, high = low + pointer, high + pointer
        for other, (start, stop) in zip(others, extents, strict=False):
            ptr = other.ptr
            if ptr + start < high and low < ptr + stop and ptr != pointer:
                return None
        others.append(target)
        pointers.append(pointer)
    return plan, pointers


_run = run  # without a range of its own
HAS_RANGES = bool(os.environ.get("NVTX_INJECTION64_PATH") or os.environ.get("GPUALGO_NVTX"))
"""Whether calls are annotated for a profiler (NVTX): then each call goes through `run`."""

if HAS_RANGES:
    from gpualgo._base import log  # imported only if profiling is on

    run = log.each(lambda problem, *_: problem.where)(run)


# --- Front memo: finds a warm call on NumPy arrays by what the call shows at a glance.
#
# A key has the arrays' dtypes, shapes and strides, the operator, the type of the initial value, the
# default device, and the function's other arguments. It is a second key of the problem, beside that
# of `problem_of`, which is made of checked arguments. Addresses, values and `out=` are looked at by
# each call.
#
# Operators are built-ins, and functions and `Operator`s without captured arrays. Calls with others
# go to `problem_of`.

_IMMUTABLE = BuiltinFunctionType, np.ufunc, type(None)  # they mean the same in each call
_SCALARS = np.number, np.bool_  # initial values whose type is their dtype
ndarray = np.ndarray
blocks, environ, code_info = chosen.get, ENVIRON.get, codes.look
_os_environ = os.environ


def run_remembered(
    look: Callable[[Any], Any], op: Any, init: Any, out: Any, options: Any, arrays: tuple[Any, ...]
) -> Any:
    """Return the result of a call whose like has been computed before; None if unknown.

    `look` is that of the class's problems, `options` what else decides, equal only if it means the
    same.
    """
    x = arrays[0]
    if type(x) is not ndarray or recording.active or CHECKED_KEY in ENVIRON:
        return None
    if os.environ is not _os_environ:  # it was replaced
        return None
    op_key = op
    if type(op) is FunctionType:
        info = code_info(id(op.__code__))
        if info is None:
            return None
        op_key = info.closed_key  # defaults decide only how many arrays it takes
        if op_key is None:
            guard = info.guard
            if guard is None or not guard.is_plain(op):
                return None
            op_key = guard.key
    elif type(op) is Operator:
        try:
            op_key = operator_key(op)
        except (CapturesChanged, TypeError, ValueError, CompileError):  # `problem_of` names it
            return None
    if len(arrays) > 1:
        for each in arrays[1:]:
            if type(each) is not ndarray:
                return None
            options = options, each.dtype, each.shape, each.strides
    entered = blocks()
    device = entered[-1].number if entered else environ(DEVICE_KEY)
    try:
        problem = look((op_key, type(init), device, x.dtype, x.shape, x.strides, options))
    except TypeError:  # an argument is unhashable
        return None
    if problem is None:
        return None
    warm = problem.warm
    make = warm.make
    if make is not None and out is None:
        last_init, _, address = warm.init
        if last_init is init:
            return make(arrays, address)
    if problem.choice is not None and not all(map(auto_module().is_known_pageable, arrays)):
        return None
    return warm.call(arrays, op, init, out)


def remember(
    problem: Problem, views: Sequence[View], op: Any, init: Any, options: Any,
    arrays: tuple[Any, ...], store: Callable[[Any, Problem], Any] | None = None,
) -> None:  # fmt: skip
    """Let `run_remembered` find the problem of a call with these arguments from now on.

    `store` adds it to what `look` reads, by default the problems of the class.
    """
    has_key = type(op) in (FunctionType, Operator)
    if not has_key and type(op) not in _IMMUTABLE:
        return
    if not (type(init) in PLAIN or isinstance(init, _SCALARS)) or len(views) != len(arrays):
        return
    if problem.form is not None or problem.is_checked or HAS_RANGES:
        return
    for view, x in zip(views, arrays, strict=True):
        if view.owner is not x or view.shape != x.shape:
            return

    def add(key: Any) -> None:
        if not has_key or problem.composes_operator or key[0] == problem.op_key:
            (store or type(problem).problems.add)(key, problem)

    run_remembered(add, op, init, None, options, arrays)
