"""Adjacent differences of large host arrays on a GPU: a transformation in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.adjacent_difference.parts import Parts
from gpualgo._algorithms.transform import blocks
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference

is_large = blocks.is_large


def difference(
    problem: AdjacentDifference, arrays: Sequence[Array], outs: Sequence[Array], op: Any,
    stream: Any, places: Sequence[View | None],
) -> None:  # fmt: skip
    """Write all results of lines of at least two elements; pageable arrays are uploaded twice."""
    axis, source, result = problem.axis, problem.source, problem.result
    element = records.held(source)
    argument = records.Apart(element) if records.is_record(element) else element
    applied = Applied(op, (argument, argument), result, records.leaves(source) * 2)
    parts = Parts.along(axis)
    operands, targets = parts.cut(arrays, outs)
    inputs = list(zip(arrays, places, strict=False))
    out_pairs = list(zip(outs, places[len(arrays) :], strict=True))
    views = [_shifted(*pair, axis) for pair in inputs] + [place for _, place in inputs]
    views += [_shifted(*pair, axis) for pair in out_pairs]
    blocks.transform(problem, applied, operands, targets, stream, views)  # waits for the results
    parts.copy_first(arrays, outs)


def _shifted(array: Array, place: View | None, axis: int) -> View | None:
    """Return a page-locked array's view without the first elements of its lines."""
    return place and place._replace(ptr=place.ptr + array.strides[axis])
