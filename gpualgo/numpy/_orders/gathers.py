"""Gathers along an axis, with separate indices for each row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy.places import is_aligned


def aligned(x: Any) -> Any:
    """Return an array that kernels can index; an unaligned NumPy array is copied."""
    if isinstance(x, lazy.LazyArray):
        return x if all(map(is_aligned, x.leaves)) else copy(x)
    return np.array(x) if type(x) is np.ndarray and not x.flags.aligned else x


def along(x: Any, places: Any, axis: int) -> Any:
    """Return ``numpy.take_along_axis`` lazily; apart from the axis, shapes are equal."""
    shape, indices_shape = tuple(x.shape), tuple(places.shape)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    indices = lazy.asarray(places).reshape(outer, indices_shape[axis], inner)
    if inner != 1:
        indices = indices * inner + lazy.arange(inner)
    if outer != 1:
        indices = indices + lazy.arange(outer).reshape(outer, 1, 1) * (shape[axis] * inner)
    return lazy.take(lazy.asarray(aligned(x)).reshape(-1), indices).reshape(indices_shape)
