"""Medians, quantiles and percentiles that ignore NaN: one sort, and a count for each row."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.reduce import reduce
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._ranks import computed, quantiles
from gpualgo.numpy._ranks import quantile_methods as methods
from gpualgo.numpy._ranks.computed import Rows, has_nan, rows_of

_UNSET: Any = np._NoValue
_PASSES = "One reduction that counts the numbers, one sort, one gather"
_DIFFERS = (
    "rows without a number give one warning per call, on a GPU none; the result's dtype does not "
    "depend on the first row"
)


_FEW = 1 << 14  # one row of 4096: NumPy 20 µs, here 200; many rows: 126 and 210


def _few(axis: Any, weights: Any) -> int:
    """Return below how many elements NumPy's quantiles are faster; it loops over rows in Python."""
    if weights is not None:
        return quantiles.FEW_WITH_WEIGHTS
    return _FEW if axis is None else 1 << 9


def _is_number(a: Any) -> Any:
    return a == a


_NUMBERS = ExpressionCache(lambda x: lazy.transform(_is_number, x))


def _lengths_of(rows: Rows) -> Any:
    """Return the count of numbers in each row; None if it is known that no element is NaN."""
    if not has_nan(rows.dtype):
        return None
    lengths = reduce(_NUMBERS((rows.x,), "quantiles"), axis=rows.axis, dtype=np.int64)
    if not is_host(rows.x):
        return lengths
    fewest = np.min(lengths, initial=rows.length)
    if not fewest and np.size(lengths):
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=5)
    return None if fewest == rows.length else np.asarray(lengths)


def _is_empty(rows: Rows) -> bool:
    return not rows.length or 0 in rows.shape


def _casting(rows: Rows) -> str:
    """Return how results become ``out=``: of nothing as in NumPy's stricter `nanmean`."""
    return "same_kind" if _is_empty(rows) and rows.dtype.kind in "fc" else "unsafe"


def nan_quantiles(
    a: Any, q: Any, axis: Any, out: Any, method: Any, keepdims: Any, weights: Any, percent: bool,
    where: str,
) -> Any:  # fmt: skip
    """Return quantiles of the numbers in rows."""
    a = array_of(a, f"{where}: a")
    own = function.dtype_of(a, where)
    if not has_nan(own) and weights is None:
        name = "percentile" if percent else "quantile"
        if 0 not in tuple(a.shape):
            return getattr(quantiles, name)(a, q, axis, out, False, method, keepdims)
    elif is_host(a) and function.is_few(a.size, _few(axis, weights)):
        return getattr(np, where)(a, q, axis, out, False, method, keepdims, weights=weights)
    if own.kind == "c":
        raise TypeError(f"{where}: a must be an array of real numbers, got dtype {own}")
    out = function.out_of(out, where)
    is_weak = type(q) in (int, float)
    fractions = quantiles.fractions_of(q, percent, where)
    methods.check(method, where)
    rows = rows_of(a, axis, where)
    if _is_empty(rows):  # whatever q is, as in NumPy
        casting, empty = _casting(rows), quantiles.of_nothing(rows, where)
        return quantiles.finished(empty, rows, (), keepdims, out, casting, where)
    shape = tuple(fractions.shape)
    if weights is not None:
        value = computed.weighted_quantiles(a, fractions, axis, method, weights, True, where)
        return quantiles.finished(value, rows, shape, keepdims, out, "unsafe", where)
    lengths = _lengths_of(rows)
    if lengths is None:
        value = quantiles.of_rows(rows, fractions, method, is_weak, where)
    elif is_host(fractions) and computed.is_small(rows, fractions.size):
        value = computed.few_quantiles(rows, fractions, method, is_weak, lengths)
    else:
        on_device = fractions
        if not is_host(rows.x) and is_host(fractions):
            on_device = function.copy_to_device_of(rows.x, fractions, where)
        value = computed.quantiles(rows, on_device, shape, method, is_weak, lengths, where)
    return quantiles.finished(value, rows, shape, keepdims, out, "unsafe", where)


@numpys(_PASSES, few=0, differs=_DIFFERS)
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = _UNSET, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Return the q-th quantiles along axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanquantile([4.0, float("nan"), 1.0, 3.0], 0.75))
    3.5
    """
    return nan_quantiles(a, q, axis, out, method, keepdims, weights, False, "nanquantile")


@numpys(_PASSES, few=0, differs=_DIFFERS)
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = _UNSET, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Return the q-th percentiles along axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanpercentile([4.0, float("nan"), 1.0, 3.0], 75))
    3.5
    """
    return nan_quantiles(a, q, axis, out, method, keepdims, weights, True, "nanpercentile")


@numpys(_PASSES, few=0, differs=_DIFFERS)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = _UNSET
) -> Any:
    """Return the medians along axes, ignoring NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.nanmedian([4.0, float("nan"), 1.0, 3.0]))
    3.0
    """
    where = "nanmedian"
    a = array_of(a, f"{where}: a")
    if is_host(a) and function.is_few(a.size, _FEW):
        return np.nanmedian(a, axis, out, False, keepdims)
    out = function.out_of(out, where)
    rows = rows_of(a, axis, where)
    if _is_empty(rows):
        value = quantiles.of_nothing(rows, where)
    elif (lengths := _lengths_of(rows)) is None:
        value = quantiles.middles(rows)
    else:
        value = computed.medians(rows, lengths, quantiles.mean_dtype(rows.dtype))
    return quantiles.finished(value, rows, (), keepdims, out, _casting(rows), where)
