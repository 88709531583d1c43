"""A call of an algorithm, taken down instead of run: what `prepare` and others start from."""

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
    """Return a call with all its arguments checked; nothing is run.

    `is_rough`: others may stand for lazy arrays that would be made real before.
    """
    if function not in ALGORITHMS:
        name = getattr(function, "__name__", None) or shown(function)
        if str(getattr(function, "__module__", "")).startswith("gpualgo."):
            raise TypeError(
                f"{where}: {name} makes other calls, or none, by what it is given; pass one of the "
                "algorithms that it is made of"
            )
        raise TypeError(f"{where}: function must be an algorithm of gpualgo, got {name}")
    with recording.recording(_Describer(is_rough)):
        found: Request = function(*args, **kwargs)
    return found


def checked_on_cpu(request: Request) -> Request:
    """Raise what a call of the CPU's would raise before it runs; return it, its operator compiled.

    What elements decide is not looked at: offsets that fall, outputs too short for what is found.
    """
    problem, views, _, init, out, stream = request
    if problem.device != CPU:
        return request
    checks.no_stream(stream, problem.where)
    if out is not None:
        outputs.check(problem, views, init, out)
    return compiled_on_cpu(request)


def compiled_on_cpu(request: Request) -> Request:
    """Compile the operator of a call on the CPU, which may refuse it; return the call to make.

    That is another one where the operator's code needs numbers that it captures as constants.
    """
    problem, views, op, init, _, _ = request
    acc = problem.acc  # of a fold; other operators were typed when the problem was made
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
        with settled.retried(op, problem.hot, error) as is_another:
            if is_another:
                again = problem.again(views, op, init)
                return compiled_on_cpu(request._replace(problem=again))
        refusals.name(error, op, problem.where, problem.op_name)
        raise
    return request


def cuda_plan(request: Request) -> Plan | None:
    """Return the plan of a call on device arrays; None where there is nothing to launch."""
    try:
        return _cuda_plan(request)
    except (TypeError, CompileError) as error:
        problem, views, op, init, _, _ = request
        with settled.retried(op, problem.hot, error) as is_another:
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
