"""Reductions of what is a number: one pass each, in which NaN counts for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms import extremes
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform import transform
from gpualgo._base import dtypes
from gpualgo._lazy.combining import applied
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy import _results
from gpualgo.numpy._extremes import index_out, less, place_axis, places
from gpualgo.numpy._function import numpys
from gpualgo.numpy._moments import ddof_of, mean_of, variance_of
from gpualgo.numpy._reducing import (
    INDEX,
    UNSET,
    arrayed,
    flag_of,
    is_there,
    mask_of,
    reduced,
    settled,
    warn,
)

_FEW = 1 << 14  # fewer elements of host memory NumPy has done before ours have begun
_QUIET = "slices without numbers are not warned of in device arrays, nor is overflow anywhere"


def _has_nan(a: Any, name: str) -> bool:
    """Return whether elements may be NaN, by their dtype."""
    return dtypes.kind(_results.dtype_of(a, name)) in "fc"


def _or_else(x: Any, none: Any) -> Any:
    return np.where(x == x, x, none)


def _filled(a: Any, none: float, name: str) -> Any:
    """Return numbers with another for each NaN."""
    a = arrayed(a, name)
    if not _has_nan(a, name):
        return a
    return applied(_or_else, (lazy_of(a), _results.dtype_of(a, name).type(none)), name)


@numpys("One reduction", few=_FEW, differs="overflow is not warned of")
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Add up the numbers over axes, NaN left out.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nansum([1.0, float("nan"), 3.0]))
    4.0
    """
    a = _filled(a, 0, "nansum")
    return reduced(np.add, a, axis, dtype, out, keepdims, initial, where, "nansum")


@numpys("One reduction", few=_FEW, differs="overflow is not warned of")
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Multiply the numbers over axes, NaN left out.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanprod([2.0, float("nan"), 3.0]))
    6.0
    """
    a = _filled(a, 1, "nanprod")
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "nanprod")


def _extreme(
    ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, name: str
) -> Any:
    found = reduced(ufunc, a, axis, None, out, keepdims, initial, where, name)
    if is_there(found) and found.dtype.kind not in "biu":
        warn("All-NaN slice encountered", np.isnan(found))
    return found


@numpys("One reduction", differs=_QUIET)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the least number over axes, NaN where there is none.

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
    """Return the greatest number over axes, NaN where there is none.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanmax([2.0, float("nan"), 3.0]))
    3.0
    """
    return _extreme(np.fmax, a, axis, out, keepdims, initial, where, "nanmax")


# --- means and variances ----------------------------------------------------------------------


def _numbers_of(a: Any, where: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return which elements are numbers, and meant; None: all are."""
    mask = mask_of(where, a.shape, name)
    if not _has_nan(a, name):
        return mask
    if dtype is not None and dtypes.kind(dtypes.as_dtype(dtype, name)) not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and dtypes.kind(_results.dtype_of(out, name)) not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    x = lazy_of(a)
    are_numbers = np.equal(x, x)
    return are_numbers if mask is None else np.logical_and(are_numbers, mask)


@numpys("One reduction, of counts and sums", few=_FEW, differs=_QUIET)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET, *,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the mean of the numbers over axes, NaN left out.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanmean([1.0, float("nan"), 3.0]))
    2.0
    """
    a, out = arrayed(a, "nanmean"), _results.out_of(out, "nanmean")
    mask = _numbers_of(a, where, dtype, out, "nanmean")
    with np.errstate(invalid="ignore", divide="ignore"):
        return mean_of(a, axis, dtype, out, keepdims, mask, "nanmean")


_PASSES = "One reduction, of counts, means and sums of squares; with mean= of counts and squares"


@numpys(_PASSES, few=_FEW, differs=_QUIET)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = UNSET, *, where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the variance of the numbers over axes, NaN left out.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanvar([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanvar"), ddof_of(ddof, correction), _results.out_of(out, "nanvar")
    mask = _numbers_of(a, where, dtype, out, "nanvar")
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, False, "nanvar")


@numpys(_PASSES, few=_FEW, differs=_QUIET)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = UNSET, *, where: Any = UNSET, mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the standard deviation of the numbers over axes, NaN left out.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanstd([1.0, float("nan"), 3.0]))
    1.0
    """
    a, ddof, out = arrayed(a, "nanstd"), ddof_of(ddof, correction), _results.out_of(out, "nanstd")
    mask = _numbers_of(a, where, dtype, out, "nanstd")
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, axis, dtype, out, ddof, keepdims, mask, mean, True, "nanstd")


# --- where they are ---------------------------------------------------------------------------


def _place_of_least(a: Any, b: Any) -> Any:
    stays = b[0] != b[0] or a[0] <= b[0]
    return a[0] if stays else b[0], a[1] if stays else b[1]


def _place_of_greatest(a: Any, b: Any) -> Any:
    stays = b[0] != b[0] or a[0] >= b[0]
    return a[0] if stays else b[0], a[1] if stays else b[1]


def _placing(none: Any) -> Callable[..., Any]:
    """Return what makes places NumPy's: what is worth no more than NaN is at none's, the first."""
    return lambda value, place: np.where(value != value, -1, np.where(value == none, 0, place))


# Complex numbers of one infinite part may be less and more than what NaN counts as.


def _placed(x: Any, place: Any, none: Any) -> Any:
    return np.where(x == x, x, none), place, x == x


def _first_least(a: Any, b: Any) -> Any:
    is_later = less(b[0], a[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _first_greatest(a: Any, b: Any) -> Any:
    is_later = less(a[0], b[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _place_of_complex(has_numbers: Any, place: Any) -> Any:
    return np.where(has_numbers, place, -1)


def _found(
    search: Callable[..., Any], ops: tuple[Any, Any], none: float, a: Any, axis: Any, out: Any,
    keepdims: Any, name: str,
) -> Any:  # fmt: skip
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), index_out(out, name)
    axis, kind = place_axis(a, axis, name), _results.dtype_of(a, name)
    if not _has_nan(a, name):
        return settled(search(a, axis, keepdims=keepdims), INDEX, out, name)
    x, worst = lazy_of(a), kind.type(none)
    at = places(x, axis, name)
    if kind.kind == "c":
        elements: Any = applied(_placed, (x, at, worst), name)
        _, *found = reduce(elements, None, ops[1], axis=axis, keepdims=keepdims)
        found, op = found[::-1], _place_of_complex
    else:
        found = [*reduce((a, at), None, ops[0], axis=axis, keepdims=keepdims)]
        op = _placing(worst)
    if is_there(found[0]):
        place = op(*found)
        if np.any(place < 0):
            raise ValueError("All-NaN slice encountered")
        return settled(place, INDEX, out, name)
    place = transform(op, *found, dtype=INDEX)
    return place if out is None else settled(place, INDEX, out, name)


_NOWHERE = "in device arrays the place in a slice without numbers is -1, and not a ValueError"
_OF_PLACES = "One reduction, of elements and their places"


@numpys(_OF_PLACES, few=_FEW, differs=_NOWHERE)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the least number: of the first one, NaN counting as infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmin([float("nan"), 3.0, 1.0]))
    2
    """
    ops = _place_of_least, _first_least
    return _found(extremes.argmin, ops, np.inf, a, axis, out, keepdims, "nanargmin")


@numpys(_OF_PLACES, few=_FEW, differs=_NOWHERE)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the greatest number: of the first one, NaN counting as -infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmax([float("nan"), 3.0, 1.0]))
    1
    """
    ops = _place_of_greatest, _first_greatest
    return _found(extremes.argmax, ops, -np.inf, a, axis, out, keepdims, "nanargmax")
