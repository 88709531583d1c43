"""Scans from starts on a GPU: an inclusive scan, then each line's start before it."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.scan import cuda
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View
from gpualgo._base.extents import dense_strides
from gpualgo._cuda.pieces import Piece
from gpualgo._cuda.plan import Places, Plan
from gpualgo._operators.joint import without_source
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import starts

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.started import StartedScan

_SAME = Operator(lambda a: a)
Part = tuple[list[View], list[tuple[int, int]]]


class _Kept(Places):
    """Where the addresses of a scan stand whose results are pieces, which come first."""

    def target(self, i: int) -> int:
        return super().piece(i)

    def piece(self, i: int) -> int:
        return super().piece(self.num_targets + i)


def plan_of(
    problem: StartedScan, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    """Return the plan of a scan of leaves, behind which those of init stand."""
    acc, shape, of_x = problem.acc, problem.shape, views[: problem.num_own]
    at = within = Places(len(views), len(targets))
    if problem.is_exclusive:
        kept = [
            View(0, shape, dense_strides(shape, t.dtype.itemsize), t.dtype, t.device, None, False,
                 None)
            for t in targets
        ]  # fmt: skip
        pieces = [Piece(math.prod(shape) * view.dtype.itemsize) for view in kept]
        scan = copy.copy(problem)
        scan.is_exclusive = False
        within = _Kept(*at)
        made = cuda.plan_of(scan, of_x, op, kept, at=within)
        plan = Plan(targets[0].device, made.steps, [*pieces, *made.pieces])
    else:
        kept = list(targets)
        plan = cuda.plan_of(problem, of_x, op, targets, at=at)
    alone, behind, before = problem.parts
    first = [_along(problem, view) for view in views[problem.num_own :]]
    begins = [at.source(i) for i in range(problem.num_own, len(views))]
    outs, written = _part(problem, targets, behind, at)
    scanned, read = _part(problem, kept, before, within)
    if 0 not in outs[0].shape:
        number, extents = starts.of_records(acc), outs[0].shape
        applied = Applied(without_source(op), (number, number), acc)
        taken = [*(view._replace(shape=extents) for view in first), *scanned]
        places = written, [*begins, *read]
        plan.steps += elementwise.plan_of(applied, taken, extents, outs, places).steps
    outs, written = _part(problem, targets, alone, at)
    for out, to, view, begin in zip(outs, written, first, begins, strict=True):
        if 0 not in out.shape:
            same, places = Applied(_SAME, (out.dtype,), out.dtype), ([to], [begin])
            plan.steps += elementwise.plan_of(same, [view], out.shape, [out], places).steps
    return plan


def _along(problem: StartedScan, view: View) -> View:
    """Return starts as they stand before the elements of a line."""
    axis: Any = problem.axis
    shape = (*view.shape[:axis], 1, *view.shape[axis:])
    return view._replace(shape=shape, strides=(*view.strides[:axis], 0, *view.strides[axis:]))


def _part(problem: StartedScan, views: Sequence[View], part: slice, at: Places) -> Part:
    """Return part of each line's results, and where it lies."""
    axis: Any = problem.axis
    begin, end, _ = part.indices(problem.shape[axis])
    shape = (*problem.shape[:axis], max(0, end - begin), *problem.shape[axis + 1 :])
    offsets = [begin * view.strides[axis] for view in views]
    parts = [
        view._replace(ptr=view.ptr + offset, shape=shape)
        for view, offset in zip(views, offsets, strict=True)
    ]
    return parts, [(at.target(i), offset) for i, offset in enumerate(offsets)]
