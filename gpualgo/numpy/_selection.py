"""What is not zero, and what conditions choose."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.find import count
from gpualgo._algorithms.select import select
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._arrays.view import as_view
from gpualgo._base.memo import Memo
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied, zipped
from gpualgo.numpy import _results
from gpualgo.numpy._arguments import NotTaken, array_of, is_host
from gpualgo.numpy._function import numpys

_UNSET: Any = np._NoValue
_BOOL = np.dtype(bool)
_positions: Memo[Any] = Memo(1 << 8)


def is_true(a: Any) -> Any:
    """Return whether a number is not zero."""
    return a != 0


def marks(x: Any, where: str) -> Any:
    """Return which elements are true, as an array of bool."""
    if _results.dtype_of(x, where) == _BOOL and not is_lazy(x):
        return x
    return transform(is_true, x)


def _places(shape: tuple[int, ...], is_flat: bool) -> Any:
    """Return lazily where each element of a shape stands: its number, or its indices."""
    key = (shape, is_flat)
    found = _positions.get(key)
    if found is None:
        if is_flat:
            found = lazy.arange(math.prod(shape)).reshape(shape)
        else:
            found = zipped(tuple(_along(shape, axis) for axis in range(len(shape))), "nonzero")
        _positions.add(key, found)
    return found


def _along(shape: tuple[int, ...], axis: int) -> Any:
    behind = (1,) * (len(shape) - axis - 1)
    return lazy.arange(shape[axis]).reshape(shape[axis], *behind).broadcast_to(shape)


def flat_places(x: Any, where: str) -> Any:
    """Return the numbers, in C order, of the elements that are true."""
    return select(_places(tuple(x.shape), True), marks(x, where))


_MOST_AXES = 7  # whose indices are selected at once, beside a mark


def _indices(x: Any, where: str) -> tuple[Any, ...]:
    """Return the indices of the elements that are true, an array for each axis."""
    shape = tuple(x.shape)
    if len(shape) == 1:
        return (flat_places(x, where),)
    if len(shape) <= _MOST_AXES:
        return tuple(select(_places(shape, False), marks(x, where)))
    found = flat_places(x, where)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return tuple(transform(lambda p, s=s, n=n: p // s % n, found)
                 for s, n in zip(steps, shape, strict=True))  # fmt: skip


def _check_axes(x: Any, where: str) -> None:
    if not len(x.shape):
        raise ValueError(
            f"{where}: an array without axes has no indices; use numpy.atleast_1d(x), or flatnonzero"
        )
