"""Weighted averages: one reduction of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied
from gpualgo._lazy.kept import Kept
from gpualgo._operators.markers import second
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import moments, reductions
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds.reducing import UNSET, arrayed, flag_of, is_there, settled
from gpualgo.numpy._reductions.moments import FEW, QUIET, divided, mean_of


@numpys("One reduction; with weights, of pairs", few=FEW, differs=(
    f"{QUIET}; weights on a GPU that sum to zero give NaN or infinity (NumPy: ZeroDivisionError)"
))  # fmt: skip
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = UNSET
) -> Any:
    """Return the weighted mean of the elements over axes.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.average([1, 2, 6], weights=[3, 2, 1]))
    2.1666666666666665
    """
    name = "average"
    a, keepdims = arrayed(a, name), flag_of(keepdims, name)
    if axis is not None:
        axis = checks.plain_axes(axis, name)
    if weights is None:
        result = mean_of(a, axis, None, None, keepdims, None, name)
        if not returned:
            return result
        kind, count = results.dtype_of(result, name), reductions.count_of(a.shape, axis, name)
        number = np.asarray(count).astype(kind)[()]
        if is_there(result):
            return result, number if not result.ndim else np.full(result.shape, number)
        return result, copy(applied(second, (result, number), name))
    weights = _weights_of(weights, a, axis, name)
    kinds = [results.dtype_of(x, name) for x in (a, weights)]
    kind = np.result_type(*kinds, *(["f8"] if kinds[0].kind in "biu" else []))
    acc = moments.wide_of(kind)
    pair: Any = _PAIRS((a, weights), name, acc)
    total, scale = reduce(pair, (0, 0), moments.added, axis=axis, keepdims=keepdims)
    if is_there(scale) and np.any(scale == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = divided(total, scale, kind, None, name)
    return (result, settled(scale, kind, None, name)) if returned else result


def _pairs(x: Any, weights: Any, acc: Any) -> Any:
    return applied(_weighted, (moments.lazy_as(x, acc), moments.lazy_as(weights, acc)), "average")


_PAIRS = Kept(_pairs)


def _weighted(x: Any, weight: Any) -> Any:
    return x * weight, weight


def _weights_of(weights: Any, a: Any, axis: Any, name: str) -> Any:
    """Return weights broadcast to the shape of a; they may have only the reduced axes."""
    weights = array_of(arrayed(weights, f"{name}: weights"), f"{name}: weights")
    if is_host(weights) and not is_host(a) and not is_lazy(a):
        weights = results.beside(a, weights, name)
    shape = tuple(a.shape)
    if tuple(weights.shape) == shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axis if isinstance(axis, tuple) else (axis,)
    checks.axes_of(axis, len(shape), name)
    axes = tuple(i % len(shape) for i in axes)
    if tuple(weights.shape) != tuple(shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    in_order: Any = np.transpose(lazy_of(weights), np.argsort(axes))
    new_shape = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return in_order.reshape(new_shape).broadcast_to(shape)
