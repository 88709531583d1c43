"""Elements at places along an axis, which differ from row to row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy.places import is_aligned


def aligned(x: Any) -> Any:
    """Return an array that kernels can look into: a copy, where NumPy's lies at odd addresses."""
    if isinstance(x, lazy.LazyArray):
        return x if all(map(is_aligned, x.leaves)) else copy(x)
    return np.array(x) if type(x) is np.ndarray and not x.flags.aligned else x


def along(x: Any, places: Any, axis: int) -> Any:
    """Return lazily what ``numpy.take_along_axis`` does: places have x's other axes."""
    shape, taken = tuple(x.shape), tuple(places.shape)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    indices = lazy.asarray(places).reshape(outer, taken[axis], inner)
    if inner != 1:
        indices = indices * inner + lazy.arange(inner)
    if outer != 1:
        indices = indices + lazy.arange(outer).reshape(outer, 1, 1) * (shape[axis] * inner)
    return lazy.take(lazy.asarray(aligned(x)).reshape(-1), indices).reshape(taken)
