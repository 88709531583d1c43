"""Extreme elements of large pageable arrays on a GPU, by blocks: they may exceed its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._pipeline import host_blocks, host_whole
from gpualgo._pipeline.host_blocks import Index
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._algorithms.extremes.problem import Extremes

BLOCK_BYTES = 256 << 20  # what is smaller goes to the GPU as a whole


def find(problem: Extremes, x: Array, results: list[Array], stream: Any) -> None:
    """Find the extreme elements of a pageable array, of which there are some."""
    reason = host_whole.pageable(is_input=True, where=problem.where)
    handle = host_blocks.begin(problem, x, stream, reason)
    found = [np.empty(problem.shape, result.dtype) for result in results]
    best = [np.empty(problem.shape, x.dtype)] if problem.has_index else found
    for block in host_blocks.indices(x.shape, range(x.ndim), x.dtype.itemsize, BLOCK_BYTES):
        here: Any = (*(block[i] for i in range(x.ndim) if i not in problem.axes), ...)
        parts, values = _of_block(problem, x, block, handle)
        is_first = all(block[axis].start == 0 for axis in problem.axes)
        for part, value, total, old, is_least in zip(
            parts, values, found, best, problem.are_least, strict=True
        ):
            better = True if is_first else _is_better(value, old[here], is_least)
            np.copyto(total[here], part, where=better)
            if old is not total:
                np.copyto(old[here], value, where=better)
    for result, total in zip(results, found, strict=True):
        result[...] = total.reshape(result.shape)


def _of_block(
    problem: Extremes, x: Array, block: Index, stream: int
) -> tuple[list[Array], list[Array]]:
    """Return the results of a block, positions those in the whole array, and the elements."""
    part, axes = x[block], sorted(problem.axes)
    shape = tuple(n for i, n in enumerate(part.shape) if i not in axes)
    views = host_blocks.host([x.dtype], part.shape)
    same: Any = problem.like(views, None, None, (problem.rest[0], False, problem.form))
    found = [np.empty(shape, result.dtype) for result in problem.results]
    with host_whole.on_device(
        problem.device, None if stream == 0 else stream, [part], found, problem.where
    ) as (handle, sources, targets):
        host_whole.queue(same, handle, sources, targets, None, None)
    if not problem.has_index:
        return found, found
    along = np.unravel_index(found[0], [part.shape[axis] for axis in axes])
    place: list[Any] = list(np.indices(shape, sparse=True))
    for axis, index in zip(axes, along, strict=True):
        place.insert(axis, index)
    values = part[tuple(place)]
    whole = 0
    for axis, index in zip(axes, along, strict=True):
        whole = whole * x.shape[axis] + (index + block[axis].start)
    return [np.asarray(whole).reshape(shape)], [np.asarray(values).reshape(shape)]


def _is_better(new: Array, old: Array, is_least: bool) -> Any:
    """Return where an element of a later block takes the place of an earlier one: the first stays.

    NaN, which differs from itself, is more extreme than any number.
    """
    return ((new < old if is_least else new > old) | (new != new)) & (old == old)
