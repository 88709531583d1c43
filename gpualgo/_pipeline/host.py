"""Calls on host arrays: run on CPU threads, or staged to a GPU and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._cpu.memory import address, run_captured
from gpualgo._cpu.plan import Plan
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator, without_arrays
from gpualgo._pipeline import checks, host_warm, outputs, planners
from gpualgo._pipeline.problem import Array, Problem


def run(
    problem: Problem, views: tuple[View, ...], op: Any, init: Any, out: Any, stream: Any
) -> Any:
    """Run a problem on host arrays; return when the results are complete."""
    if stream is not None:
        problem = problem.on_gpu(views, op, init)
    library = views[0].library
    start = problem.encode(init)  # checks it before anything is written
    arrays, results, owners = operands(problem, views, init, out)
    operator = problem.operator(op)
    if problem.device == CPU:
        checks.no_stream(stream, problem.where)
    if any(result.size for result in results):
        if problem.is_empty:
            fill(problem, arrays, results, op, init, stream)
        elif problem.device == CPU:
            plan = run_on_cpu(problem, arrays, results, operator, start, out is None)
            host_warm.prepare(problem, views, operator, plan)
        else:
            from gpualgo._pipeline import host_small

            strategy = _staged(problem, arrays, results, operator, init, stream, out is None)
            host_small.log_staged(problem, strategy, arrays, results)
    if out is not None:
        return out.owner if type(out) is View else out
    if problem.has_dynamic_length:
        *new, count = host_warm.counted(owners, problem.results[0].is_upper_bound)
        return (*[library.from_numpy(array, arrays[0]) for array in new], count)
    answers = [library.from_numpy(owner, arrays[0]) for owner in owners]
    if problem.returns_scalars and not results[0].shape:
        answers = [library.scalar(result) for result in answers]
    return tuple(answers) if len(answers) > 1 else answers[0]


def run_on_cpu(
    problem: Problem, arrays: list[Array], results: list[Array], op: Operator | None,
    start: Array | None, is_new: bool,
) -> Plan | None:  # fmt: skip
    """Run a problem on the CPU; return its plan if it serves all calls with new results.

    `start`: the initial value. `is_new`: the results are new arrays. A plan is cached by the
    layouts of the results, and by which of them are inputs' own memory. It keeps no array alive
    that the operator captures.
    """
    key: Any = None  # of results with the layouts of new ones
    layouts = () if is_new else host_warm.layouts_of_outputs(problem)
    if not is_new and host_warm.are_inputs(layouts, results, arrays) is not False:
        starts = [address(array) for array in arrays]
        key = tuple(
            (x.shape, x.strides, x.flags.aligned, *[address(x) == start for start in starts])
            for x in results
        )
    plan = problem.cpu_plans.get(key)
    if plan is None:
        planners.load(type(problem), "cpu")
        planned = op if op is None or not problem.arrays else without_arrays(op)
        plan = planners.for_cpu(problem, arrays, results, planned)
        planners.keep(problem, problem.cpu_plans, key, plan)
    run_plan(plan, arrays, results, op, start)
    return plan if key is None else None


def run_plan(
    plan: Plan, arrays: list[Array], results: list[Array], op: Operator | None, start: Array | None
) -> None:
    run_captured(op, plan.run, arrays, results, 0 if start is None else address(start))


def operands(
    problem: Problem, views: Sequence[View], init: Any, out: Any
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the inputs, the results, and the new arrays, one of which may have them as fields."""
    arrays = [array_of(view) for view in views]
    if out is None:
        return arrays, *host_warm.new_results(host_warm.layouts_of(problem), problem.structure)
    targets = outputs.check(problem, tuple(views), init, out)
    return arrays, [array_of(target) for target in targets], []


def array_of(view: View) -> Array:
    """Return a host array as a NumPy array, broadcast to the view's shape."""
    owner = view.owner
    array: Array = owner if type(owner) is np.ndarray else view.library.to_numpy(owner)
    if array.shape == view.shape:
        return array
    if not view.shape and array.size == 1:  # out_count of shape (1,)
        return array.reshape(())
    return np.broadcast_to(array, view.shape)


def fill(
    problem: Problem, arrays: list[Array], results: list[Array], op: Any, init: Any, stream: Any
) -> None:
    """Write the results of an empty input."""
    content = problem.of_empty(op, init)
    if problem.device != CPU:
        from gpualgo._pipeline import host_whole

        reason = f"{problem.where}: {problem.inputs[0]} is empty, so the host writes out"
        host_whole.begin(problem.device, stream, arrays[0], problem.where, reason)
    for result, part in zip(results, problem.parts_of(content), strict=True):
        result[...] = part


def _staged(
    problem: Problem, arrays: list[Array], results: list[Array], op: Any, init: Any, stream: Any,
    is_new: bool,
) -> str:  # fmt: skip
    """Run host arrays on the problem's GPU; return the staging strategy used, for the log.

    `is_new`: the results are new arrays that nobody else holds.
    """
    from gpualgo._driver import device as gpu
    from gpualgo._pipeline import host_small, host_whole

    device, where = problem.device, problem.where
    if (stand_in := gpu.get(device).stand_in) is not None:
        stand_in.run(problem, arrays, results, op, init)
        return "by a stand-in"
    if stream is None:
        with gpu.get(device).current():
            encoded = problem.encode(init)
            if host_small.run(problem, arrays, results, op, init, encoded, is_new):
                return "as small arrays"
    if op is not None:
        op = host_whole.operator_on_device(op, device, stream, where)
    with gpu.get(device).current():
        device_views = host_whole.page_locked_views(
            [*arrays, *results], device, where, is_aligned=not problem.copies_page_locked
        )
        call = planners.HostCall(arrays, results, op, problem.encode(init), stream, device_views)
        if (None in device_views or problem.copies_page_locked) and planners.run_chunked(
            problem, call
        ):
            return "in blocks"
        is_queued = False
        try:
            is_bound = problem.has_dynamic_length and problem.results[0].is_upper_bound
            places = arrays, results, where, problem.copies_page_locked, device_views, is_bound
            with host_whole.on_device(device, stream, *places) as (handle, sources, targets):
                is_queued = True
                host_whole.queue(problem, handle, sources, targets, op, init)
        except MemoryError:
            forced = call._replace(is_forced=True)
            if is_queued or not planners.run_chunked(problem, forced):
                raise
            return "in blocks, because the arrays do not fit in its memory"
        return "as a whole" if None in device_views else "in place in page-locked memory"
