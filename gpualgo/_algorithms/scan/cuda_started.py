"""Scans with per-row initial values on a GPU: an inclusive scan, then op with each row's value."""

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
    from gpualgo._algorithms.scan.started import PerRowInitScan

_IDENTITY = Operator(lambda a: a)
Part = tuple[list[View], list[tuple[int, int]]]


class _ScanSlots(Places):
    """Argument slots of a scan that writes to temporary storage, whose pieces come first."""

    def target(self, i: int) -> int:
        return super().piece(i)

    def piece(self, i: int) -> int:
        return super().piece(self.num_targets + i)


def plan_of(
    problem: PerRowInitScan, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    """Return the plan of a scan; the fields of init follow those of x in `views`."""
    acc, shape, of_x = problem.acc, problem.shape, views[: problem.num_own]
    slots_of = scan_slots = Places(len(views), len(targets))
    if problem.is_exclusive:
        scanned_views = [
            View(0, shape, dense_strides(shape, t.dtype.itemsize), t.dtype, t.device, None, False,
                 None)
            for t in targets
        ]  # fmt: skip
        pieces = [Piece(math.prod(shape) * view.dtype.itemsize) for view in scanned_views]
        scan = copy.copy(problem)
        scan.is_exclusive = False
        scan_slots = _ScanSlots(*slots_of)
        scan_plan = cuda.plan_of(scan, of_x, op, scanned_views, at=scan_slots)
        plan = Plan(targets[0].device, scan_plan.steps, [*pieces, *scan_plan.pieces])
    else:
        scanned_views = list(targets)
        plan = cuda.plan_of(problem, of_x, op, targets, at=slots_of)
    init_part, op_part, scan_part = problem.parts
    init_views = [_broadcast_along_axis(problem, view) for view in views[problem.num_own :]]
    init_slots = [slots_of.source(i) for i in range(problem.num_own, len(views))]
    outs, out_slots = _part(problem, targets, op_part, slots_of)
    scanned, scan_slots_read = _part(problem, scanned_views, scan_part, scan_slots)
    if 0 not in outs[0].shape:
        number, extents = starts.of_records(acc), outs[0].shape
        applied = Applied(without_source(op), (number, number), acc)
        inputs = [*(view._replace(shape=extents) for view in init_views), *scanned]
        slots = out_slots, [*init_slots, *scan_slots_read]
        plan.steps += elementwise.plan_of(applied, inputs, extents, outs, slots).steps
    outs, out_slots = _part(problem, targets, init_part, slots_of)
    for out, out_slot, view, init_slot in zip(outs, out_slots, init_views, init_slots, strict=True):
        if 0 not in out.shape:
            identity, slots = Applied(_IDENTITY, (out.dtype,), out.dtype), ([out_slot], [init_slot])
            plan.steps += elementwise.plan_of(identity, [view], out.shape, [out], slots).steps
    return plan


def _broadcast_along_axis(problem: PerRowInitScan, view: View) -> View:
    """Return a view of the initial values that is broadcast along the scan axis."""
    axis: Any = problem.axis
    shape = (*view.shape[:axis], 1, *view.shape[axis:])
    return view._replace(shape=shape, strides=(*view.strides[:axis], 0, *view.strides[axis:]))


def _part(problem: PerRowInitScan, views: Sequence[View], part: slice, at: Places) -> Part:
    """Return a part of each line, and the argument slots and byte offsets where it begins."""
    axis: Any = problem.axis
    start, end, _ = part.indices(problem.shape[axis])
    shape = (*problem.shape[:axis], max(0, end - start), *problem.shape[axis + 1 :])
    offsets = [start * view.strides[axis] for view in views]
    views_of_part = [
        view._replace(ptr=view.ptr + offset, shape=shape)
        for view, offset in zip(views, offsets, strict=True)
    ]
    return views_of_part, [(at.target(i), offset) for i, offset in enumerate(offsets)]
