"""Reductions: sums, products, truth, counts, extremes and their indices, means and variances.

Each is one pass, conversions, masks and the replacement of NaN included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo import copy, count, reduce, transform
from gpualgo._algorithms import extremes
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.tokens import second
from gpualgo._pipeline import checks
from gpualgo.lazy import LazyArray, reductions
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy import _call, _folds
from gpualgo.numpy._call import ARRAY_TYPES, BOOL, UNSET, numpy_function
from gpualgo.numpy._orders import indices_along

# Of functions that ignore NaN.
_SKIPPING = {"few": _call.FEW_FOR_ONE_PASS, "differs": "no warnings for overflow"}


@numpy_function(
    "One reduction",
    ("sum", np.add, None, "Return the sum of the elements over axes.",
     "int(gnp.sum([1, 2, 3]))", "6", {"few": _call.FEW_FOR_ONE_PASS}),
    ("prod", np.multiply, None, "Return the product of the elements over axes.",
     "int(gnp.prod([1, 2, 3, 4]))", "24"),
    ("nansum", np.add, 0, "Return the sum of the elements over axes, ignoring NaN.",
     'float(gnp.nansum([1.0, float("nan"), 3.0]))', "4.0", _SKIPPING),
    ("nanprod", np.multiply, 1, "Return the product of the elements over axes, ignoring NaN.",
     'float(gnp.nanprod([2.0, float("nan"), 3.0]))', "6.0", _SKIPPING),
    orders=True, differs="no warnings for overflow or NaN",
)  # fmt: skip
def _sum_like(
    name: str, ufunc: np.ufunc, nan: Any, a: Any, axis: Any = None, dtype: Any = None,
    out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return a sum or product, which counts NaN as the number `nan` unless this is None."""
    a = _folds.nan_replaced(a, nan, name)
    return _folds.reduced(ufunc, a, name, axis, dtype, out, keepdims, initial, where)


@numpy_function(
    "One reduction",
    ("any", np.logical_or, "Return whether any element over axes is true.",
     "bool(gnp.any([0, 3, 0]))", "True"),
    ("all", np.logical_and, "Return whether all elements over axes are true.",
     "bool(gnp.all([1, 3, 0]))", "False"),
    few=_call.FEW_FOR_ONE_PASS, exact=_call.EXACT,
)  # fmt: skip
def _truth(
    name: str, ufunc: np.ufunc, a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET,
    *, where: Any = UNSET,
) -> Any:  # fmt: skip
    return _folds.reduced(ufunc, a, name, axis, None, out, keepdims, where=where)


@numpy_function("One reduction", few=_call.FEW_FOR_ONE_PASS, exact="?")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the number of elements over axes that are not zero.

    >>> int(gnp.count_nonzero([0, 3, 0, -1]))
    2
    """
    name = "count_nonzero"
    axis, keepdims = _folds.axis_of(axis, a.ndim, name), _folds.flag_of(keepdims, name)
    is_computed = isinstance(a, LazyArray)
    if is_computed:
        a = applied(np.bool_, (a,), name)
    if is_computed or _call.dtype_of(a, name) == BOOL:
        return reduce(a, axis=axis, keepdims=keepdims, dtype=np.int64)
    return count(a, _call.is_true, axis=axis, keepdims=keepdims)


# --- The least and the greatest elements, and their indices.


_NO_WARNINGS = {
    "differs": "no warnings for overflow, nor for slices of device arrays without numbers"
}


@numpy_function(
    "One reduction",
    ("max", np.maximum, "Return the largest element over axes; NaN if there is a NaN.",
     "int(gnp.max([3, 1, 4, 1]))", "4"),
    ("min", np.minimum, "Return the smallest element over axes; NaN if there is a NaN.",
     "int(gnp.min([3, 1, 4, 1]))", "1"),
    ("amax", np.maximum, "Return the largest element over axes, as `max`.",
     "int(gnp.amax([3, 1, 4, 1]))", "4"),
    ("amin", np.minimum, "Return the smallest element over axes, as `min`.",
     "int(gnp.amin([3, 1, 4, 1]))", "1"),
    ("nanmin", np.fmin,
     "Return the smallest element over axes, ignoring NaN; NaN if all elements are NaN.",
     'float(gnp.nanmin([2.0, float("nan"), 3.0]))', "2.0", _NO_WARNINGS),
    ("nanmax", np.fmax,
     "Return the largest element over axes, ignoring NaN; NaN if all elements are NaN.",
     'float(gnp.nanmax([2.0, float("nan"), 3.0]))', "3.0", _NO_WARNINGS),
    few=_call.FEW_FOR_ONE_PASS, exact=_call.EXACT,
)  # fmt: skip
def _extreme(
    name: str, ufunc: np.ufunc, a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return an extreme element; np.fmin and np.fmax ignore NaN."""
    result = _folds.reduced(ufunc, a, name, axis, None, out, keepdims, initial, where)
    if ufunc in (np.fmin, np.fmax) and _folds.is_on_host(result) and result.dtype.kind not in "biu":
        _folds.warn("All-NaN slice encountered", np.isnan(result))
    return result


