"""Means and variances, of all elements or ignoring NaN: one reduction each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import copy, reduce, transform
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy.combining import applied
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.tokens import second
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy import _call, _folds
from gpualgo.numpy._call import UNSET, NotTaken, array_of, numpy_function

# NumPy is faster on host arrays of fewer elements.
FEW = 1 << 13
QUIET = "no warnings for overflow or NaN, nor for empty slices of device arrays"


def _dtype_of_mean(dtype: Any, name: str) -> Any:
    kind = dtypes.as_dtype(dtype, name)
    if kind.kind == "b":
        raise NotTaken(f"{name}: a mean cannot be bool; leave dtype out, or use any or all")
    return kind


def mean_of(
    a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, mask: Any, name: str
) -> Any:  # fmt: skip
    """Return ``np.mean``, of the elements in a lazy mask if there is one."""
    own = _call.dtype_of(a, name)
    kind = reductions.float_of(own) if dtype is None else _dtype_of_mean(dtype, name)
    if dtype is None and out is not None:
        kind = _folds.wider(kind, _call.dtype_of(out, name))
    keepdims, axis = _folds.flag_of(keepdims, name), _folds.axis_of_means(axis, a.ndim, name)
    acc = reductions.wide(kind)
    if mask is None:
        count: Any = np.intp(reductions.count_of(a.shape, axis, name))
        # Without a dtype, sums of integers are wider than acc.
        sum_dtype = None if acc == own and acc.kind not in "biu" else acc
        total = _folds.reduced(np.add, a, axis, sum_dtype, None, keepdims, UNSET, UNSET, name)
    else:
        a, _ = _folds.real_of(a, own, kind)
        count, total = reductions.counted_sums(a, mask, axis, acc, keepdims)
    if _folds.is_on_host(count) and not (count if mask is None else np.all(count)):
        _folds.warn("Mean of empty slice", True)
    return divided(total, count, kind, out, name)


def divided(total: Any, count: Any, kind: Any, out: Any, name: str) -> Any:
    """Return sums divided by counts, as kind or in ``out=``."""
    if _folds.is_on_host(total):
        return _folds.cast_result(total / count, kind, out, name)
    wanted = kind if out is None else _call.dtype_of(out, name)
    own = _call.dtype_of(total, name)
    if _folds.is_on_host(count) and dtypes.kind(own) in "fc" and dtypes.can_cast(own, wanted):
        number = float(count)
        return transform(lambda s: s / number, total, dtype=wanted, out=out)
    if _folds.is_on_host(count):
        return _folds.cast_result(lazy_of(total) / float(count), kind, out, name)
    if own.kind == "c" != wanted.kind:
        return _folds.cast_result(lazy_of(total) / lazy_of(count), kind, out, name)
    return copy(_QUOTIENTS((total, count), name, wanted), out=out)


_QUOTIENTS = ExpressionCache(lambda total, count, wanted: reductions.lazy_as(total / count, wanted))


def variance_of(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, mask: Any, mean: Any,
    is_root: bool, name: str,
) -> Any:  # fmt: skip
    """Return ``np.var`` or ``np.std``, of the elements in a lazy mask if there is one."""
    own = _call.dtype_of(a, name)
    kind = reductions.float_of(own) if dtype is None else _dtype_of_mean(dtype, name)
    keepdims, axis = _folds.flag_of(keepdims, name), _folds.axis_of_means(axis, a.ndim, name)
    if not isinstance(ddof, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}: ddof must be a number, got {shown(ddof)}")
    if is_root and out is not None and _call.dtype_of(out, name).kind in "biu":
        raise TypeError(f"{name}: out has dtype {out.dtype}; a square root needs a float dtype")
    if mean is UNSET and (kind.kind in "biu" or (own.kind == "c" and kind.kind != "c")):
        mean = mean_of(a, axis, dtype, None, True, mask, name)  # NumPy rounds it, too
    if mean is not UNSET and mean is not None:
        return _variance_around(a, axis, dtype, out, ddof, keepdims, mask, mean, is_root, name)
    result = kind if dtype is not None else reductions.real_of(kind)
    stats = reductions.moments(a, mask, axis, kind, keepdims)
    count = stats[0] if mask is not None else np.intp(reductions.count_of(a.shape, axis, name))
    skips_nan = name.startswith("nan") and _folds.has_nan(a, name)
    is_known = _folds.is_on_host(count)
    freedom: Any = _degrees_of_freedom(count, ddof, skips_nan) if is_known else None
    if _folds.is_on_host(stats[-1]):
        return _folds.cast_result(reductions.spread_of(stats, freedom, is_root), result, out, name)
    wanted = result if out is None else _call.dtype_of(out, name)
    if mask is None and dtypes.can_cast(reductions.real_of(reductions.wide(kind)), wanted):
        op = reductions.spread(len(stats), float(freedom), is_root)
        return transform(op, *stats[1:], dtype=wanted, out=out)
    if mask is None or _folds.is_on_host(count):
        lazy = tuple(lazy_of(one) for one in stats)
        return _folds.cast_result(reductions.spread_of(lazy, freedom, is_root), result, out, name)
    return copy(_SPREADS(stats, name, ddof, type(ddof), is_root, wanted, skips_nan), out=out)


def _spreads(*args: Any) -> Any:
    """Return variances or standard deviations from moments with counts."""
    *stats, ddof, _, is_root, wanted, skips_nan = args
    freedom = _degrees_of_freedom(stats[0], ddof, skips_nan)
    return reductions.lazy_as(reductions.spread_of(tuple(stats), freedom, is_root), wanted)


_SPREADS = ExpressionCache(_spreads)


def _degrees_of_freedom(count: Any, ddof: Any, skips_nan: bool) -> Any:
    """Return the degrees of freedom; if none remain, 0, or NaN for functions that skip NaN."""
    is_on_host = _folds.is_on_host(count)
    freedom = (count if is_on_host else lazy_of(count)) - ddof
    message = f"Degrees of freedom <= 0 for slice{'.' if skips_nan else ''}"
    _folds.warn(message, is_on_host and freedom <= 0)
    return np.where(freedom > 0, freedom, np.nan) if skips_nan else np.maximum(freedom, 0)


def _squared(x: Any) -> Any:
    return x * x


def _squared_modulus(x: Any) -> Any:
    return x.real * x.real + x.imag * x.imag


def _variance_around(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, mask: Any, mean: Any,
    is_root: bool, name: str,
) -> Any:  # fmt: skip
    """Return variances around a given mean: sums of squared distances."""
    own, x = _call.dtype_of(a, name), lazy_of(a)
    if (acc := reductions.wide(own)) != own:
        x = x.astype(acc)
    if hasattr(mean, "dtype") and not isinstance(mean, np.generic):
        mean = lazy_of(array_of(mean, f"{name}: mean"))
    distance = np.subtract(x, mean)
    is_complex = distance.dtype.kind == "c"
    squares = applied(_squared_modulus if is_complex else _squared, (distance,), name)
    kind = reductions.float_of(own if acc != own else squares.dtype)
    if dtype is not None:
        kind = dtypes.as_dtype(dtype, name)
    if mask is None:
        count: Any = np.intp(reductions.count_of(a.shape, axis, name))
        total = _folds.reduced(
            np.add, squares, axis, reductions.wide(kind), None, keepdims, UNSET, UNSET, name
        )
    else:
        count, total = reductions.counted_sums(squares, mask, axis, reductions.wide(kind), keepdims)
    skips_nan = name.startswith("nan") and _folds.has_nan(a, name)
    freedom = _degrees_of_freedom(count, ddof, skips_nan)
    value = (total if _folds.is_on_host(total) else lazy_of(total)) / freedom
    if is_root and kind.kind in "biu":
        if value.ndim:
            raise TypeError(f"{name}: a square root is not {kind}; pass a float dtype")
        value = _folds.cast_result(value, kind, None, name)  # NumPy rounds it, too
        value = np.sqrt(value if _folds.is_on_host(value) else lazy_of(value))
    elif is_root:
        value = np.sqrt(value)
    return _folds.cast_result(value, kind, out, name)


def _mask_of_numbers(
    a: Any, where: Any, dtype: Any, out: Any, name: str, mean: Any = UNSET
) -> Any:  # fmt: skip
    """Return a mask of the elements that are numbers and in ``where=``; None for all."""
    mask = _folds.lazy_mask_of(where, a, name)
    if not _folds.has_nan(a, name):
        return mask
    if dtype is not None and dtypes.kind(dtypes.as_dtype(dtype, name)) not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and dtypes.kind(_call.dtype_of(out, name)) not in "fc":
        raise TypeError("If a is inexact, then out must be inexact")
    if mask is None and mean is UNSET and _call.dtype_of(a, name).kind != "c":
        return reductions.NUMBERS
    are_numbers = reductions.are_numbers(a)
    return are_numbers if mask is None else np.logical_and(are_numbers, mask)


_SKIPPING = {
    "passes": "One reduction of (count, mean, sum of squares); with `mean`, of (count, squares)",
    "few": 1 << 15,
    "differs": "no warnings for overflow, nor for slices of device arrays without numbers",
}


@numpy_function(
    "One reduction",
    ("mean", False, "Return the mean of the elements over axes.",
     "float(gnp.mean([1, 2, 6]))", "3.0", {"few": FEW, "differs": QUIET}),
    ("nanmean", True, "Return the mean of the elements over axes, ignoring NaN.",
     'float(gnp.nanmean([1.0, float("nan"), 3.0]))', "2.0",
     {**_SKIPPING, "passes": "One reduction of (count, sum)"}),
)  # fmt: skip
def _mean(
    name: str, skips_nan: bool, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = UNSET, *, where: Any = UNSET,
) -> Any:  # fmt: skip
    out = _call.out_of(out, name)
    if not skips_nan:
        mask = _folds.lazy_mask_of(where, a, name)
        return mean_of(a, axis, dtype, out, keepdims, mask, name)
    mask = _mask_of_numbers(a, where, dtype, out, name)
    with np.errstate(invalid="ignore", divide="ignore"):
        return mean_of(a, axis, dtype, out, keepdims, mask, name)


@numpy_function(
    "One reduction of (count, mean, sum of squares), without cancellation; with `mean`, of squares",
    ("var", False, False, "Return the variance of the elements over axes.",
     "float(gnp.var([1, 2, 3, 4]))", "1.25"),
    ("std", True, False, "Return the standard deviation of the elements over axes.",
     "float(gnp.std([1, 1, 5, 5]))", "2.0"),
    ("nanvar", False, True, "Return the variance of the elements over axes, ignoring NaN.",
     'float(gnp.nanvar([1.0, float("nan"), 3.0]))', "1.0", _SKIPPING),
    ("nanstd", True, True, "Return the standard deviation of the elements over axes, ignoring NaN.",
     'float(gnp.nanstd([1.0, float("nan"), 3.0]))', "1.0", _SKIPPING),
    few=1 << 16, differs=QUIET,
)  # fmt: skip
def _spread(
    name: str, is_root: bool, skips_nan: bool, a: Any, axis: Any = None, dtype: Any = None,
    out: Any = None, ddof: Any = 0, keepdims: Any = UNSET, *, where: Any = UNSET,
    mean: Any = UNSET, correction: Any = UNSET,
) -> Any:  # fmt: skip
    out = _call.out_of(out, name)
    if correction is not UNSET:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    options = axis, dtype, out, ddof, keepdims
    if not skips_nan:
        mask = _folds.lazy_mask_of(where, a, name)
        return variance_of(a, *options, mask, mean, is_root, name)
    mask = _mask_of_numbers(a, where, dtype, out, name, mean)
    with np.errstate(invalid="ignore", divide="ignore"):
        return variance_of(a, *options, mask, mean, is_root, name)


@numpy_function("One reduction; with weights, of pairs", few=FEW, differs=(
    f"{QUIET}; weights on a GPU that sum to zero give NaN or infinity (NumPy: ZeroDivisionError)"
))  # fmt: skip
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = UNSET
) -> Any:
    """Return the weighted mean of the elements over axes.

    >>> float(gnp.average([1, 2, 6], weights=[3, 2, 1]))
    2.1666666666666665
    """
    name = "average"
    keepdims = _folds.flag_of(keepdims, name)
    if axis is not None:
        axis = checks.plain_axes(axis, name)
    if weights is None:
        result = mean_of(a, axis, None, None, keepdims, None, name)
        if not returned:
            return result
        kind, count = _call.dtype_of(result, name), reductions.count_of(a.shape, axis, name)
        number = np.asarray(count).astype(kind)[()]
        if _folds.is_on_host(result):
            return result, number if not result.ndim else np.full(result.shape, number)
        return result, copy(applied(second, (result, number), name))
    weights = _folds.weights_of(weights, a, axis, name)
    kinds = [_call.dtype_of(x, name) for x in (a, weights)]
    kind = np.result_type(*kinds, *(["f8"] if kinds[0].kind in "biu" else []))
    acc = reductions.wide(kind)
    pair: Any = _PAIRS((a, weights), name, acc)
    total, scale = reduce(pair, (0, 0), reductions.added, axis=axis, keepdims=keepdims)
    if _folds.is_on_host(scale) and np.any(scale == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = divided(total, scale, kind, None, name)
    return (result, _folds.cast_result(scale, kind, None, name)) if returned else result


def _pairs(x: Any, weights: Any, acc: Any) -> Any:
    operands = (reductions.lazy_as(x, acc), reductions.lazy_as(weights, acc))
    return applied(lambda x, weight: (x * weight, weight), operands, "average")


_PAIRS = ExpressionCache(_pairs)
