"""The lines of a scan: their elements' and their own dimensions, in canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, dense_strides, merge


def canonical(call: Any, view: View, out_strides: tuple[int, ...] | None) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, each with two byte strides.

    Lines come in any order: here in that of memory.
    """
    shape = call.shape
    if out_strides is None or len(out_strides) != len(shape):  # new, or flattened
        step = call.acc.itemsize if out_strides is None else out_strides[0]
        out_strides = dense_strides(shape, step)
    dims = [
        (extent, pair)
        for extent, pair in zip(shape, zip(view.strides, out_strides, strict=True), strict=True)
    ]
    if call.axis is None:
        return merge(dims), []
    line = [dims.pop(call.axis)]
    dims.sort(key=lambda dim: -sum(map(abs, dim[1])))
    return merge(line), merge(dims)


def is_dense(elements: Dims, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> bool:
    """Return whether input and output have no gaps between a line's elements."""
    if not elements:
        return True
    return len(elements) == 1 and elements[0][1] == (dtypes[0].itemsize, dtypes[1].itemsize)
