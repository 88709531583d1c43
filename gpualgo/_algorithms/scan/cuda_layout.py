"""Lines of a scan in canonical form: the dimensions of a line and those of all lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gpualgo._algorithms.scan.policy_lines import kernel_of
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.extents import Dims, dense_strides, merge

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan


class Way(NamedTuple):
    """Scan strategy: everything that affects result bits except elements, operator and dtypes.

    Lines that are scanned in parts use the strategy of the whole array.
    """

    kernel: str
    num_bytes: int  # of all lines, in the wider dtype
    columns: tuple[int, int, int]  # rows, columns and batches of a column scan
    axis: int | None
    is_exclusive: bool
    is_reverse: bool


def way_of(
    problem: Scan, source: records.Element, views: Sequence[View], targets: Sequence[View]
) -> Way:
    """Return the scan strategy for arrays of these layouts."""
    elements, lines = canonical(problem.axis, views, targets)
    stored, acc = records.held(source), problem.acc
    num_items, *extents = (math.prod(n for n, _ in elements), *(n for n, _ in lines))
    columns = num_items, (extents or [1])[-1], math.prod(extents[:-1])
    num_bytes = num_items * math.prod(extents) * max(stored.itemsize, acc.itemsize)
    kernel = kernel_of(elements, lines, stored, acc)
    direction = problem.is_exclusive, problem.is_reverse
    return Way(kernel, num_bytes, columns, problem.axis, *direction)


def canonical(
    axis: int | None, views: Sequence[View], targets: Sequence[View]
) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, with byte strides: inputs', outputs'.

    Lines may be visited in any order; they are sorted by their strides in memory.
    """
    shape = views[0].shape
    strides = [view.strides for view in views]
    for target in targets:
        out = target.strides
        strides.append(out if len(out) == len(shape) else dense_strides(shape, out[0]))  # flattened
    dims = list(zip(shape, zip(*strides, strict=True), strict=True))
    if axis is None:
        return merge(dims), []
    line = [dims.pop(axis)]
    dims.sort(key=lambda dim: -sum(map(abs, dim[1])))
    return merge(line), merge(dims)


def is_dense(elements: Dims, sizes: tuple[int, ...]) -> bool:
    """Return whether a line's elements are contiguous in all inputs and outputs."""
    if not elements:
        return True
    return len(elements) == 1 and elements[0][1] == sizes
