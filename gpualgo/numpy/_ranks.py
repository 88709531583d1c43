"""Quantiles of rows: their ranks by NumPy's methods, the elements of these, interpolation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo import copy, inclusive_scan, kth_value, lazy, merge_sort, radix_sort, reduce, transform
from gpualgo._algorithms.top_k.tuning import LONG, SMALL, SORT, strategy_of_ranks
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.tokens import same, second
from gpualgo._pipeline import checks
from gpualgo.numpy import _call, _folds, _orders
from gpualgo.numpy._call import Dtype, NotTaken, array_of, is_host

# --- Positions of quantiles among sorted elements for each method, bit for bit as in NumPy.
#
# R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
# 50(4), 1996, doi:10.1080/00031305.1996.10473566. Each function takes the number n of elements,
# n - 1 and q in one dtype: host arrays, or numbers in a kernel.


def _closest_observation(n: Any, most: Any, q: Any) -> Any:
    position = n * q - 1 - 0.5
    below = np.floor(position)
    is_even = (position - below == 0) & (below % 2 == 1)
    return np.maximum(np.where(is_even, below, below + 1), 0)


def _linear(n: Any, most: Any, q: Any) -> Any:
    return most * q


MEDIAN = "median"  # of q = 0.5, not a caller's: positions are linear, between two is their mean

# Methods that choose one element.
DISCRETE_METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "inverted_cdf": lambda n, most, q: np.maximum(np.ceil(n * q - 1), 0),
    "closest_observation": _closest_observation,
    "lower": lambda n, most, q: np.floor(most * q),
    "higher": lambda n, most, q: np.ceil(most * q),
    "nearest": lambda n, most, q: np.rint(most * q),
}
# Methods that interpolate between two elements.
INTERPOLATING_METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda n, most, q: n * q - 1,
    "interpolated_inverted_cdf": lambda n, most, q: n * q + (0 + q * 0) - 1,
    "hazen": lambda n, most, q: n * q + (0.5 + q * (1 - 0.5 - 0.5)) - 1,
    "weibull": lambda n, most, q: n * q + (0 + q * 1) - 1,
    "linear": _linear,
    "median_unbiased": lambda n, most, q: n * q + (1 / 3.0 + q * (1 - 1 / 3.0 - 1 / 3.0)) - 1,
    "normal_unbiased": lambda n, most, q: n * q + (3 / 8.0 + q * (1 - 3 / 8.0 - 3 / 8.0)) - 1,
    "midpoint": lambda n, most, q: 0.5 * (np.floor(most * q) + np.ceil(most * q)),
}


# The interpolation fraction, from a position and its fractional part, if it is another.
_FRACTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda position, fraction: np.where(fraction == 0, 0.5, 1.0),
    "midpoint": lambda position, fraction: np.where(position % 1 == 0, 0.0, 0.5),
}


MOST_FRACTION = 2.0  # at the last element, where it has no effect: float16 cannot hold more


@functools.cache
def ranks_by(method: str) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a function for the ranks on both sides of a quantile and the fraction between them.

    It takes host arrays, or numbers in a kernel.
    """
    if method in DISCRETE_METHODS:
        rank_of = DISCRETE_METHODS[method]

        def rank(count: Any, n: Any, most: Any, q: Any) -> tuple[Any, Any, Any]:
            found = np.clip(np.int64(rank_of(n, most, q)), 0, np.maximum(count - 1, 0))
            return found, found, 0.0

        return rank
    position_of = INTERPOLATING_METHODS.get(method, _linear)
    fraction_of = _FRACTIONS.get(method, lambda position, fraction: fraction)

    def ranks(count: Any, n: Any, most: Any, q: Any) -> tuple[Any, Any, Any]:
        position = position_of(n, most, q)
        is_last, is_before = position >= most, position < 0
        below = np.where(is_last, -1, np.where(is_before, 0, np.floor(position)))  # -1 as in NumPy
        low = np.where(is_last, np.maximum(count - 1, 0), np.int64(below))
        fraction = np.minimum(fraction_of(position, position - below), MOST_FRACTION)
        return low, np.where(is_last | is_before, low, low + 1), fraction

    return ranks


