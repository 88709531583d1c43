"""Extremes on a GPU: a reduction of (element, index) pairs, or of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from gpualgo._algorithms.extremes.problem import Extremes
from gpualgo._algorithms.reduce import cuda as reduction
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import dense_strides, without_axes
from gpualgo._cuda.plan import KEPT, NONE, Piece, Plan, arg_map
from gpualgo._operators.operator import Operator, builtin
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Dtype

_PAIR = ("0", "1")


@planners.for_cuda.register(Extremes)
def _(problem: Extremes, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    axes, at = problem.axes, arg_map(len(views), len(targets))
    strides = [without_axes(target.strides, axes, len(problem.shape)) for target in targets]
    pieces: tuple[Piece, ...] = ()
    source: records.Element
    if problem.source is not None:
        source, acc = problem.source, problem.source.result
    else:
        op, source, acc = _pairs_of(problem, views[0].dtype, targets[-1].dtype)
        views = _reads(problem, [*views], views[0].shape)
        at = at._replace(sources=[*at.sources, NONE if problem.has_index else at.sources[0]])
    if problem.has_index:  # the extreme elements themselves go to temporary storage
        size = records.field_dtypes(acc)[0].itemsize
        pieces = (Piece(math.prod(problem.shape) * size, KEPT),)
        at = at._replace(targets=[at.piece(0), *at.targets], first_piece=at.piece(1))
        strides = [dense_strides(problem.shape, size), *strides]
    return reduction.plan_of(views, op, axes, source, acc, strides, at, pieces)


def _pairs_of(problem: Extremes, dtype: Dtype, result: Dtype) -> tuple[Operator, Dtype, Dtype]:
    """Return the operator, and its pairs as they are read and as they are combined."""
    second = records.POSITION if problem.has_index else dtype
    source, acc = (records.record(_PAIR, (dtype, each)) for each in (second, result))
    return builtin(problem.functor), source, acc


def _reads(
    problem: Extremes, views: list[View], shape: tuple[int, ...], block: Sequence[slice] = ()
) -> list[View]:
    """Return views of pairs: elements twice, or with indices along the axes, in C order.

    `views` has that of the elements of a block of an array of some shape, or of all of it.
    """
    (view,) = views
    if not problem.has_index:
        return [view, view]
    axes = range(len(shape)) if len(problem.axes) >= len(shape) else problem.axes
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    index_strides = dense_strides(axis_shape, records.step_of(records.POSITION))
    steps = tuple(step if i in axes else 0 for i, step in enumerate(index_strides))
    first = sum(step * part.start for step, part in zip(steps, block, strict=False))
    indices = dense_view(first, view.shape, records.POSITION, view.device)
    return [view, indices._replace(strides=steps)]


@planners.for_blocks.register(Extremes)
def _(problem: Extremes, call: planners.HostCall) -> bool:
    if call.op is not None:  # computed elements are not in memory
        return False
    kinds = _pairs_of(problem, call.arrays[0].dtype, call.results[-1].dtype)
    return reduction.reduce_blocks(problem, call, *kinds, partial(_reads, problem))
