"""Cumulative sums and products: one scan each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._lazy.combining import applied
from gpualgo._lazy.kept import Kept
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import as_array
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds.accumulating import accumulated


def _accumulate(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return ``numpy.cumsum`` or its like; a 0-d array counts as one element."""
    x = as_array(a, name)
    if not x.ndim:
        x = x.reshape(1) if type(x) is np.ndarray else lazy_of(x).reshape(1)
    return accumulated(ufunc, x, axis, dtype, out, name)


@numpys("One scan; 16-bit floats: one conversion after it")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative sums along an axis, or of all elements in C order.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.cumsum([1, 2, 3])
    array([1, 3, 6])
    """
    return _accumulate(np.add, a, axis, dtype, out, "cumsum")


@numpys("One scan; 16-bit floats: one conversion after it")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative products along an axis, or of all elements in C order.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.cumprod([1, 2, 3, 4])
    array([ 1,  2,  6, 24])
    """
    return _accumulate(np.multiply, a, axis, dtype, out, "cumprod")


def _zero_for_nan(a: Any) -> Any:
    return a if a == a else 0


def _one_for_nan(a: Any) -> Any:
    return a if a == a else 1


_ZERO_FOR_NAN, _ONE_FOR_NAN = (
    Kept(lambda x, op=op: applied(op, (x,), "nancumsum", x.dtype))
    for op in (_zero_for_nan, _one_for_nan)
)


def _without_nan(a: Any, op: Any, name: str) -> Any:
    """Return the elements with NaN replaced, lazily; unchanged if the dtype has no NaN."""
    x = as_array(a, name)
    if dtypes.kind(results.dtype_of(x, name)) not in "fc":
        return x
    return op((x,), name)


@numpys("One scan that skips NaN while reading; on the CPU one transform before it")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative sums; NaN counts as zero.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.nancumsum([1.0, float("nan"), 3.0])
    array([1., 1., 4.])
    """
    x = _without_nan(a, _ZERO_FOR_NAN, "nancumsum")
    return _accumulate(np.add, x, axis, dtype, out, "nancumsum")


@numpys("One scan that skips NaN while reading; on the CPU one transform before it")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative products; NaN counts as one.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.nancumprod([2.0, float("nan"), 3.0])
    array([2., 2., 6.])
    """
    x = _without_nan(a, _ONE_FOR_NAN, "nancumprod")
    return _accumulate(np.multiply, x, axis, dtype, out, "nancumprod")


def _cumulative(
    ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool, name: str
) -> Any:
    x = as_array(x, name)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an array of {x.ndim} axes needs axis=")
        axis = 0
    if not include_initial:
        return _accumulate(ufunc, x, axis, dtype, out, name)
    if not x.ndim:
        x = lazy_of(x).reshape(1)
    index = results.axis_of(axis, x.ndim, name)
    shape = (*x.shape[:index], x.shape[index] + 1, *x.shape[index + 1 :])
    out = results.out_of(out, name)
    if out is None:
        kind = results.summed(results.dtype_of(x, name), dtype, name)
        out = results.new(x, shape, kind)
    elif tuple(out.shape) != shape:
        raise ValueError(f"{name}: out has shape {tuple(out.shape)}, the result has {shape}")
    leading = (slice(None),) * index
    accumulated(ufunc, x, index, dtype, out[(*leading, slice(1, None))], name)
    results.filled(out[(*leading, slice(0, 1))], ufunc.identity)
    return out


@numpys("One scan; 16-bit floats: one conversion after it")
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Return the cumulative sums along an axis; ``include_initial=True`` puts a zero first.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.cumulative_sum([1, 2, 3], include_initial=True)
    array([0, 1, 3, 6])
    """
    return _cumulative(np.add, x, axis, dtype, out, include_initial, "cumulative_sum")


@numpys("One scan; 16-bit floats: one conversion after it")
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Return the cumulative products along an axis; ``include_initial=True`` puts a one first.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.cumulative_prod([1, 2, 3], include_initial=True)
    array([1, 1, 2, 6])
    """
    return _cumulative(np.multiply, x, axis, dtype, out, include_initial, "cumulative_prod")
