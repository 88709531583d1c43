"""NumPy's elementwise functions that are not ufuncs: one transform each."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy
from gpualgo.lazy import functions
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import NotTaken, array_of, as_array
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._elementwise.ufunc_calls import mapped
from gpualgo.numpy._elementwise.ufuncs import UFUNCS, UFunc

_UNSET: Any = np._NoValue
_ALL = 1 << 62
_CLIP = UFunc("clip", np._core.umath.clip, functions.clipped)  # type: ignore[attr-defined]


@numpys("One transform", few=0)
def clip(
    a: Any, a_min: Any = _UNSET, a_max: Any = _UNSET, out: Any = None, *, min: Any = _UNSET,
    max: Any = _UNSET, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return the elements limited to the range from a minimum to a maximum.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.clip([1, 5, 9], 2, 8)
    array([2, 5, 8])
    """
    low, high = _limits(a_min, a_max, min, max)
    x = a if type(a) in (bool, int, float, complex) else as_array(a, "clip")
    kind = np.asarray(x).dtype if x is a and not hasattr(a, "dtype") else None
    kind = results.dtype_of(x, "clip") if kind is None else kind
    if kind.kind in "iu":  # a Python number outside the dtype's range is no limit
        info = np.iinfo(kind)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return UFUNCS["positive"](x, out=out, **kwargs)
    if low is None:
        return UFUNCS["minimum"](x, high, out=out, **kwargs)
    if high is None:
        return UFUNCS["maximum"](x, low, out=out, **kwargs)
    return _CLIP(x, low, high, out=out, **kwargs)


def _limits(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the limits, given as a_min and a_max or by the array API's names."""
    if a_min is _UNSET and a_max is _UNSET:
        return (None if low is _UNSET else low), (None if high is _UNSET else high)
    for name, one in (("a_min", a_min), ("a_max", a_max)):
        if one is _UNSET:
            raise TypeError(f"clip() missing 1 required positional argument: {name!r}")
    if low is not _UNSET or high is not _UNSET:
        raise ValueError("clip: a_min and a_max are given, so min and max must not be")
    return a_min, a_max


@numpys("One transform", arrays=0)
def nan_to_num(
    x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Return the elements with NaN and infinities replaced by numbers.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.nan_to_num([1.0, float("nan"), float("inf")], nan=-1, posinf=9)
    array([ 1., -1.,  9.])
    """
    name = "nan_to_num"
    if not copy and (not hasattr(x, "ndim") or isinstance(x, np.generic)):
        raise ValueError(f"{name}: copy=False needs an array, got {type(x).__name__}")
    values = array_of(x, name)
    if not copy and isinstance(x, np.ndarray) and not x.dtype.isnative:  # `values` is a copy
        x[...] = nan_to_num(values, nan=nan, posinf=posinf, neginf=neginf)
        return x
    if type(values) is np.ndarray and function.is_few(values.size, function.FEW):
        return np.nan_to_num(values, copy, nan, posinf, neginf)
    kind = results.dtype_of(values, name)
    if dtypes.kind(kind) not in "fc":
        return values if not copy or is_lazy(values) else _copied(values)
    if not copy and is_lazy(values):
        raise NotTaken(f"{name}: copy=False of a lazy array, which has no memory")
    replacements = tuple(
        one if one is None or type(one) in (bool, int, float) else array_of(one, name)
        for one in (nan, posinf, neginf)
    )
    for one in replacements:
        shape = tuple(getattr(one, "shape", ()))
        if np.broadcast_shapes(shape, tuple(values.shape)) != tuple(values.shape):
            message = f"{name}: numbers of shape {shape} do not fit into x of {tuple(values.shape)}"
            raise ValueError(message)
    op, numbers = functions.finite_of(kind, *replacements)
    return mapped(op, (values, *numbers), None if copy else values, name)


def _copied(x: Any) -> Any:
    return results.number_of(copy(x))


def _close(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    as_float = y * 1.0  # as float: abs of the least integer overflows
    near = np.less_equal(abs(x - as_float), atol + rtol * abs(as_float))
    return (near & np.isfinite(as_float)) | (x == as_float)


def _close_or_nan(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    return _close(x, y, rtol, atol) | (np.isnan(x) & np.isnan(y))


@numpys("One transform", arrays=2, weak=True)
def isclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: Any = False) -> Any:
    """Return where elements are equal within ``atol + rtol · |b|``.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    array([ True, False])
    """
    numbers = (bool, int, float, complex)
    x, y, rtol, atol = (
        one if type(one) in numbers else array_of(one, "isclose") for one in (a, b, rtol, atol)
    )
    on_host = [one for one in (rtol, atol) if type(one) in numbers or type(one) is np.ndarray]
    if not all(np.all(np.isfinite(one)) for one in on_host):
        message = f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}"
        if np.geterr()["invalid"] == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        elif np.geterr()["invalid"] == "raise":
            raise FloatingPointError(message)
    op = _close_or_nan if equal_nan else _close
    return mapped(op, (x, float(y) if type(y) is int else y, rtol, atol), None, "isclose")


def _is_posinf(x: Any) -> Any:
    return np.isinf(x) & (x > 0)


def _is_neginf(x: Any) -> Any:
    return np.isinf(x) & (x < 0)


def _infinite(x: Any, op: Any, out: Any, name: str) -> Any:
    values = as_array(x, name)
    kind = results.dtype_of(values, name)
    if kind.kind == "c":
        raise TypeError(f"{name}: {kind} has more than one infinity; pass a part of it")
    return mapped(op, (values,), results.out_of(out, name), name)


@numpys("One transform")
def isposinf(x: Any, out: Any = None) -> Any:
    """Return where elements are positive infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.isposinf([1.0, float("inf"), -float("inf")])
    array([False,  True, False])
    """
    return _infinite(x, _is_posinf, out, "isposinf")


@numpys("One transform")
def isneginf(x: Any, out: Any = None) -> Any:
    """Return where elements are negative infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.isneginf([1.0, float("inf"), -float("inf")])
    array([False, False,  True])
    """
    return _infinite(x, _is_neginf, out, "isneginf")


def _sinc(x: Any) -> Any:
    y = x * math.pi
    return np.where(y == 0, y * 0 + 1, np.sin(y) / y)


@numpys("One transform; host arrays: NumPy's loops on all cores")
def sinc(x: Any) -> Any:
    """Return ``sin(πx) / (πx)``, which is 1 where x is 0.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.sinc([0.0, 0.5, 1.5]).round(3)
    array([ 1.   ,  0.637, -0.212])
    """
    values = as_array(x, "sinc")
    if type(values) is np.ndarray and values.ndim and function.is_few(values.size, _ALL):
        y = UFUNCS["multiply"](values, math.pi)
        y[y == 0] = np.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
        return UFUNCS["divide"](UFUNCS["sin"](y), y, out=y)
    return mapped(_sinc, (values,), None, "sinc")
