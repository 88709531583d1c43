"""Adjacent differences of large host arrays on a GPU: a transformation in blocks."""

from __future__ import annotations

import numpy as np

from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference, Parts
from gpualgo._algorithms.transform import blocks
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array


@planners.for_blocks.register(AdjacentDifference)
def _(problem: AdjacentDifference, call: planners.HostCall) -> bool:
    """Write all results of lines of at least two elements; pageable arrays are uploaded twice."""
    axis, source, shape, outs = problem.axis, problem.source, problem.shape, call.results
    if not (call.is_forced or blocks.is_large([*call.arrays, *outs])):
        return False
    if isinstance(source, records.Computed) or 0 in shape or shape[axis] < 2:
        return False
    arrays = [np.broadcast_to(array, shape) for array in call.arrays]
    element = records.register_dtype(source)
    argument = records.Separate(element) if records.is_record(element) else element
    kinds = records.field_dtypes(source) * 2
    applied = Applied(call.op, (argument, argument), problem.result, kinds)
    parts, places = Parts.along(axis), call.places
    operands, targets = parts.cut(arrays, outs)
    inputs = list(zip(arrays, places, strict=False))
    out_pairs = list(zip(outs, places[len(arrays) :], strict=True))
    views = [_shifted(*pair, axis) for pair in inputs] + [place for _, place in inputs]
    views += [_shifted(*pair, axis) for pair in out_pairs]
    blocks.transform(problem, applied, operands, targets, call.stream, views)  # waits
    parts.copy_first(arrays, outs)
    return True


def _shifted(array: Array, place: View | None, axis: int) -> View | None:
    """Return a page-locked array's view without the first elements of its lines."""
    return place and place._replace(ptr=place.ptr + array.strides[axis])