class Ranks(NamedTuple):
    """Ranks and fractions of quantiles; each array has the shape of q."""

    low: Any
    high: Any
    fraction: Any  # of interpolation; None: the element itself
    complement: Any  # 1 - fraction
    kind: Dtype  # of the result


def check(method: Any, where: str) -> None:
    if method not in DISCRETE_METHODS and method not in INTERPOLATING_METHODS:
        names = ", ".join([*DISCRETE_METHODS, *INTERPOLATING_METHODS])
        raise ValueError(f"{where}: {shown(method)} is unknown; use one of {names}")


@functools.lru_cache(256, typed=True)
def single_ranks(count: int, q: Any, kind: Dtype, method: str, is_weak: bool, own: Dtype) -> Ranks:
    """Return the ranks of one quantile, a number of a dtype."""
    return ranks_of(count, np.asarray(q, kind), method, is_weak, own)


def ranks_of(count: Any, q: Any, method: str, is_weak: bool, own: Dtype) -> Ranks:
    """Return the ranks of quantiles of `count` elements of a dtype.

    An array of counts is broadcast against q; for a count of 0 the rank is 0.
    """
    count, kind = np.asarray(count), result_dtype(q.dtype, method, is_weak, own)
    if method == MEDIAN:
        low, high, half = (count - (count > 0)) // 2, count // 2, 0.5 * (1 - count % 2)
        is_one = not half.ndim and not half  # of an odd number
        return Ranks(low, high, None if is_one else half, half, kind)
    if q.dtype.kind in "biu":
        is_element = own.kind in "biu" or is_picking(q.dtype, method)
        method, q = ("lower" if is_element else method), q.astype(np.float64)
    q_dtype, q = q.dtype, counting(q, count.max(initial=0))
    with np.errstate(all="ignore"):
        n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
        low, high, fraction = map(np.asarray, ranks_by(method)(count, n, most, q))
    if method in DISCRETE_METHODS:
        return Ranks(low, high, None, None, kind)
    fraction = fraction.astype(q_dtype)
    if is_weak:
        wide = np.asarray(fraction, np.float64)
        return Ranks(low, high, wide.astype(kind), (1 - wide).astype(kind), kind)
    return Ranks(low, high, fraction, np.asarray(1 - fraction), kind)


_MOST_IN_FLOAT16 = 65_519  # larger integers are infinite in float16


def counting(q: Any, length: int) -> Any:
    """Return q in a dtype that can represent ranks of so many elements.

    NumPy computes ranks in q's dtype: float16 gives NaN or the last element for more elements.
    """
    is_beyond = q.dtype == np.float16 and length > _MOST_IN_FLOAT16
    return q.astype(np.float64) if is_beyond else q


def is_picking(q: Dtype, method: str) -> bool:
    """Return whether results are elements, without interpolation, for q of a dtype."""
    return method in DISCRETE_METHODS or (method == "linear" and q.kind in "biu")


def result_dtype(q: Dtype, method: str, is_weak: bool, own: Dtype) -> Dtype:
    """Return the dtype of quantiles by NumPy's arithmetic, for q of a dtype."""
    if method == MEDIAN:
        return np.dtype(np.float64) if own.kind in "biu" else own
    if is_picking(q, method):
        return own
    if is_weak:
        return np.dtype((np.zeros(1, own) * 0.5).dtype)
    if q.kind in "biu":
        integer_methods = ("averaged_inverted_cdf", "interpolated_inverted_cdf", "weibull")
        q = np.dtype(np.int64 if method in integer_methods else np.float64)
    return np.dtype((np.zeros(1, own) * np.zeros(1, q)).dtype)


# --- Elements of given ranks along axes: by selection for few ranks, else by one sort.


class Rows(NamedTuple):
    """An array and the axis (None: all axes) along which ranks are counted."""

    x: Any
    dtype: Dtype
    axis: int | None
    length: int  # of a row
    shape: tuple[int, ...]  # of the other axes
    keepdims_shape: tuple[int, ...]  # the same with reduced axes of length 1


