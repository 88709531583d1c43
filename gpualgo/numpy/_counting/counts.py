"""Counts of integers: each integer is a bin."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gpualgo._algorithms.by_index import reduce_by_index
from gpualgo._algorithms.extremes import minmax
from gpualgo._algorithms.histogram import histogram as counted
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import array_of, beside, host_of
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._counting.histograms import COUNT, FLOAT, are_few, like, shape_of


@numpys(
    "Min and max first (the call waits), then one histogram; with weights one reduction by index",
    arrays=0, few=0,
    differs="samples must be integers (NumPy accepts lists of floats, with a warning)",
)  # fmt: skip
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Return how often each integer from 0 on occurs, or the sum of the weights of each.

    >>> gnp.bincount([1, 0, 1, 3])
    array([1, 2, 0, 1])
    """
    name = "bincount"
    if minlength is None or isinstance(minlength, (bool, np.bool_)):
        raise TypeError(f"{name}: minlength must be an int, got {shown(minlength)}")
    least = operator.index(minlength)
    original = x
    x = array_of(x, f"{name}: x")
    weights = None if weights is None else array_of(weights, f"{name}: weights")
    if are_few((x, weights)):
        return np.bincount(original, weights, least)
    _check_bincount(x, weights, least, name, is_array=hasattr(original, "dtype"))
    if not shape_of(x)[0]:
        return beside(np.zeros(least, COUNT), like(x), name)
    low, high = (int(host_of(one, name)) for one in minmax(x))
    if low < 0:
        raise ValueError(f"{name}: x holds {low}; pass integers from 0 on")
    size = max(high + 1, least)
    if weights is None:
        return counted(x, size, (0, size))  # each integer is a bin of its own
    if function.dtype_of(x, name).kind == "b":
        x = lazy_of(x).astype(np.uint8)
    return reduce_by_index(x, weights, size, 0.0, dtype=FLOAT)


def _check_bincount(x: Any, weights: Any, least: int, name: str, *, is_array: bool) -> None:
    """Raise for arguments that NumPy rejects; an empty list has no dtype."""
    kind = function.dtype_of(x, name)
    shape = shape_of(x)
    if len(shape) != 1:
        raise ValueError(f"{name}: x has shape {shape}; pass one axis")
    if kind.kind not in "biu" and (shape[0] or is_array):
        raise TypeError(f"{name}: x has dtype {kind}; pass integers")
    if least < 0:
        raise ValueError(f"{name}: minlength must not be negative, got {least}")
    if weights is not None and shape[0]:
        if shape_of(weights) != shape:
            raise ValueError(
                f"{name}: weights has shape {shape_of(weights)} and x {shape}; pass as many"
            )
        if dtypes.kind(function.dtype_of(weights, name)) == "c":
            raise TypeError(f"{name}: weights are complex; pass the parts separately")
