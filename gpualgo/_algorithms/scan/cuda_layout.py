"""The lines of a scan: their elements' and their own dimensions, in canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, dense_strides, merge

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan


def canonical(problem: Scan, view: View, target_strides: tuple[int, ...]) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, each with two byte strides.

    Lines come in any order: here in that of memory.
    """
    shape, out_strides = problem.shape, target_strides
    if len(out_strides) != len(shape):  # flattened
        out_strides = dense_strides(shape, out_strides[0])
    dims = [
        (extent, pair)
        for extent, pair in zip(shape, zip(view.strides, out_strides, strict=True), strict=True)
    ]
    if problem.axis is None:
        return merge(dims), []
    line = [dims.pop(problem.axis)]
    dims.sort(key=lambda dim: -sum(map(abs, dim[1])))
    return merge(line), merge(dims)


def is_dense(elements: Dims, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> bool:
    """Return whether input and output have no gaps between a line's elements."""
    if not elements:
        return True
    return len(elements) == 1 and elements[0][1] == (dtypes[0].itemsize, dtypes[1].itemsize)