def rows_of(a: Any, axis: Any, where: str) -> Rows:
    """Return an array as rows along axes; several axes are moved to the end and merged."""
    shape = tuple(a.shape)
    axes = checks.axes_of(checks.plain_axes(axis, where), len(shape), where)
    count = math.prod(shape[i] for i in axes)
    other_shape = tuple(n for i, n in enumerate(shape) if i not in axes)
    keepdims_shape = tuple(1 if i in axes else n for i, n in enumerate(shape))
    dtype = _call.dtype_of(a, where)
    if len(axes) == len(shape):
        along: int | None = None
    elif len(axes) == 1:
        (along,) = axes
    else:
        order = [i for i in range(len(shape)) if i not in axes]
        a = lazy.asarray(_call.aligned(a)).transpose(*order, *axes).reshape(*other_shape, count)
        along = len(other_shape)
    if is_lazy(a):
        a = copy(a)  # else each read computes it
    return Rows(a, dtype, along, count, other_shape, keepdims_shape)


def has_nan(dtype: Dtype) -> bool:
    return dtypes.kind(dtype) in "fc"


def at_ranks(rows: Rows, ranks: Sequence[int]) -> tuple[Callable[[int], Any], Any]:
    """Return a function from rank to elements, and an array with the NaN of rows (or None)."""
    x, axis, dtype = rows.x, rows.axis, rows.dtype
    wanted, final = sorted(set(ranks)), rows.length - 1  # a NaN is the final element
    if dtype.kind != "c" and _is_selected(rows, len(wanted)):
        if _takes_final(rows, wanted):
            wanted = sorted({*wanted, final})
        selected, last = kth_value(x, wanted, axis=axis), None
        index_of = {rank: i for i, rank in enumerate(wanted)}
        if final in index_of:
            last = selected[index_of[final]]
        elif has_nan(dtype):
            last = reduce(x, None, np.maximum, axis=axis)
        return lambda rank: selected[index_of[rank]], last if has_nan(dtype) else None
    ordered, leading = sorted_rows(rows), (slice(None),) * (axis or 0)
    last = ordered[(*leading, final)] if has_nan(dtype) else None
    return lambda rank: ordered[(*leading, rank)], last


def sorted_rows(rows: Rows) -> Any:
    x, axis = rows.x, rows.axis
    if rows.dtype.kind != "c":
        return radix_sort(x, axis=axis)
    if axis is None and len(x.shape) != 1:
        x = _call.flattened(x)
    return merge_sort(x, less=_orders.complex_less, axis=0 if axis is None else axis)


# ms by selection / by a sort, on two cores with AVX-512, 2^20 float32, float64, int16: one row
# 1.3 / 2.6, 1.3 / 3.2, 0.3 / 0.4; rows of 1024 0.9 / 0.7, 1.2 / 1.4, 0.4 / 2.4; columns
# 1.5 / 9.6, 1.6 / 13, 0.8 / 7.4. Each further rank costs the same again, in short rows half.
_LONG = 1 << 16
_MOST_RANKS = 8  # on a GPU


def _is_selected(rows: Rows, num_ranks: int) -> bool:
    """Return whether selections of so many ranks are faster than a sort."""
    if not is_host(rows.x):
        return num_ranks <= _MOST_RANKS
    if rows.length < _LONG:
        if rows.axis is not None and rows.axis != len(rows.x.shape) - 1:
            return num_ranks <= 6
        is_short = rows.dtype.kind in "iu" and rows.dtype.itemsize == 2
        return num_ranks <= 2 and (is_short or rows.dtype.itemsize == 8)
    return rows.dtype.itemsize > 1 and num_ranks <= rows.dtype.itemsize // 4


def _takes_final(rows: Rows, ranks: Sequence[int]) -> bool:
    """Return whether one more rank costs no more than a reduction, which reads the rows again."""
    if is_host(rows.x) or not has_nan(rows.dtype) or len(ranks) >= _MOST_RANKS:
        return False
    strategy = strategy_of_ranks(
        max(1, math.prod(rows.shape)), rows.length, rows.dtype.itemsize, ranks
    )
    return strategy in (LONG, SMALL, SORT)


# --- Interpolation between elements of two ranks: the operators, and the choice of backend.


