"""Reductions that ignore NaN: one pass each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._lazy.combining import applied
from gpualgo._lazy.kept import Kept
from gpualgo.lazy import moments
from gpualgo.numpy._call import results
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds.masks import lazy_mask_of
from gpualgo.numpy._folds.reducing import (
    UNSET,
    arrayed,
    is_there,
    reduced,
    warn,
)
from gpualgo.numpy._reductions.moments import ddof_of, mean_of, variance_of

FEW = 1 << 15  # NumPy is faster on host arrays of fewer elements
_QUIET = "no warnings for overflow, nor for slices of device arrays without numbers"


def has_nan(a: Any, name: str) -> bool:
    """Return whether a dtype can represent NaN."""
    return dtypes.kind(results.dtype_of(a, name)) in "fc"


def _replace_nan(x: Any, replacement: Any) -> Any:
    return np.where(x == x, x, replacement)


_REPLACED = Kept(lambda x, none: applied(_replace_nan, (x, none), ""))


def _without_nan(a: Any, replacement: float, name: str) -> Any:
    """Return numbers with NaN replaced."""
    a = arrayed(a, name)
    if not has_nan(a, name):
        return a
    return _REPLACED((a,), name, results.dtype_of(a, name).type(replacement))


@numpys("One reduction", few=FEW, differs="no warnings for overflow")
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the sum of the elements over axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
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

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    a = _without_nan(a, 1, "nanprod")
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "nanprod")


def _extreme(
    ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str
) -> Any:
    result = reduced(ufunc, a, axis, None, out, keepdims, initial, where, name)
    if is_there(result) and result.dtype.kind not in "biu":
        warn("All-NaN slice encountered", np.isnan(result))
    return result


@numpys("One reduction", differs=_QUIET)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the smallest element over axes, ignoring NaN; NaN if all elements are NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
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

    Examples
    --------
    >>> import gpualgo.numpy as gnp
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
    if out is not None and dtypes.kind(results.dtype_of(out, name)) not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    if mask is None and mean is UNSET and results.dtype_of(a, name).kind != "c":
        return moments.NUMBERS
    are_numbers = moments.are_numbers(a)
    return are_numbers if mask is None else np.logical_and(are_numbers, mask)


@numpys("One reduction of (count, sum)", few=FEW, differs=_QUIET)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET, *,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the mean of the elements over axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanmean([1.0, float("nan"), 3.0]))
    2.0
    """
    a, out = arrayed(a, "nanmean"), results.out_of(out, "nanmean")
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

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanvar([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanvar"), ddof_of(ddof, correction), results.out_of(out, "nanvar")
    mask = _mask_of_numbers(a, where, dtype, out, "nanvar", mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, False, "nanvar")


@numpys(_PASSES, few=FEW, differs=_QUIET)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = UNSET, *, where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the standard deviation of the elements over axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanstd([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanstd"), ddof_of(ddof, correction), results.out_of(out, "nanstd")
    mask = _mask_of_numbers(a, where, dtype, out, "nanstd", mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, True, "nanstd")
