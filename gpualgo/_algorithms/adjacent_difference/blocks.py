"""Adjacent differences of large arrays of the host on a GPU: a transformation in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.adjacent_difference.parts import Array, Parts
from gpualgo._algorithms.transform import blocks
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View
from gpualgo._base import records

if TYPE_CHECKING:
    from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference

is_large = blocks.is_large


def difference(
    problem: AdjacentDifference, arrays: Sequence[Array], outs: Sequence[Array], op: Any,
    stream: Any, places: Sequence[View | None],
) -> None:  # fmt: skip
    """Write all results, of lines of two elements and more; what is pageable goes there twice."""
    axis, source, result = problem.axis, problem.source, problem.result
    element = records.held(source)
    argument = records.Apart(element) if records.is_record(element) else element
    applied = Applied(op, (argument, argument), result, records.leaves(source) * 2)
    parts = Parts.along(axis)
    operands, targets = parts.cut(arrays, outs)
    read = list(zip(arrays, places, strict=False))
    written = list(zip(outs, places[len(arrays) :], strict=True))
    moved = [_later(*pair, axis) for pair in read] + [place for _, place in read]
    moved += [_later(*pair, axis) for pair in written]
    blocks.transform(problem, applied, operands, targets, stream, moved)  # which waits
    parts.copy_first(arrays, outs)


def _later(array: Array, place: View | None, axis: int) -> View | None:
    """Return where kernels see a page-locked array but for the first elements of its lines."""
    return place and place._replace(ptr=place.ptr + array.strides[axis])