def _lerp(a: Any, b: Any, fraction: Any, complement: Any) -> Any:
    return np.where(fraction >= 0.5, b - (b - a) * complement, a + (b - a) * fraction)


def _lerp_long(a: Any, b: Any, fraction: Any, complement: Any) -> Any:
    distance = np.float64(np.uint64(b) - np.uint64(a))  # int64 may overflow
    return np.where(fraction >= 0.5, b - distance * complement, a + distance * fraction)


def _middle(a: Any, b: Any, fraction: Any, complement: Any) -> Any:
    return np.where(fraction == 0.5, (a + b) / 2, a)


# The same operators, with NaN for rows that have one.


def nan_or(value: Any, last: Any) -> Any:
    return np.where(last != last, last, value)


def _or_nan(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, fraction, complement, last: nan_or(op(a, b, fraction, complement), last)


_OR_NAN = {_lerp: _or_nan(_lerp), _middle: _or_nan(_middle), same: nan_or}


def interpolate(
    op: Any, elements: tuple[Any, ...], numbers: tuple[Any, ...], last: Any, kind: Any, out: Any,
    rows: Rows, wide: Any,
) -> Any:  # fmt: skip
    """Return op of elements (cast to `wide`) and numbers, with NaN for rows that have one."""
    is_wide = wide == rows.dtype
    if is_small(rows, 1):
        with np.errstate(all="ignore"):
            value = op(*elements if is_wide else [one.astype(wide) for one in elements], *numbers)
            value = np.asarray(value if last is None else nan_or(value, last), kind)
        if out is not None:
            out[...] = value
        return value
    if is_wide:
        args = (*elements, *numbers)
        if last is not None:
            op, args = _OR_NAN[op], (*args, last)
        return transform(op, *args, dtype=kind, out=out)
    inputs = elements if last is None else (*elements, last)
    number_types = tuple(map(type, numbers))
    value = _WIDE(inputs, "quantiles", op, numbers, number_types, wide, last is not None)
    return transform(same, value, dtype=kind, out=out)


def _convert_and_apply(*args: Any) -> Any:
    *elements, op, numbers, _, wide, has_last = args
    last = elements.pop() if has_last else None
    value = lazy.transform(op, *[one.astype(wide) for one in elements], *numbers)
    return value if last is None else lazy.transform(nan_or, value, last)


_WIDE = ExpressionCache(_convert_and_apply)


def lerp_of(own: Any, kind: Any, method: str) -> tuple[Any, Any]:
    """Return NumPy's `_lerp` between elements, and the dtype to which these are converted."""
    if method == MEDIAN:
        return _middle, np.dtype(np.float32) if kind.itemsize == 2 else kind
    if own.kind in "iu":
        return (_lerp_long, own) if own.itemsize == 8 else (_lerp, kind)
    return _lerp, own


_SMALL = 1 << 16


class SortedRows:
    """Sorted rows in an array of shape (outer, length, inner), sorted along the middle axis."""

    def __init__(self, ordered: Any, outer: int, length: int, inner: int) -> None:
        self.outer, self.length, self.inner = outer, length, inner
        self.flat = lazy.asarray(ordered).reshape(-1)

    def across(self, x: Any) -> Any:
        """Return one number for each row in the shape (1, outer, inner)."""
        return lazy.asarray(x).reshape(1, self.outer, self.inner)

    def at(self, ranks: Any) -> Any:
        """Return lazily the elements of ranks, of shape (…, outer, inner)."""
        column = lazy.arange(self.inner)
        row_start = lazy.arange(self.outer).reshape(self.outer, 1) * (self.length * self.inner)
        ranks = ranks * self.inner + (row_start + column)  # few shapes: each is compiled
        return lazy.take(self.flat, ranks, mode="clip")


def extents_of(rows: Rows) -> tuple[int, int, int]:
    """Return the number of rows before the axis, their length, and the number after it."""
    axis, shape = rows.axis or 0, rows.shape
    return math.prod(shape[:axis]), rows.length, math.prod(shape[axis:])


def quantiles(rows: Rows, q: Any, method: str, is_weak: bool, lengths: Any, where: str) -> Any:
    """Return quantiles of rows, of which the first `lengths` elements in sorted order count.

    q is on the device of the rows, or 0.5 on the host. Without lengths all elements count, and a
    NaN in a row makes its result NaN.
    """
    q_dtype = _call.dtype_of(q, where)
    kind = result_dtype(q_dtype, method, is_weak, rows.dtype)
    picks, is_median = is_picking(q_dtype, method), method == MEDIAN
    inputs = (sorted_rows(rows), None if is_median else q, lengths)
    value = _QUANTILES(
        tuple([x for x in inputs if x is not None]), where, *extents_of(rows),
        (*q.shape, *rows.shape), method, is_weak, picks, kind,
    )  # fmt: skip
    return transform(same, value, dtype=kind)


def _quantiles(*args: Any) -> Any:
    """Return quantiles of sorted rows, lazily."""
    rows, *arrays, outer, length, inner, shape, method, is_weak, picks, kind = args
    is_median = method == MEDIAN
    q, *lengths = (lazy.full((1,), 0.5), *arrays) if is_median else arrays
    ordered, dtype = SortedRows(rows, outer, length, inner), rows.dtype
    q_dtype, q = q.dtype, q.reshape(-1, 1, 1)
    if q_dtype.kind in "biu":
        method, q = ("lower" if picks else method), q.astype(np.float64)
    q = counting(q, length)
    count = ordered.across(lengths[0]) if lengths else lazy.transform(second, q, np.int64(length))
    n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
    ranks = lazy.transform(ranks_by(method), count, n, most, q)
    low, high, fraction = (ranks[name] for name in ranks.dtype.names or ())
    value = ordered.at(low)
    if not picks:
        weights = kind if is_weak else q.dtype if q_dtype.kind in "biu" else q_dtype
        op, wide = lerp_of(dtype, kind, method)
        pair = (x if x.dtype == wide else x.astype(wide) for x in (value, ordered.at(high)))
        numbers = (x.astype(weights) for x in (fraction, 1 - fraction))
        value = lazy.transform(op, *pair, *numbers)
    if not lengths and has_nan(dtype):
        last = ordered.at(lazy.transform(second, q, np.int64(length - 1)))
        value = lazy.transform(nan_or, value, last)
    return value.reshape(shape)


_QUANTILES = ExpressionCache(_quantiles)


# --- In host memory, where results are few.


def is_small(rows: Rows, num_results: int) -> bool:
    """Return whether NumPy computes the results from the sorted rows: they are few."""
    return is_host(rows.x) and math.prod(rows.shape) * num_results <= _SMALL


def gathered(rows: Rows, ordered: Any, ranks: Any) -> Any:
    """Return the sorted elements of ranks, of shape (…, *rows.shape), for each row."""
    ordered = ordered.reshape(-1) if rows.axis is None else np.moveaxis(ordered, rows.axis, 0)
    return np.take_along_axis(ordered, ranks.reshape(-1, *rows.shape), 0).reshape(ranks.shape)


def nan_quantiles(rows: Rows, q: Any, method: str, is_weak: bool, lengths: Any, where: str) -> Any:
    """Return quantiles of rows, of which the first `lengths` elements in sorted order count."""
    if not (is_host(q) and is_small(rows, q.size)):
        if not is_host(rows.x) and is_host(q) and method != MEDIAN:
            q = _call.copy_to_device_of(rows.x, q, where)
        return quantiles(rows, q, method, is_weak, lengths, where)
    q = q.reshape((*q.shape, *(1,) * len(rows.shape)))
    ranks = ranks_of(lengths, q, method, is_weak, rows.dtype)
    ordered = sorted_rows(rows)
    low, high = (gathered(rows, ordered, one) for one in (ranks.low, ranks.high))
    if ranks.fraction is None:
        return low.astype(ranks.kind, copy=False)
    op, wide = lerp_of(rows.dtype, ranks.kind, method)
    weights = ranks.fraction, ranks.complement
    return interpolate(op, (low, high), weights, None, ranks.kind, None, rows, wide)


# --- Weighted quantiles: a sort with the weights, a scan of them, and a count for each quantile.


def weighted_quantiles(
    a: Any, rows: Rows, q: Any, axis: Any, method: Any, weights: Any, skips_nan: bool, where: str
) -> Any:
    """Return the weighted quantiles of rows, in the shape of q and the other axes."""
    if method != "inverted_cdf":
        raise ValueError(f"{where}: only method 'inverted_cdf' takes weights, got {shown(method)}")
    if not is_host(q):
        raise NotTaken(f"{where}: q is on a GPU; with weights it must be in host memory")
    w = array_of(weights, f"{where}: weights")
    if _call.dtype_of(w, where).kind == "c":
        raise TypeError(f"{where}: weights must be real numbers")
    if is_host(w) and (w < 0).any():
        raise ValueError(f"{where}: weights must not be negative")
    full_weights = _folds.weights_of(w, a, checks.plain_axes(axis, where), where)
    w = rows_of(lazy.asarray(full_weights).astype(np.float64), axis, where).x
    x, along = rows.x, rows.axis
    if along is None and len(x.shape) != 1:
        x, w = _call.flattened(x), _call.flattened(w)
    if not rows.length:
        raise IndexError(f"{where}: rows of a have no elements")
    if skips_nan and has_nan(rows.dtype):
        w = copy(lazy.transform(lambda weight, a: np.where(a != a, 0.0, weight), w, x))
    ordered, w = radix_sort(x, w, axis=0 if along is None else along)
    return _by_sums(rows, ordered, inclusive_scan(w, axis=along or 0), q, skips_nan, where)


def _by_sums(rows: Rows, ordered: Any, sums: Any, q: Any, skips_nan: bool, where: str) -> Any:
    """Return the first sorted elements at which the sums of weights reach their shares."""
    axis, most = rows.axis or 0, rows.length - 1
    last = (*(slice(None),) * axis, slice(most, most + 1))
    lazy_sums = lazy.asarray(sums)
    if is_host(sums):
        _check_totals(sums[last], ordered, axis, skips_nan, where)
    shares = lazy_sums / lazy_sums[last]
    if q.dtype.kind == "f":
        shares = shares.astype(q.dtype)
    counts = []
    for one in q.ravel().tolist():
        number = q.dtype.type(one)
        is_below = lazy.transform(lambda a, b: (a == 0) | (a < b), shares, number)
        counts.append(reduce(is_below, axis=axis, dtype=np.int64))
    shape = (*q.shape, *rows.shape)
    checks = has_nan(rows.dtype) and not skips_nan
    if is_host(ordered):
        ranks = np.minimum(np.reshape(np.array(counts, np.int64), shape), most)
        value = gathered(rows, ordered, ranks)
        last_ranks = np.full((1, *rows.shape), most)
        return nan_or(value, gathered(rows, ordered, last_ranks)[0]) if checks else value
    return _select_on_gpu(rows, ordered, counts, shape, checks, where)


def _select_on_gpu(
    rows: Rows, sorted_rows: Any, counts: Any, shape: tuple[int, ...], checks: bool, where: str
) -> Any:
    ordered = SortedRows(sorted_rows, *extents_of(rows))
    most = np.int64(rows.length - 1)
    result = _call.new(rows.x, (len(counts), *rows.shape), rows.dtype, where)
    for i, count in enumerate(counts):
        ranks = ordered.across(count)
        value = ordered.at(lazy.transform(np.minimum, ranks, most))
        if checks:
            last = ordered.at(lazy.transform(second, ranks, most))
            value = lazy.transform(nan_or, value, last)
        transform(same, value.reshape(rows.shape), dtype=rows.dtype, out=result[i])
    return result if result.shape == shape else copy(lazy.asarray(result).reshape(shape))


def _check_totals(totals: Any, ordered: Any, axis: int, skips_nan: bool, where: str) -> None:
    """Raise for rows whose weights have no valid sum; warn of rows without a number."""
    is_wrong = ~((totals > 0) & np.isfinite(totals))
    if skips_nan:
        first = np.take(ordered, [0], axis)
        is_all_nan = first != first
        if is_all_nan.any():
            _call.warn("All-NaN slice encountered")
        is_wrong &= ~is_all_nan
    if is_wrong.any():
        raise ValueError(f"{where}: weights include NaN or inf, or are all zero")
