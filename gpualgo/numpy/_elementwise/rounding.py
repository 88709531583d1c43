"""Rounding to decimals, tens or integers: one transform each."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy, ufuncs
from gpualgo._lazy.combining import applied
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import NotTaken, as_array
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._elementwise.ufunc_calls import mapped
from gpualgo.numpy._elementwise.ufuncs import UFUNCS


def _round(a: Any, decimals: Any, out: Any, name: str) -> Any:
    decimals = operator.index(decimals)
    if not -(1 << 31) <= decimals < 1 << 31:
        raise OverflowError(f"{name}: decimals={decimals} is beyond 32 bits")
    x = as_array(a, name)
    kind = dtypes.kind(results.dtype_of(x, name))
    out = results.out_of(out, name)
    if out is not None and tuple(out.shape) != tuple(x.shape):
        message = f"{name}: out has shape {tuple(out.shape)}, the result has {tuple(x.shape)}"
        raise ValueError(message)
    if kind in "ui" and decimals >= 0:
        return UFUNCS["positive"](x, out=out)
    if not decimals:
        return UFUNCS["rint"](x, out=out)
    if kind in "ui":
        unit = _power_of_ten(-decimals)
        if math.isinf(unit):
            raise NotTaken(f"{name}: decimals={decimals} is beyond float64; use numpy.{name}")
        return _round_to_tens(x, unit, out, name)
    dtype = results.dtype_of(x, name)
    if dtype.kind == "b":
        raise NotTaken(f"{name}: bools have no decimals; use numpy.{name}")
    op = _to_decimals if decimals > 0 else _to_tens
    if dtype.kind == "c":
        op = _COMPLEX_OPS[dtype, op]
    return mapped(op, (x, _power_of_ten(abs(decimals))), out, name)


@functools.lru_cache(256)
def _power_of_ten(exponent: int) -> float:
    """Return a power of ten as NumPy computes it: by products, which round beyond 10**22."""
    power = 1.0
    for _ in range(min(exponent, 400)):
        power *= 10.0
    return power


def _to_decimals(a: Any, unit: Any) -> Any:
    return np.rint(a * unit) / unit


def _to_tens(a: Any, unit: Any) -> Any:
    return np.rint(a / unit) * unit


_COMPLEX_OPS: dict[Any, Any] = {
    (np.dtype(np.complex64), _to_decimals): lambda a, unit: np.complex64(
        _to_decimals(a.real, unit), _to_decimals(a.imag, unit)
    ),
    (np.dtype(np.complex64), _to_tens): lambda a, unit: np.complex64(
        _to_tens(a.real, unit), _to_tens(a.imag, unit)
    ),
    (np.dtype(np.complex128), _to_decimals): lambda a, unit: np.complex128(
        _to_decimals(a.real, unit), _to_decimals(a.imag, unit)
    ),
    (np.dtype(np.complex128), _to_tens): lambda a, unit: np.complex128(
        _to_tens(a.real, unit), _to_tens(a.imag, unit)
    ),
}


def _integer_to_tens(a: Any, unit: Any) -> Any:
    return _to_tens(np.float64(a), unit)


def _round_to_tens(x: Any, unit: float, out: Any, name: str) -> Any:
    """Return integers rounded to tens, hundreds, ...; ``out=`` receives float64, as in NumPy."""
    rounded = applied(_integer_to_tens, (x, unit), name)
    if out is not None:
        results.check_cast(np.dtype(float), out, name)
        return results.stored(rounded, out, name)
    rounded = ufuncs.cast(rounded, np.dtype(float), results.dtype_of(x, name), name)
    return rounded if is_lazy(x) else results.number_of(copy(rounded))


@numpys("One transform")
def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Return the elements rounded to a number of decimals, halves to the even digit.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.round([1.25, 1.75, 2.5], 1)
    array([1.2, 1.8, 2.5])
    """
    return _round(a, decimals, out, "round")


@numpys("One transform")
def around(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Return the elements rounded to a number of decimals, as `round`.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.around([0.5, 1.5, 2.5])
    array([0., 2., 2.])
    """
    return _round(a, decimals, out, "around")


@numpys("One transform")
def fix(x: Any, out: Any = None) -> Any:
    """Return the elements rounded towards zero.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.fix([2.9, -2.9])
    array([ 2., -2.])
    """
    return UFUNCS["trunc"](x, out=out)
