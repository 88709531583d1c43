"""Numbers rounded to decimals, to tens, or to whole ones: one transform each."""

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


def _rounded(a: Any, decimals: Any, out: Any, name: str) -> Any:
    decimals = operator.index(decimals)
    if not -(1 << 31) <= decimals < 1 << 31:
        raise OverflowError(f"{name}: decimals={decimals} is beyond 32 bits")
    x = as_array(a, name)
    kind = dtypes.kind(results.dtype_of(x, name))
    out = results.out_of(out, name)
    if out is not None and tuple(out.shape) != tuple(x.shape):
        told = f"{name}: out has shape {tuple(out.shape)}, the result has {tuple(x.shape)}"
        raise ValueError(told)
    if kind in "ui" and decimals >= 0:
        return UFUNCS["positive"](x, out=out)
    if not decimals:
        return UFUNCS["rint"](x, out=out)
    if kind in "ui":
        unit = _power_of_ten(-decimals)
        if math.isinf(unit):
            raise NotTaken(f"{name}: decimals={decimals} is beyond float64; use numpy.{name}")
        return _tens(x, unit, out, name)
    own = results.dtype_of(x, name)
    if own.kind == "b":
        raise NotTaken(f"{name}: bools have no decimals; use numpy.{name}")
    op = _to_decimals if decimals > 0 else _to_tens
    if own.kind == "c":
        op = _OF_PARTS[own, op]
    return mapped(op, (x, _power_of_ten(abs(decimals))), out, name)


@functools.lru_cache(256)
def _power_of_ten(exponent: int) -> float:
    """Return a power of ten as NumPy makes it: by products, which round beyond 10**22."""
    power = 1.0
    for _ in range(min(exponent, 400)):
        power *= 10.0
    return power


def _to_decimals(a: Any, unit: Any) -> Any:
    return np.rint(a * unit) / unit


def _to_tens(a: Any, unit: Any) -> Any:
    return np.rint(a / unit) * unit


_OF_PARTS: dict[Any, Any] = {
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


def _whole_tens(a: Any, unit: Any) -> Any:
    return _to_tens(np.float64(a), unit)


def _tens(x: Any, unit: float, out: Any, name: str) -> Any:
    """Return integers rounded to tens, hundreds …: as float64, which ``out=`` gets, as in NumPy."""
    made = applied(_whole_tens, (x, unit), name)
    if out is not None:
        results.check_cast(np.dtype(float), out, name)
        return results.stored(made, out, name)
    made = ufuncs.cast(made, np.dtype(float), results.dtype_of(x, name), name)
    return made if is_lazy(x) else results.number_of(copy(made))


@numpys("One transform")
def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Round to so many decimals, halves to even.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.round([1.25, 1.75, 2.5], 1)
    array([1.2, 1.8, 2.5])
    """
    return _rounded(a, decimals, out, "round")


@numpys("One transform")
def around(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Round to so many decimals, halves to even; another name of `round`.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.around([0.5, 1.5, 2.5])
    array([0., 2., 2.])
    """
    return _rounded(a, decimals, out, "around")


@numpys("One transform")
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.fix([2.9, -2.9])
    array([ 2., -2.])
    """
    return UFUNCS["trunc"](x, out=out)