@numpy_function("One reduction of (min, max) pairs", few=_call.FEW_FOR_ONE_PASS, exact=_call.EXACT)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET) -> Any:
    """Return the difference between the largest and the smallest element over axes.

    >>> int(gnp.ptp([3, 1, 4, 1]))
    3
    """
    keepdims, out = _folds.flag_of(keepdims, "ptp"), _call.out_of(out, "ptp")
    axis, kind = _folds.axis_of(axis, a.ndim, "ptp"), _call.dtype_of(a, "ptp")
    if 0 in a.shape:
        _folds.check_some(np.maximum, a.shape, axis, UNSET, "ptp", cure="")
    if kind.kind == "c":
        pair = zipped((a, a), "ptp")
        high, low = reduce(pair, None, _ends_of_complex, axis=axis, keepdims=keepdims)
    else:
        low, high = extremes.minmax(a, axis, keepdims=keepdims)
    if kind == BOOL:
        raise TypeError("ptp: bools have no differences; pass integers, or use any and all")
    wanted = kind if out is None else _call.check_cast(kind, out, "ptp")
    if kind != wanted and np.can_cast(kind, wanted):  # NumPy subtracts in out's dtype
        kind = wanted
        as_array = np.asarray if _folds.is_on_host(high) else lazy_of
        high, low = (as_array(one).astype(kind) for one in (high, low))
    if _folds.is_on_host(high):
        return _folds.cast_result(np.subtract(high, low), kind, out, "ptp")
    return transform(np.subtract, high, low, dtype=wanted, out=out)


def less(a: Any, b: Any) -> Any:
    """Return whether complex a precedes b: by real part, then imaginary part."""
    return (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))


def _is_higher(b: Any, a: Any) -> Any:
    """Return whether complex b replaces a as the greatest: it is greater, or the first NaN."""
    return (a == a) & ((b != b) | less(a, b))


def _is_lower(b: Any, a: Any) -> Any:
    return (a == a) & ((b != b) | less(b, a))


def _ends_of_complex(a: Any, b: Any) -> Any:
    return b[0] if _is_higher(b[0], a[0]) else a[0], b[1] if _is_lower(b[1], a[1]) else a[1]


