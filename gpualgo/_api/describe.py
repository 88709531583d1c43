"""Captures a call as a checked `Request` without running it, for `prepare` and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpualgo._algorithms import ALGORITHMS
from gpualgo._arrays.view import View
from gpualgo._base import recording
from gpualgo._base.errors import CapturesChanged, CompileError, shown
from gpualgo._cuda.plan import Plan
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks, outputs, refusals, settled
from gpualgo._pipeline.decide import plan_for
from gpualgo._pipeline.problem import Request


class _Describer:
    is_graph = is_on_cpu = False

    def __init__(self, is_rough: bool) -> None:
        self.is_rough = is_rough

    def call(self, request: Request) -> Request:
        return request


def describe(
    where: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    is_rough: bool = False,
) -> Request:  # fmt: skip
    """Return a call as a request with checked arguments; nothing is run.

    `is_rough`: lazy arrays need not be materialized; other arrays may stand in for them.
    """
    if function not in ALGORITHMS:
        name = getattr(function, "__name__", None) or shown(function)
        if str(getattr(function, "__module__", "")).startswith("gpualgo."):
            raise TypeError(
                f"{where}: {name} decides from its arguments which algorithms it calls; pass one "
                "of those"
            )
        raise TypeError(f"{where}: function must be an algorithm of gpualgo, got {name}")
    with recording.recording(_Describer(is_rough)):
        request: Request = function(*args, **kwargs)
    return request


def checked_on_cpu(request: Request) -> Request:
    """Raise the errors that a call on the CPU raises before it runs; return the request.

    The operator is compiled. Values are not checked, such as falling offsets or too short outputs.
    """
    problem, views, _, init, out, stream = request
    if problem.device != CPU:
        return request
    checks.no_stream(stream, problem.where)
    if out is not None:
        outputs.check(problem, views, init, out)
    return compiled_on_cpu(request)


def compiled_on_cpu(request: Request) -> Request:
    """Compile the operator of a call on the CPU; return the request to use from then on.

    It is a different request if the operator needs captured numbers as constants.
    """
    problem, views, op, init, _, _ = request
    acc = problem.acc  # set for folds; other operators were compiled when the problem was made
    if problem.device != CPU or problem.is_empty or acc is None or problem.num_arguments != 2:
        return request
    try:
        operator = problem.operator(op)
        if operator is not None and not operator.is_known:
            from gpualgo._cpu.operator import compile_operator

            compile_operator(operator, (acc, acc), acc)
    except CapturesChanged:
        return compiled_on_cpu(request._replace(problem=problem.again(views, op, init)))
    except (TypeError, CompileError) as error:
        with settled.retry_with_constants(op, problem.hot, error) as is_another:
            if is_another:
                new_problem = problem.again(views, op, init)
                return compiled_on_cpu(request._replace(problem=new_problem))
        refusals.name(error, op, problem.where, problem.op_name)
        raise
    return request


def cuda_plan(request: Request) -> Plan | None:
    """Return the plan of a call on device arrays; None if nothing is launched."""
    try:
        return _cuda_plan(request)
    except (TypeError, CompileError) as error:
        problem, views, op, init, _, _ = request
        with settled.retry_with_constants(op, problem.hot, error) as is_another:
            if is_another:
                return cuda_plan(request._replace(problem=problem.again(views, op, init)))
        raise


def _cuda_plan(request: Request) -> Plan | None:
    problem, views, op, init, out, _ = request
    if problem.views_on_host or problem.is_empty:
        return None
    if out is not None:
        targets = outputs.check(problem, views, init, out)
    else:
        library = views[0].library
        targets = tuple(
            View(0, result.shape, result.strides(), result.dtype, problem.device, library, False,
                 None)
            for result in problem.results
        )  # fmt: skip
    if all(0 in target.shape for target in targets):
        return None
    return plan_for(problem, views, op, targets, is_new=out is None)
