"""Extremes on a GPU: a reduction of (element, index) pairs, or of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.extremes.computed import Computed
from gpualgo._algorithms.extremes.problem import Extremes
from gpualgo._algorithms.reduce import cuda as reduction
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import dense_strides, without_axes
from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Piece, Plan
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import planners

_PAIR = ("0", "1")


@planners.for_cuda.register(Extremes)
def _(problem: Extremes, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    (view,) = views
    op, axes, args = builtin(problem.functor), problem.axes, ArgMap(1, len(targets))
    strides = [_without_kept(problem, target) for target in targets]
    if not problem.has_index:
        pair = records.record(_PAIR, (view.dtype, view.dtype))
        both = reduction.FieldSlots(args, [args.source(0)] * 2, [args.target(0), args.target(1)])
        return reduction.plan_of([view, view], op, axes, pair, pair, strides, both)
    source = records.record(_PAIR, (view.dtype, records.POSITION))
    acc = records.record(_PAIR, (view.dtype, targets[0].dtype))
    size = view.dtype.itemsize  # the extreme elements themselves go to temporary storage
    values = Piece(math.prod(problem.shape) * size, KEPT)
    leaves = reduction.FieldSlots(
        args, [args.source(0), NONE], [args.piece(0), args.target(0)], (values,)
    )
    out_strides = [dense_strides(problem.shape, size), *strides]
    views = [view, _index_view(view, axes)]
    return reduction.plan_of(views, op, axes, source, acc, out_strides, leaves)


@planners.for_cuda.register(Computed)
def _(problem: Computed, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    source = problem.source
    args, acc = ArgMap(len(views), len(targets)), source.result
    in_slots = [args.source(i) for i in range(len(views))]
    out_slots = [args.target(i) for i in range(len(targets))]
    strides = [_without_kept(problem, target) for target in targets]
    pieces: tuple[Piece, ...] = ()
    if problem.has_index:  # the extreme elements themselves go to temporary storage
        size = records.field_dtypes(acc)[0].itemsize
        pieces = (Piece(math.prod(problem.shape) * size, KEPT),)
        out_slots = [args.piece(0), *out_slots]
        strides = [dense_strides(problem.shape, size), *strides]
    leaves = reduction.FieldSlots(args, in_slots, out_slots, pieces)
    return reduction.plan_of(views, op, problem.axes, source, acc, strides, leaves)


def _index_view(view: View, axes: tuple[int, ...]) -> View:
    """Return a view of indices along the axes, counted in C order."""
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(view.shape))
    index_strides = dense_strides(axis_shape, records.step_of(records.POSITION))
    steps = tuple(step if i in axes else 0 for i, step in enumerate(index_strides))
    return dense_view(0, view.shape, records.POSITION, view.device)._replace(strides=steps)


def _without_kept(problem: Extremes, target: View) -> tuple[int, ...]:
    return without_axes(target.strides, problem.axes, len(problem.shape))
