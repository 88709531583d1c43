"""The lines of a scan: their elements' and their own dimensions, in canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, dense_strides, merge

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan


def canonical(problem: Scan, views: Sequence[View], targets: Sequence[View]) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, with byte strides: inputs', outputs'.

    Lines come in any order: here in that of memory.
    """
    shape = problem.shape
    strides = [view.strides for view in views]
    for target in targets:
        out = target.strides
        strides.append(out if len(out) == len(shape) else dense_strides(shape, out[0]))  # flattened
    dims = list(zip(shape, zip(*strides, strict=True), strict=True))
    if problem.axis is None:
        return merge(dims), []
    line = [dims.pop(problem.axis)]
    dims.sort(key=lambda dim: -sum(map(abs, dim[1])))
    return merge(line), merge(dims)


def is_dense(elements: Dims, sizes: tuple[int, ...]) -> bool:
    """Return whether inputs and outputs, of these sizes, have no gaps between a line's elements."""
    if not elements:
        return True
    return len(elements) == 1 and elements[0][1] == sizes
