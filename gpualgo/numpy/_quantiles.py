"""Medians, quantiles and percentiles, of all elements or ignoring NaN.

Elements of few ranks are selected; else, and to ignore NaN, rows are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import copy, lazy, reduce
from gpualgo._lazy import is_lazy
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.tokens import same
from gpualgo.lazy import reductions
from gpualgo.numpy import _call, _ranks
from gpualgo.numpy._call import UNSET, array_of, is_host, numpy_function
from gpualgo.numpy._ranks import Rows, at_ranks, has_nan, rows_of

_FEW_WITH_WEIGHTS = 1 << 15  # 4096: NumPy 75 µs, here 480; 2^20: 36 ms or more, 18 to 46
_FEW_WITH_NAN = 1 << 14  # one row of 4096: NumPy 20 µs, here 200; many rows: 126 and 210
_FEW_WITH_NAN_IN_ROWS = 1 << 9  # NumPy loops over rows in Python
_HALF = np.array(0.5)
_PASSES = "One selection per rank for few ranks, else one sort; one pass that looks for NaN"
_NAN_PASSES = "One reduction that counts the numbers, one sort, one gather"
_DIFFERS = (
    "differences of integers do not overflow; NaN results have the dtype of all others; weights "
    "are added in another order, and on a GPU invalid weights raise no error"
)
_NAN_DIFFERS = (
    "rows without a number give one warning per call, on a GPU none; the result's dtype does not "
    "depend on the first row"
)


def _finish(
    result: Any, rows: Rows, before: tuple[int, ...], keepdims: bool, out: Any, casting: str,
    where: str,
) -> Any:  # fmt: skip
    """Return a result in its shape, written to ``out`` if given; 0-d NumPy arrays as numbers."""
    shape = (*before, *(rows.keepdims_shape if keepdims else rows.shape))
    is_numpy = isinstance(result, (np.generic, np.ndarray))
    if tuple(result.shape) != shape:
        result = result.reshape(shape) if is_numpy else copy(lazy.asarray(result).reshape(shape))
    if out is None:
        return result[()] if is_numpy and not keepdims else result
    kind, wanted = _call.dtype_of(result, where), tuple(out.shape)
    kind = _call.check_cast(kind, out, where, casting)
    is_exact = where == "median" or not rows.length or 0 in rows.shape
    if wanted != shape and (is_exact or not _broadcasts(shape, wanted)):
        raise ValueError(f"{where}: out has shape {wanted}, the result has {shape}")
    if is_numpy and is_host(out):
        np.copyto(out, result, casting="unsafe")
        return out
    return copy(lazy.asarray(result).astype(kind).broadcast_to(wanted), out=out)


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether NumPy broadcasts a result to out's shape: its last step is an addition."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def fractions_of(q: Any, percent: bool, where: str) -> Any:
    """Return q as an array of fractions; q on a GPU stays there and is not validated."""
    is_known = isinstance(q, (np.ndarray, np.generic, list, tuple, int, float))
    q = np.asarray(q) if is_known else array_of(q, f"{where}: q")
    kind, is_on_host = _call.dtype_of(q, where), is_host(q)
    if kind.kind not in "biuf":
        raise TypeError(f"{where}: q must be real numbers, got dtype {kind}")
    if is_on_host:
        if percent:
            q = np.asarray(np.true_divide(q, 100))  # the oldest supported NumPy lacks out=...
        if not np.all((q >= 0) & (q <= 1)):
            most = 100 if percent else 1
            raise ValueError(f"{where}: q must be in the range [0, {most}], got {q * most}")
    if len(q.shape) > 2:
        raise ValueError(f"{where}: q must be a number or have one axis, got {len(q.shape)}")
    if percent and not is_on_host:
        q = lazy.asarray(q) / 100
    return copy(q) if is_lazy(q) else q


_NUMBERS = ExpressionCache(reductions.are_numbers)


def _lengths_of(rows: Rows) -> Any:
    """Return the count of numbers in each row; None if it is known that no element is NaN."""
    if not has_nan(rows.dtype):
        return None
    lengths = reduce(_NUMBERS((rows.x,), "quantiles"), axis=rows.axis, dtype=np.int64)
    if not is_host(rows.x):
        return lengths
    fewest = np.min(lengths, initial=rows.length)
    if not fewest and np.size(lengths):
        _call.warn("All-NaN slice encountered")
    return None if fewest == rows.length else np.asarray(lengths)


def _of_rows(rows: Rows, q: Any, method: str, is_weak: bool, where: str) -> Any:
    """Return quantiles of rows in the shape of q and the rows; NaN for rows that have one."""
    if not is_host(q):
        return _ranks.quantiles(rows, q, method, False, None, where)
    if not q.ndim:
        ranks = _ranks.single_ranks(rows.length, q.item(), q.dtype, method, is_weak, rows.dtype)
        element, last = at_ranks(rows, [int(ranks.low), int(ranks.high)])
        return _single_quantile(rows, method, element, last, ranks, (), None)
    ranks = _ranks.ranks_of(rows.length, q, method, is_weak, rows.dtype)
    out = _call.new(rows.x, (*q.shape, *rows.shape), ranks.kind, where)
    if not q.size:
        return out
    element, last = at_ranks(rows, [*ranks.low.ravel().tolist(), *ranks.high.ravel().tolist()])
    for index in np.ndindex(q.shape):
        target = out[(*index, ...)] if is_host(out) else out[index]
        _single_quantile(rows, method, element, last, ranks, index, target)
    return out


def _single_quantile(
    rows: Rows, method: str, element: Any, last: Any, ranks: Any, index: Any, out: Any
) -> Any:
    low = element(int(ranks.low[index]))
    if ranks.fraction is None:
        return _ranks.interpolate(same, (low,), (), last, ranks.kind, out, rows, rows.dtype)
    high = element(int(ranks.high[index]))
    weights = ranks.fraction[index], ranks.complement[index]
    op, wide = _ranks.lerp_of(rows.dtype, ranks.kind, method)
    return _ranks.interpolate(op, (low, high), weights, last, ranks.kind, out, rows, wide)


def _mean_of_nothing(rows: Rows, where: str) -> Any:
    if np.prod(rows.shape, dtype=object):
        _call.warn("Mean of empty slice")
    kind = _ranks.result_dtype(_HALF.dtype, _ranks.MEDIAN, False, rows.dtype)
    nan = complex(np.nan, np.nan) if kind.kind == "c" else np.nan
    return _call.copy_to_device_of(rows.x, np.full(rows.shape, nan, kind), where)


def _nan_casting(rows: Rows) -> str:
    """Return how results are cast to ``out``: for no elements as in NumPy's stricter `nanmean`."""
    is_empty = not rows.length or 0 in rows.shape
    return "same_kind" if is_empty and rows.dtype.kind in "fc" else "unsafe"


