"""Which elements are not zero: flags and indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.find import count
from gpualgo._algorithms.select import select
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base.memo import Memo
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import zipped
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import array_of
from gpualgo.numpy._call.function import numpys

_BOOL = np.dtype(bool)
_positions: Memo[Any] = Memo(1 << 8)


def is_true(a: Any) -> Any:
    return a != 0


def marks(x: Any, where: str) -> Any:
    """Return which elements are true, as an array of bool."""
    if results.dtype_of(x, where) == _BOOL and not is_lazy(x):
        return x
    return transform(is_true, x)


def _positions_of(shape: tuple[int, ...], is_flat: bool) -> Any:
    """Return each element's index as a lazy array: in C order, or one for each axis."""
    key = (shape, is_flat)
    positions = _positions.get(key)
    if positions is None:
        if is_flat:
            positions = lazy.arange(math.prod(shape)).reshape(shape)
        else:
            positions = zipped(tuple(_along(shape, axis) for axis in range(len(shape))), "nonzero")
        _positions.add(key, positions)
    return positions


def _along(shape: tuple[int, ...], axis: int) -> Any:
    later_axes = (1,) * (len(shape) - axis - 1)
    return lazy.arange(shape[axis]).reshape(shape[axis], *later_axes).broadcast_to(shape)


def flat_places(x: Any, where: str) -> Any:
    """Return the indices, in C order, of the elements that are true."""
    return select(_positions_of(tuple(x.shape), True), marks(x, where))


_MOST_AXES = 7  # whose indices are selected in one pass, with the flags


def _indices(x: Any, where: str) -> tuple[Any, ...]:
    """Return the indices of the elements that are true, an array for each axis."""
    shape = tuple(x.shape)
    if len(shape) == 1:
        return (flat_places(x, where),)
    if len(shape) <= _MOST_AXES:
        return tuple(select(_positions_of(shape, False), marks(x, where)))
    flat = flat_places(x, where)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return tuple(transform(_index, flat, s, n) for s, n in zip(steps, shape, strict=True))


def _index(flat_index: Any, step: Any, length: Any) -> Any:
    return flat_index // step % length


def _check_axes(x: Any, where: str) -> None:
    if not len(x.shape):
        raise ValueError(
            f"{where}: an array without axes has no indices; use flatnonzero, or numpy.atleast_1d"
        )


@numpys("One selection of indices; unless `a` is bool, one pass that compares with zero before it")
def nonzero(a: Any) -> Any:
    """Return the indices of the elements that are not zero: an array for each axis.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.nonzero([3, 0, 4])
    (array([0, 2]),)
    """
    a = array_of(a, "nonzero: a")
    _check_axes(a, "nonzero")
    return _indices(a, "nonzero")


@numpys("As `nonzero`")
def flatnonzero(a: Any) -> Any:
    """Return the indices of the elements that are not zero in the flattened array.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.flatnonzero([[3, 0], [0, 4]])
    array([0, 3])
    """
    return flat_places(array_of(a, "flatnonzero: a"), "flatnonzero").reshape(-1)


@numpys("One count of nonzero elements, then as `nonzero`")
def argwhere(a: Any) -> Any:
    """Return the indices of the elements that are not zero: a row for each element.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.argwhere([[3, 0], [0, 4]])
    array([[0, 0],
           [1, 1]])
    """
    a = array_of(a, "argwhere: a")
    ndim = len(a.shape)
    if ndim == 1:
        return flat_places(a, "argwhere").reshape(-1, 1)
    if not ndim:
        return flat_places(a, "argwhere").reshape(-1, 1)[:, :0]
    flags = marks(a, "argwhere")
    result = new((int(count(flags, is_true)), ndim), np.int64, a)
    columns = tuple(result[:, axis] for axis in range(ndim))
    if result.shape[0]:
        if ndim <= _MOST_AXES:
            select(_positions_of(tuple(a.shape), False), flags, out=columns)
        else:
            for column, indices in zip(columns, _indices(a, "argwhere"), strict=True):
                copy(indices, out=column)
    return result


def new(shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
    """Return a new array in another's library and on its device."""
    device, library = zipped(like, "a").place
    kind = np.dtype(dtype)
    if device == CPU:
        return library.from_numpy(np.empty(shape, kind), getattr(like, "owner", like))
    return library.empty(shape, kind, device, None)
