"""Reductions that ignore NaN: one pass each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms import extremes
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform import transform
from gpualgo._base import dtypes
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds import (
    INDEX,
    UNSET,
    arrayed,
    cast_result,
    flag_of,
    is_on_host,
    lazy_mask_of,
    reduced,
    warn,
)
from gpualgo.numpy._reductions.moments import ddof_of, mean_of, variance_of
from gpualgo.numpy._reductions.reductions import index_out, less, place_axis, places

FEW = 1 << 15  # NumPy is faster on host arrays of fewer elements
_QUIET = "no warnings for overflow, nor for slices of device arrays without numbers"


def has_nan(a: Any, name: str) -> bool:
    """Return whether a dtype can represent NaN."""
    return dtypes.kind(function.dtype_of(a, name)) in "fc"


def _replace_nan(x: Any, replacement: Any) -> Any:
    return np.where(x == x, x, replacement)


_REPLACED = ExpressionCache(lambda x, none: applied(_replace_nan, (x, none), ""))


def _without_nan(a: Any, replacement: float, name: str) -> Any:
    """Return numbers with NaN replaced."""
    a = arrayed(a, name)
    if not has_nan(a, name):
        return a
    return _REPLACED((a,), name, function.dtype_of(a, name).type(replacement))


@numpys("One reduction", few=FEW, differs="no warnings for overflow")
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the sum of the elements over axes, ignoring NaN.

    >>> float(gnp.nansum([1.0, float("nan"), 3.0]))
    4.0
    """
    a = _without_nan(a, 0, "nansum")
    return reduced(np.add, a, axis, dtype, out, keepdims, initial, where, "nansum")


@numpys("One reduction", few=FEW, differs="no warnings for overflow")
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the product of the elements over axes, ignoring NaN.

    >>> float(gnp.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    a = _without_nan(a, 1, "nanprod")
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "nanprod")


def _extreme(
    ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str
) -> Any:
    result = reduced(ufunc, a, axis, None, out, keepdims, initial, where, name)
    if is_on_host(result) and result.dtype.kind not in "biu":
        warn("All-NaN slice encountered", np.isnan(result))
    return result


@numpys("One reduction", differs=_QUIET)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the smallest element over axes, ignoring NaN; NaN if all elements are NaN.

    >>> float(gnp.nanmin([2.0, float("nan"), 3.0]))
    2.0
    """
    return _extreme(np.fmin, a, axis, out, keepdims, initial, where, "nanmin")


@numpys("One reduction", differs=_QUIET)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the largest element over axes, ignoring NaN; NaN if all elements are NaN.

    >>> float(gnp.nanmax([2.0, float("nan"), 3.0]))
    3.0
    """
    return _extreme(np.fmax, a, axis, out, keepdims, initial, where, "nanmax")


# --- means and variances ----------------------------------------------------------------------


def _mask_of_numbers(
    a: Any, where: Any, dtype: Any, out: Any, name: str, mean: Any = UNSET
) -> Any:  # fmt: skip
    """Return a mask of the elements that are numbers and in ``where=``; None for all."""
    mask = lazy_mask_of(where, a, name)
    if not has_nan(a, name):
        return mask
    if dtype is not None and dtypes.kind(dtypes.as_dtype(dtype, name)) not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and dtypes.kind(function.dtype_of(out, name)) not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    if mask is None and mean is UNSET and function.dtype_of(a, name).kind != "c":
        return reductions.NUMBERS
    are_numbers = reductions.are_numbers(a)
    return are_numbers if mask is None else np.logical_and(are_numbers, mask)


