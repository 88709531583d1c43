"""Sums, products, extremes, any, all: one reduction each, whatever is converted or left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._base import dtypes
from gpualgo.lazy import LazyArray, reductions
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy import _results
from gpualgo.numpy._function import numpys

_UNSET: Any = np._NoValue
_IDENTITY = {np.add: 0, np.multiply: 1, np.logical_or: False, np.logical_and: True}


def reduced(
    ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any,
    where: Any, name: str,
) -> Any:  # fmt: skip
    """Return what ``ufunc.reduce`` does, in one pass, where `_Plain` does not say so already."""
    keepdims = False if keepdims is _UNSET else bool(keepdims)
    start = None if initial is _UNSET else initial
    out = _results.out_of(out, name)
    is_all = where is _UNSET or where is True
    if is_all and out is None and not isinstance(a, LazyArray):
        own = _results.dtype_of(a, name)
        kind = _kind_of(ufunc, own, dtype, name)
        wide = reductions._wide(kind)
        if wide == kind and (own == kind or ufunc in (np.add, np.multiply)):
            return reduce(
                a, start, ufunc, axis=_axes(axis, a.ndim, name), keepdims=keepdims, dtype=kind
            )
    x = lazy_of(a)
    kind = _kind_of(ufunc, x.dtype, dtype, name)
    if not is_all:
        x = _masked(ufunc, x, where, initial, kind, name)
    if out is not None and _results.check_cast(kind, out, name) != kind:
        found = reductions.reduced(ufunc, x, axis, kind, None, keepdims, start, name)
        return _results.finished(lambda value: value, (found,), _results.dtype_of(out, name), out)
    return reductions.reduced(ufunc, x, axis, kind, out, keepdims, start, name)


def _kind_of(ufunc: np.ufunc, own: Any, dtype: Any, name: str) -> Any:
    """Return the dtype of a result."""
    rule = reductions.RULES[ufunc]
    if rule is reductions.BOOL:
        return np.dtype(bool)
    if dtype is not None:
        return dtypes.as_dtype(dtype, name)
    return reductions.sum_dtype(own) if rule is reductions.SUM else own


def _axes(axis: Any, ndim: int, name: str) -> Any:
    if axis is None or (type(axis) is int and ndim):
        return axis
    return reductions._axis(axis, ndim, name)


def _masked(ufunc: np.ufunc, x: Any, where: Any, initial: Any, kind: Any, name: str) -> Any:
    """Return the elements with what changes nothing for those that are left out."""
    if ufunc in _IDENTITY:
        none: Any = kind.type(_IDENTITY[ufunc])
    elif initial is _UNSET or initial is None:
        raise ValueError(
            f"{name}: the smallest or largest of no elements is not known, so where= needs initial="
        )
    else:
        none = kind.type(initial)
    mask = lazy_of(where)
    if mask.dtype != bool:
        raise TypeError(f"{name}: where has dtype {mask.dtype}; pass an array of bool")
    if x.dtype != kind:
        x = x.astype(kind)
    return np.where(mask.broadcast_to(x.shape) if mask.ndim else mask, x, none)


@numpys("One reduction")
def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _UNSET,
    initial: Any = _UNSET, where: Any = _UNSET,
) -> Any:  # fmt: skip
    """Add up the elements over axes.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.sum([1, 2, 3]))
    6
    """
    return reduced(np.add, a, axis, dtype, out, keepdims, initial, where, "sum")


@numpys("One reduction")
def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _UNSET,
    initial: Any = _UNSET, where: Any = _UNSET,
) -> Any:  # fmt: skip
    """Multiply the elements over axes.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.prod([1, 2, 3, 4]))
    24
    """
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "prod")
