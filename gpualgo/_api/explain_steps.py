"""The steps of a call for `explain`, without running it: of a GPU plan, or on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gpualgo._api.explanation import Step, Touched
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import Clear, Places, Plan
from gpualgo._pipeline import host, outputs
from gpualgo._pipeline.problem import Problem, Request


def read_by(views: Sequence[View]) -> int:
    """Return the bytes of memory behind the views; broadcast elements count once."""
    return sum(map(_bytes_of, views))


def written_by(problem: Problem) -> int:
    """Return the bytes of the results, at most."""
    return sum(math.prod(result.shape) * result.dtype.itemsize for result in problem.results)


def _bytes_of(view: View) -> int:
    if records.is_position(view.dtype):
        return 0
    extents = [n for n, step in zip(view.shape, view.strides, strict=True) if step or not n]
    return math.prod(extents) * view.dtype.itemsize


def of_plan(plan: Plan, request: Request) -> tuple[Step, ...]:
    """Return a plan's launches and memsets as steps."""
    problem = request.problem
    arrays = dict(_named(plan, problem, request.views))
    steps = []
    for step in plan.steps:
        if isinstance(step, Clear):
            memory = (Touched(arrays[step.place].name, step.num_bytes),)
            steps.append(Step("memset", is_compiled=False, memory=memory))
        else:
            steps.append(_of_launch(step, plan.device.ordinal, arrays))
    return tuple(steps)


def _named(plan: Plan, problem: Problem, views: Sequence[View]) -> Iterator[tuple[int, Touched]]:
    """Yield the name and size of the memory at each slot of a plan's addresses."""
    slots = Places(len(views), len(problem.results))
    for i, view in enumerate(views):
        name = problem.inputs[i] if i < len(problem.inputs) else f"input {i}"
        yield slots.source(i), Touched(name, _bytes_of(view))
    for i, (name, result) in enumerate(
        zip(outputs.names_of(problem), problem.results, strict=True)
    ):
        size = math.prod(result.shape) * result.dtype.itemsize
        yield slots.target(i), Touched(name, size)
    for i, piece in enumerate(plan.pieces):
        yield slots.piece(i), Touched(f"temporary {i}", piece.num_bytes)


def _of_launch(launch: Launch, device: int, arrays: dict[int, Touched]) -> Step:
    kernel = launch.kernel
    expression = build.expression_of(kernel.name)
    name = expression.partition("<")[0].rpartition("::")[2]
    used = kernel.resources(device)
    memory = tuple(arrays[slot] for slot in dict.fromkeys(launch.places) if slot in arrays)
    shared = launch.shared_bytes if used is None else used.shared_bytes + launch.shared_bytes
    return Step(
        name, expression, grid=launch.grid, block=launch.threads,
        registers=None if used is None else used.registers, shared_bytes=shared,
        local_bytes=None if used is None else used.local_bytes, memory=memory,
    )  # fmt: skip


def on_cpu(request: Request) -> tuple[Step, ...]:
    """Return the steps of a problem of host arrays on the CPU."""
    problem, views, op, init, out, _ = request
    arrays = [host.array_of(view) for view in views]
    if out is None:
        results, _ = host.new_results(problem)
    else:
        targets = outputs.check(problem, views, init, out)
        results = [host.array_of(target) for target in targets]
    if problem.is_empty or not any(result.size for result in results):
        return ()
    routines = problem.routines(arrays, results, problem.operator(op), problem.encode(init))
    return tuple(
        Step(each.name, is_compiled=each.is_compiled, tile=each.tile, tasks=each.tasks,
             threads=each.threads)
        for each in routines
    )  # fmt: skip
