"""Planners: how each backend computes a problem. An algorithm registers them by class.

A planner is registered in the module `cuda`, `cpu` or `blocks` of its class's package, or of the
class's `planned_in`, imported at the first such plan. A class inherits the planners of its bases.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from gpualgo._arrays.view import View
from gpualgo._base import forks
from gpualgo._pipeline.problem import Array, Problem

if TYPE_CHECKING:
    from gpualgo._cpu import plan as cpu
    from gpualgo._cuda import plan as cuda
    from gpualgo._operators.operator import Operator


class HostCall(NamedTuple):
    arrays: list[Array]
    results: list[Array]
    op: Any
    init: Array | None
    stream: Any
    device_views: list[View | None]  # device views of arrays and results, None for pageable ones
    is_forced: bool = False  # the arrays do not fit in the GPU's memory as a whole


@singledispatch
def for_cuda(
    problem: Problem, views: Sequence[View], op: Operator | None, targets: Sequence[View]
) -> cuda.Plan:
    """Return the plan on a GPU for arrays of these layouts and alignments."""
    raise NotImplementedError(type(problem))


@singledispatch
def for_cpu(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> cpu.Plan:
    """Return the plan on the CPU for arrays of these layouts.

    A result may be an input's own memory only if it is here.
    """
    raise NotImplementedError(type(problem))


@singledispatch
def for_blocks(problem: Problem, call: HostCall) -> bool:
    """Run host arrays on a GPU block by block; return False if not supported for these arrays.

    If the call `is_forced`, only for results that do not depend on how the input is split.
    """
    return False


def cuda_plan(
    problem: Problem, views: Sequence[View], op: Operator | None, targets: Sequence[View]
) -> cuda.Plan:
    load(type(problem), "cuda")
    return for_cuda(problem, views, op, targets)


def cpu_plan(
    problem: Problem, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> cpu.Plan:
    load(type(problem), "cpu")
    return for_cpu(problem, arrays, results, op)


def run_chunked(problem: Problem, call: HostCall) -> bool:
    if problem.row_init is not None:
        return False
    load(type(problem), "cuda")
    load(type(problem), "blocks")
    return for_blocks(problem, call)


def load(kind: type[Problem], backend: str) -> None:
    """Import the planners of a class and of its bases."""
    for base in kind.__mro__[: kind.__mro__.index(Problem)]:
        own, package = vars(base), sys.modules[base.__module__].__package__
        package = own.get("planned_in", package)
        _import_if_present(f"{package}.{backend}")


@cache
def _import_if_present(name: str) -> None:
    if importlib.util.find_spec(name) is not None:
        importlib.import_module(name)


# --- Plans cached by a problem.

_MOST_PLANS = 64  # of one problem, for different alignments and outputs
_PLAN_BYTES = 1 << 12  # what a plan takes, roughly
_lock = forks.Lock()


def keep(problem: Problem, plans: dict[Any, Any], key: Any, plan: Any) -> None:
    """Add a plan to those of a problem; drop the oldest. Those after the first count as memory."""
    with _lock:
        surplus = [plans.pop(next(iter(plans))) for _ in range(len(plans) - _MOST_PLANS + 1)]
        plans[key] = plan
    if len(plans) > 1 and not surplus:
        problem.hold(_PLAN_BYTES)
    del surplus  # destroyed outside the lock