def _is_left_to_numpy(
    a: Any, own: Any, q: Any, axis: Any, method: Any, weights: Any, skips_nan: bool
) -> bool:
    """Return whether NumPy computes the result as well: for few floats, and for chosen integers.

    Interpolation between small integers overflows in NumPy.
    """
    if not is_host(a):
        return False
    if skips_nan:
        few = _FEW_WITH_NAN if axis is None else _FEW_WITH_NAN_IN_ROWS
        return _call.is_few(a.size, few if weights is None else _FEW_WITH_WEIGHTS)
    if hasattr(q, "dtype") and _ranks.counting(q, a.size) is not q:
        return False
    if weights is not None:
        return _call.is_few(a.size, _FEW_WITH_WEIGHTS)
    if own.kind == "f":
        return _call.is_few(a.size, _call.FEW)
    is_chosen_integer = own.kind in "iu" and own.itemsize > 1 and method in _ranks.DISCRETE_METHODS
    return is_chosen_integer and _call.is_few(a.size, _call.ALL)


def _define(
    skips_nan: bool, passes: str, differs: str, median_differs: str, *rows: tuple[Any, ...]
) -> None:
    """Define quantiles and percentiles by the first rows, and the median by the last."""
    unset = UNSET if skips_nan else False

    @numpy_function(passes, *rows[:-1], few=0, differs=differs)
    def quantile(
        name: str, is_percent: bool, a: Any, q: Any, axis: Any = None, out: Any = None,
        overwrite_input: Any = False, method: Any = "linear", keepdims: Any = unset, *,
        weights: Any = None,
    ) -> Any:  # fmt: skip
        own, where, skips = _call.dtype_of(a, name), name, skips_nan
        keepdims = keepdims is not UNSET and bool(keepdims)
        is_empty = 0 in tuple(a.shape)
        if skips and weights is None and not has_nan(own) and not is_empty:
            where, skips = name.removeprefix("nan"), False
        may_delegate = not skips or weights is not None or has_nan(own)
        may_delegate &= out is None or where == name  # NumPy's casts to out differ
        if may_delegate and _is_left_to_numpy(a, own, q, axis, method, weights, skips):
            native = getattr(np, where)
            return native(a, q, axis, out, False, method, keepdims, weights=weights)
        if own.kind == "c":
            raise TypeError(f"{where}: a must be an array of real numbers, got dtype {own}")
        out = _call.out_of(out, where)
        is_weak = type(q) in (int, float)
        fractions = fractions_of(q, is_percent, where)
        _ranks.check(method, where)
        rows, shape = rows_of(a, axis, where), tuple(fractions.shape)
        if skips and is_empty:  # whatever q is, as in NumPy
            value, shape = _mean_of_nothing(rows, where), ()
        elif weights is not None:
            value = _ranks.weighted_quantiles(
                a, rows, fractions, axis, method, weights, skips, where
            )
        elif skips and (lengths := _lengths_of(rows)) is not None:
            value = _ranks.nan_quantiles(rows, fractions, method, is_weak, lengths, where)
        else:
            is_bool = own.kind == "b" and not skips  # NumPy does not subtract bools
            if is_bool and not _ranks.is_picking(_call.dtype_of(fractions, where), method):
                raise TypeError(f"{where}: bools cannot be interpolated; use method='nearest'")
            if not rows.length and (has_nan(own) or 0 not in shape):
                raise IndexError(f"{where}: rows of a have no elements")
            value = _of_rows(rows, fractions, method, is_weak, where)
        casting = _nan_casting(rows) if skips_nan else "same_kind"
        return _finish(value, rows, shape, keepdims, out, casting, where)

    @numpy_function(passes, rows[-1], few=0, differs=median_differs)
    def median(
        name: str, a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
        keepdims: Any = unset,
    ) -> Any:  # fmt: skip
        keepdims = keepdims is not UNSET and bool(keepdims)
        out = _call.out_of(out, name)
        few = _FEW_WITH_NAN if skips_nan else _call.FEW
        if is_host(a) and _call.has_order(a.dtype) and _call.is_few(a.size, few):
            return getattr(np, name)(a, axis, out, False, keepdims)
        rows = rows_of(a, axis, name)
        if not rows.length or (skips_nan and 0 in rows.shape):
            value = _mean_of_nothing(rows, name)
        elif skips_nan and (lengths := _lengths_of(rows)) is not None:
            value = _ranks.nan_quantiles(rows, _HALF, _ranks.MEDIAN, False, lengths, name)
        else:
            value = _of_rows(rows, _HALF, _ranks.MEDIAN, False, name)
        casting = _nan_casting(rows) if skips_nan else "unsafe"
        return _finish(value, rows, (), keepdims, out, casting, name)