@numpys("One reduction of (count, sum)", few=FEW, differs=_QUIET)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET, *,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the mean of the elements over axes, ignoring NaN.

    >>> float(gnp.nanmean([1.0, float("nan"), 3.0]))
    2.0
    """
    a, out = arrayed(a, "nanmean"), function.out_of(out, "nanmean")
    mask = _mask_of_numbers(a, where, dtype, out, "nanmean")
    with np.errstate(invalid="ignore", divide="ignore"):
        return mean_of(a, axis, dtype, out, keepdims, mask, "nanmean")


_PASSES = "One reduction of (count, mean, sum of squares); with `mean`, of (count, squares)"


@numpys(_PASSES, few=FEW, differs=_QUIET)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = UNSET, *, where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the variance of the elements over axes, ignoring NaN.

    >>> float(gnp.nanvar([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanvar"), ddof_of(ddof, correction), function.out_of(out, "nanvar")
    mask = _mask_of_numbers(a, where, dtype, out, "nanvar", mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, False, "nanvar")


@numpys(_PASSES, few=FEW, differs=_QUIET)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = UNSET, *, where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the standard deviation of the elements over axes, ignoring NaN.

    >>> float(gnp.nanstd([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanstd"), ddof_of(ddof, correction), function.out_of(out, "nanstd")
    mask = _mask_of_numbers(a, where, dtype, out, "nanstd", mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, True, "nanstd")


# --- Indices of the least and the greatest numbers, ignoring NaN.

FEW_PLACES = 1 << 18  # with NaN NumPy needs two vectorised passes, this package one of pairs


def _lesser_and_index(a: Any, b: Any) -> Any:
    keeps_a = b[0] != b[0] or a[0] <= b[0]
    return a[0] if keeps_a else b[0], a[1] if keeps_a else b[1]


def _greater_and_index(a: Any, b: Any) -> Any:
    keeps_a = b[0] != b[0] or a[0] >= b[0]
    return a[0] if keeps_a else b[0], a[1] if keeps_a else b[1]


@functools.lru_cache(64, typed=True)
def _index_or_minus_one(filler: Any) -> Callable[..., Any]:
    """Return an operator for NumPy's index: -1 if all are NaN.

    An extreme that equals the filler for NaN has the first index, as in NumPy.
    """
    return lambda value, index: np.where(value != value, -1, np.where(value == filler, 0, index))


# Complex numbers with an infinite part may be less or greater than the filler for NaN.


def _filled_triple(x: Any, index: Any, filler: Any) -> Any:
    return np.where(x == x, x, filler), index, x == x


def _first_least(a: Any, b: Any) -> Any:
    is_later = less(b[0], a[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _first_greatest(a: Any, b: Any) -> Any:
    is_later = less(a[0], b[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _complex_index(has_numbers: Any, index: Any) -> Any:
    return np.where(has_numbers, index, -1)


_PAIRS = ExpressionCache(lambda x, axis: zipped((x, places(x, axis, "")), ""))


def _search(
    search: Callable[..., Any], ops: tuple[Any, Any], none: float, a: Any, axis: Any, out: Any,
    keepdims: Any, name: str,
) -> Any:  # fmt: skip
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), index_out(out, name)
    axis, kind = place_axis(a, axis, name), function.dtype_of(a, name)
    if not has_nan(a, name):
        return cast_result(search(a, axis, keepdims=keepdims), INDEX, out, name)
    if is_host(a) and axis is None and kind.kind != "c":
        index = search(a, None, keepdims=keepdims)  # it stops at the first NaN
        value = a[np.unravel_index(np.ravel(index)[0], a.shape)]
        if value == value:
            return cast_result(index, INDEX, out, name)
    filler = kind.type(none)
    if kind.kind == "c":
        x = lazy_of(a)
        elements: Any = applied(_filled_triple, (x, places(x, axis, name), filler), name)
        _, *parts = reduce(elements, None, ops[1], axis=axis, keepdims=keepdims)
        parts, op = parts[::-1], _complex_index
    else:
        pairs = _PAIRS((a,), name, axis)
        parts = [*reduce(pairs, None, ops[0], axis=axis, keepdims=keepdims)]
        op = _index_or_minus_one(filler)
    if is_on_host(parts[0]):
        index = op(*parts)
        if np.any(index < 0):
            raise ValueError("All-NaN slice encountered")
        return cast_result(index, INDEX, out, name)
    index = transform(op, *parts, dtype=INDEX)
    return index if out is None else cast_result(index, INDEX, out, name)


_NOWHERE = "slices of device arrays without numbers give the index -1 (NumPy: ValueError)"
_PLACES_PASSES = "One reduction of (element, index) pairs; host arrays are first searched for a NaN"


@numpys(_PLACES_PASSES, few=FEW_PLACES, orders=True, differs=_NOWHERE)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first smallest element; NaN counts as infinity.

    >>> int(gnp.nanargmin([float("nan"), 3.0, 1.0]))
    2
    """
    ops = _lesser_and_index, _first_least
    return _search(extremes.argmin, ops, np.inf, a, axis, out, keepdims, "nanargmin")


@numpys(_PLACES_PASSES, few=FEW_PLACES, orders=True, differs=_NOWHERE)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first largest element; NaN counts as -infinity.

    >>> int(gnp.nanargmax([float("nan"), 3.0, 1.0]))
    1
    """
    ops = _greater_and_index, _first_greatest
    return _search(extremes.argmax, ops, -np.inf, a, axis, out, keepdims, "nanargmax")
