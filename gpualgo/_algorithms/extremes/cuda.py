"""Extremes on a GPU: a reduction of (element, index) pairs, or of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.extremes.problem import Extremes
from gpualgo._algorithms.reduce import cuda as reduction
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import dense_strides, without_axes
from gpualgo._cuda.plan import KEPT, NONE, Piece, Plan, arg_map
from gpualgo._operators.operator import builtin
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_whole import Index
from gpualgo._pipeline.problem import Array

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
        (view,), op = views, builtin(problem.functor)
        second = records.POSITION if problem.has_index else view.dtype
        source = records.record(_PAIR, (view.dtype, second))
        acc = records.record(_PAIR, (view.dtype, targets[-1].dtype))
        views = [view, _index_view(view, axes) if problem.has_index else view]
        at = at._replace(sources=[*at.sources, NONE if problem.has_index else at.sources[0]])
    if problem.has_index:  # the extreme elements themselves go to temporary storage
        size = records.field_dtypes(acc)[0].itemsize
        pieces = (Piece(math.prod(problem.shape) * size, KEPT),)
        at = at._replace(targets=[at.piece(0), *at.targets], first_piece=at.piece(1))
        strides = [dense_strides(problem.shape, size), *strides]
    return reduction.plan_of(views, op, axes, source, acc, strides, at, pieces)


def _index_view(view: View, axes: tuple[int, ...]) -> View:
    """Return a view of indices along the axes, counted in C order."""
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(view.shape))
    index_strides = dense_strides(axis_shape, records.step_of(records.POSITION))
    steps = tuple(step if i in axes else 0 for i, step in enumerate(index_strides))
    return dense_view(0, view.shape, records.POSITION, view.device)._replace(strides=steps)


# --- Extremes of large pageable arrays on a GPU in blocks, so that they may exceed its memory.

BLOCK_BYTES = 256 << 20  # smaller arrays are copied to the GPU as a whole


@planners.for_blocks.register(Extremes)
def _(problem: Extremes, call: planners.HostCall) -> bool:
    x = call.arrays[0]
    if call.op is not None or call.device_views[0] is not None or x.nbytes <= BLOCK_BYTES:
        return False
    totals = [np.empty(problem.shape, result.dtype) for result in call.results]
    best = [np.empty(problem.shape, x.dtype)] if problem.has_index else totals
    for block in host_whole.indices(x.shape, range(x.ndim), x.dtype.itemsize, BLOCK_BYTES):
        outputs: Any = (*(block[i] for i in range(x.ndim) if i not in problem.axes), ...)
        parts, values = _of_block(problem, x, block, call.stream)
        is_first = all(block[axis].start == 0 for axis in problem.axes)
        for part, value, total, best_value, is_least in zip(
            parts, values, totals, best, problem.are_least, strict=True
        ):
            is_better = True if is_first else _is_better(value, best_value[outputs], is_least)
            np.copyto(total[outputs], part, where=is_better)
            if best_value is not total:
                np.copyto(best_value[outputs], value, where=is_better)
    for result, total in zip(call.results, totals, strict=True):
        result[...] = total.reshape(result.shape)
    return True


def _of_block(
    problem: Extremes, x: Array, block: Index, stream: Any
) -> tuple[list[Array], list[Array]]:
    """Return a block's results (indices are those in the whole array), and the extreme elements."""
    part, axes = x[block], sorted(problem.axes)
    shape = tuple(n for i, n in enumerate(part.shape) if i not in axes)
    views = host_whole.placeholder_host_views([x.dtype], part.shape)
    block_problem: Any = problem.of_same_kind(
        views, None, None, (problem.params[0], False, problem.form, None)
    )
    block_results = [np.empty(shape, result.dtype) for result in problem.results]
    with host_whole.on_device(
        problem.device, stream, [part], block_results, problem.where
    ) as (handle, sources, targets):  # fmt: skip
        host_whole.queue(block_problem, handle, sources, targets, None, None)
    if not problem.has_index:
        return block_results, block_results
    block_indices = np.unravel_index(block_results[0], [part.shape[axis] for axis in axes])
    element_index: list[Any] = list(np.indices(shape, sparse=True))
    for axis, index in zip(axes, block_indices, strict=True):
        element_index.insert(axis, index)
    values = part[tuple(element_index)]
    flat_index = 0
    for axis, index in zip(axes, block_indices, strict=True):
        flat_index = flat_index * x.shape[axis] + (index + block[axis].start)
    return [np.asarray(flat_index).reshape(shape)], [np.asarray(values).reshape(shape)]


def _is_better(new: Array, old: Array, is_least: bool) -> Any:
    """Return where an element of a later block replaces an earlier one: the first of equals stays.

    NaN, which differs from itself, is more extreme than any number.
    """
    return ((new < old if is_least else new > old) | (new != new)) & (old == old)