_define(
    False, _PASSES, _DIFFERS, "",
    ("quantile", False, "Return the q-th quantiles along axes; NaN for a row that has a NaN.",
     "gnp.quantile([4.0, 1.0, 3.0], [0.5, 0.75])", "array([3. , 3.5])"),
    ("percentile", True, "Return the q-th percentiles along axes; NaN for a row that has a NaN.",
     "float(gnp.percentile([4.0, 1.0, 3.0], 75))", "3.5"),
    ("median", "Return the medians along axes; NaN for a row that has a NaN.",
     "float(gnp.median([4, 1, 3, 2]))", "2.5"),
)  # fmt: skip
_define(
    True, _NAN_PASSES, _NAN_DIFFERS, _NAN_DIFFERS,
    ("nanquantile", False, "Return the q-th quantiles along axes, ignoring NaN.",
     'float(gnp.nanquantile([4.0, float("nan"), 1.0, 3.0], 0.75))', "3.5"),
    ("nanpercentile", True, "Return the q-th percentiles along axes, ignoring NaN.",
     'float(gnp.nanpercentile([4.0, float("nan"), 1.0, 3.0], 75))', "3.5"),
    ("nanmedian", "Return the medians along axes, ignoring NaN.",
     'float(gnp.nanmedian([4.0, float("nan"), 1.0, 3.0]))', "3.0"),
)  # fmt: skip