def _pair_by(replaces: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operator of (element, index) pairs: b if its element replaces that of a."""

    def later(a: Any, b: Any) -> Any:
        is_later = replaces(b[0], a[0])
        return b[0] if is_later else a[0], b[1] if is_later else a[1]

    return later


# --- Indices of the least and the greatest numbers, ignoring NaN.

FEW_FOR_NAN_INDEX = 1 << 18  # with NaN NumPy needs two vectorised passes, this package one of pairs


_LOWER = _pair_by(lambda b, a: not (b != b or a <= b))
_HIGHER = _pair_by(lambda b, a: not (b != b or a >= b))


@functools.lru_cache(64, typed=True)
def _index_or_minus_one(filler: Any) -> Callable[..., Any]:
    """Return an operator for NumPy's index: -1 if all are NaN.

    An extreme that equals the filler for NaN has the first index, as in NumPy.
    """
    return lambda value, index: np.where(value != value, -1, np.where(value == filler, 0, index))


def _first_least(a: Any, b: Any) -> Any:
    # Complex numbers with an infinite part may be less than the filler for NaN: a flag goes along.
    is_later = less(b[0], a[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _first_greatest(a: Any, b: Any) -> Any:
    is_later = less(a[0], b[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


_PAIRS = ExpressionCache(lambda x, axis: zipped((x, indices_along(x.shape, axis)), ""))


def _index_of_number(
    search: Callable[..., Any], ops: tuple[Any, Any], filler: float, a: Any, axis: Any,
    keepdims: bool, name: str,
) -> Any:  # fmt: skip
    """Return the index of the least or greatest number, ignoring NaN."""
    kind = _call.dtype_of(a, name)
    if _call.is_host(a) and axis is None and kind.kind != "c":
        index = search(a, None, keepdims=keepdims)  # it stops at the first NaN
        value = a[np.unravel_index(np.ravel(index)[0], a.shape)]
        if value == value:
            return index
    number = kind.type(filler)
    index_of: Any
    if kind.kind == "c":
        x = lazy_of(a)
        operands = (x, indices_along(x.shape, axis), number)
        elements: Any = applied(
            lambda x, index, filler: (np.where(x == x, x, filler), index, x == x), operands, name
        )
        _, *parts = reduce(elements, None, ops[1], axis=axis, keepdims=keepdims)
        parts, index_of = parts[::-1], (lambda is_number, at: np.where(is_number, at, -1))
    else:
        parts = [*reduce(_PAIRS((a,), name, axis), None, ops[0], axis=axis, keepdims=keepdims)]
        index_of = _index_or_minus_one(number)
    if not _folds.is_on_host(parts[0]):
        return transform(index_of, *parts, dtype=_folds.INDEX)
    index = index_of(*parts)
    if np.any(index < 0):
        raise ValueError("All-NaN slice encountered")
    return index


_PAIRS_PASS = "One reduction of (element, index) pairs"
_NAN_OPTIONS: dict[str, Any] = {
    "passes": f"{_PAIRS_PASS}; host arrays are first searched for a NaN",
    "few": FEW_FOR_NAN_INDEX, "exact": "", "orders": True,
    "differs": "slices of device arrays without numbers give the index -1 (NumPy: ValueError)",
}  # fmt: skip


@numpy_function(
    _PAIRS_PASS,
    ("argmax", extremes.argmax, _pair_by(_is_higher), None,
     "Return the index of the first largest element, or of the first NaN.",
     "int(gnp.argmax([3, 4, 1, 4]))", "1"),
    ("argmin", extremes.argmin, _pair_by(_is_lower), None,
     "Return the index of the first smallest element, or of the first NaN.",
     "int(gnp.argmin([3, 1, 4, 1]))", "1"),
    ("nanargmin", extremes.argmin, (_LOWER, _first_least), np.inf,
     "Return the index of the first smallest element; NaN counts as infinity.",
     'int(gnp.nanargmin([float("nan"), 3.0, 1.0]))', "2", _NAN_OPTIONS),
    ("nanargmax", extremes.argmax, (_HIGHER, _first_greatest), -np.inf,
     "Return the index of the first largest element; NaN counts as -infinity.",
     'int(gnp.nanargmax([float("nan"), 3.0, 1.0]))', "1", _NAN_OPTIONS),
    few=_call.FEW_FOR_ONE_PASS, exact=_call.EXACT,
)  # fmt: skip
def _index(
    name: str, search: Callable[..., Any], op: Any, filler: Any, a: Any, axis: Any = None,
    out: Any = None, *, keepdims: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the index of an extreme; with a filler for NaN, of the extreme number."""
    kind = _call.dtype_of(a, name)
    skips_nan = filler is not None and _folds.has_nan(a, name)
    is_search = kind.kind != "c" and not skips_nan
    if is_search and out is None and keepdims is UNSET and (axis is None or type(axis) is int):
        is_plain = type(a) in ARRAY_TYPES or isinstance(a, LazyArray)
        if is_plain and 0 not in a.shape and len(a.shape) > 0:
            return search(a, axis)
    keepdims, out = _folds.flag_of(keepdims, name), _call.out_of(out, name)
    if out is not None and not np.can_cast(_call.dtype_of(out, name), _folds.INDEX, "safe"):
        raise TypeError(f"{name}: out has dtype {out.dtype}; pass one of {_folds.INDEX}")
    axis = checks.plain_axis(axis, name)
    axis = None if not a.ndim and axis in (0, -1) else axis
    if 0 in [a.shape[i] for i in checks.axes_of(axis, a.ndim, name)]:
        raise ValueError(f"{name}: x of shape {tuple(a.shape)} has no elements to choose from")
    if skips_nan:
        index = _index_of_number(search, op, filler, a, axis, keepdims, name)
    elif not is_search:
        pairs: Any = (lazy_of(a), indices_along(tuple(a.shape), axis))
        index = reduce(pairs, None, op, axis=axis, keepdims=keepdims)[1]
    else:
        is_direct = out is not None and not _folds.is_on_host(out)
        if is_direct and _call.dtype_of(out, name) == _folds.INDEX:
            return search(a, axis, keepdims=keepdims, out=out)
        index = search(a, axis, keepdims=keepdims)
    return _folds.cast_result(index, _folds.INDEX, out, name)


# --- Means and variances, of all elements or ignoring NaN.

_QUIET = "no warnings for overflow or NaN, nor for empty slices of device arrays"


def _dtype_of_mean(dtype: Any, name: str) -> Any:
    kind = dtypes.as_dtype(dtype, name)
    if kind.kind == "b":
        raise _call.NotTaken(f"{name}: a mean cannot be bool; leave dtype out, or use any or all")
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
        total = _folds.reduced(np.add, a, name, axis, sum_dtype, keepdims=keepdims)
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
    elif mean is UNSET and mask is None and isinstance(a, np.ndarray) and kind.kind != "c":
        acc, length = reductions.wide(kind), reductions.count_of(a.shape, axis, name)
        if a.size and acc.itemsize == 4 and length >= reductions.READ_TWICE:
            if np.can_cast(own, acc):
                mean = reductions.mean_by_distances(a, axis, acc, length, name)
            else:  # the distances might overflow
                mean = mean_of(a, axis, acc, None, True, None, name)
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


def _variance_around(
    a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, mask: Any, mean: Any,
    is_root: bool, name: str,
) -> Any:  # fmt: skip
    own = _call.dtype_of(a, name)
    acc = reductions.wide(own)
    if hasattr(mean, "dtype") and not isinstance(mean, np.generic):
        squares = reductions.SQUARES((a, _call.array_of(mean, f"{name}: mean")), name, acc)
    else:
        squares = reductions.squares(lazy_of(a), mean, acc)
    kind = reductions.float_of(own if acc != own else squares.dtype)
    if dtype is not None:
        kind = dtypes.as_dtype(dtype, name)
    wide = reductions.wide(kind)
    if mask is None:
        count: Any = np.intp(reductions.count_of(a.shape, axis, name))
        total = _folds.reduced(np.add, squares, name, axis, wide, keepdims=keepdims)
    else:
        count, total = reductions.counted_sums(squares, mask, axis, wide, keepdims)
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


_SKIPPING_MEANS = {
    "passes": "One reduction of (count, mean, sum of squares); with `mean`, of (count, squares)",
    "few": _call.FEW_FOR_ONE_PASS,
    "differs": "no warnings for overflow, nor for slices of device arrays without numbers",
}


@numpy_function(
    "One reduction",
    ("mean", False, "Return the mean of the elements over axes.",
     "float(gnp.mean([1, 2, 6]))", "3.0", {"few": _call.FEW_FOR_ONE_PASS, "differs": _QUIET}),
    ("nanmean", True, "Return the mean of the elements over axes, ignoring NaN.",
     'float(gnp.nanmean([1.0, float("nan"), 3.0]))', "2.0",
     {**_SKIPPING_MEANS, "passes": "One reduction of (count, sum)"}),
    orders=True,
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
    "One reduction of (count, mean, sum of squares); float32 on the host: two sums",
    ("var", False, False, "Return the variance of the elements over axes.",
     "float(gnp.var([1, 2, 3, 4]))", "1.25"),
    ("std", True, False, "Return the standard deviation of the elements over axes.",
     "float(gnp.std([1, 1, 5, 5]))", "2.0"),
    ("nanvar", False, True, "Return the variance of the elements over axes, ignoring NaN.",
     'float(gnp.nanvar([1.0, float("nan"), 3.0]))', "1.0", _SKIPPING_MEANS),
    ("nanstd", True, True, "Return the standard deviation of the elements over axes, ignoring NaN.",
     'float(gnp.nanstd([1.0, float("nan"), 3.0]))', "1.0", _SKIPPING_MEANS),
    few=1 << 18, orders=True, differs=_QUIET,
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


@numpy_function(
    "One reduction; with weights, of pairs", few=_call.FEW_FOR_ONE_PASS, orders=True,
    differs=f"{_QUIET}; weights on a GPU that sum to zero give NaN or infinity (NumPy: "
    "ZeroDivisionError)",
)  # fmt: skip
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
    pair: Any = _WEIGHTED((a, weights), name, acc)
    total, scale = reduce(pair, (0, 0), reductions.added, axis=axis, keepdims=keepdims)
    if _folds.is_on_host(scale) and np.any(scale == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = divided(total, scale, kind, None, name)
    return (result, _folds.cast_result(scale, kind, None, name)) if returned else result


def _weighted(x: Any, weights: Any, acc: Any) -> Any:
    operands = (reductions.lazy_as(x, acc), reductions.lazy_as(weights, acc))
    return applied(lambda x, weight: (x * weight, weight), operands, "average")


_WEIGHTED = ExpressionCache(_weighted)
