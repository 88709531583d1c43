"""Quantiles whose ranks are computed on the device of the rows: by row, or for q on a GPU."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform import transform
from gpualgo._lazy.kept import Kept
from gpualgo._operators.markers import same
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._ranks import between, order_statistics
from gpualgo.numpy._ranks import quantile_methods as methods
from gpualgo.numpy._ranks.order_statistics import Rows

_SMALL = 1 << 16


@cache
def _ranks_by(method: str) -> Any:
    """Return an operator for the ranks on both sides of a quantile and the fraction."""
    if method in methods.DISCRETE_METHODS:
        fn = methods.DISCRETE_METHODS[method]

        def picked(length: Any, n: Any, most: Any, q: Any) -> Any:
            rank = min(max(np.int64(fn(n, most, q)), 0), max(length - 1, 0))
            return rank, rank, 0.0

        return picked
    fn, fraction_of = methods.BETWEEN[method], methods.PARTS.get(method, methods._as_far)

    def places(length: Any, n: Any, most: Any, q: Any) -> Any:
        position = fn(n, most, q)
        if position >= most:  # NumPy uses -1 for the last element's index
            fraction = min(np.float64(fraction_of(position, position + 1)), 2.0)  # MOST_PART
            return max(length - 1, 0), max(length - 1, 0), fraction
        if position < 0:
            return np.int64(0), np.int64(0), np.float64(fraction_of(position, position))
        below = np.int64(np.floor(position))
        return below, below + 1, np.float64(fraction_of(position, position - np.floor(position)))

    return places


def _low(ranks: Any) -> Any:
    return ranks[0]


def _high(ranks: Any) -> Any:
    return ranks[1]


def _fraction(ranks: Any) -> Any:
    return ranks[2]


def _lerp(a: Any, b: Any, fraction: Any, complement: Any) -> Any:
    return b - (b - a) * complement if fraction >= 0.5 else a + (b - a) * fraction


def _lerp_long(a: Any, b: Any, fraction: Any, complement: Any) -> Any:
    distance = np.float64(np.uint64(b) - np.uint64(a))
    return b - distance * complement if fraction >= 0.5 else a + distance * fraction


def _middle(a: Any, b: Any, length: Any) -> Any:
    return np.where(length % 2 == 0, (a + b) / 2, a)


def _before_middle(length: Any) -> Any:
    return np.maximum(length - 1, 0) // 2


def _after_middle(length: Any) -> Any:
    return length // 2


class Ordered:
    """Sorted rows in an array of shape (outer, length, inner), sorted along the middle axis."""

    def __init__(self, found: Any, outer: int, length: int, inner: int) -> None:
        self.outer, self.length, self.inner = outer, length, inner
        self.flat = lazy.asarray(found).reshape(-1)

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


def quantiles(
    rows: Rows, q: Any, q_shape: tuple[int, ...], method: str, is_weak: bool, lengths: Any,
    where: str,
) -> Any:  # fmt: skip
    """Return quantiles of rows, of which the first `lengths` elements in sorted order count.

    q is on the device of the rows. Without lengths all elements count, and a NaN in a row makes its
    result NaN.
    """
    own, q_dtype = rows.dtype, results.dtype_of(q, where)
    sample = np.empty(0, q_dtype)
    kind = methods.result_dtype(sample, method, is_weak, own)
    ordered = order_statistics.sorted_rows(rows)
    options = _Options(method, is_weak, methods.is_picking(sample, method), kind)
    inputs = (ordered, q) if lengths is None else (ordered, q, lengths)
    value = _QUANTILES(inputs, where, *extents_of(rows), (*q_shape, *rows.shape), options)
    return transform(same, value, dtype=kind)


class _Options(NamedTuple):
    """Options of quantiles that are not arrays."""

    method: str
    is_weak: bool
    is_picking: bool
    kind: Any


def _quantiles(*args: Any) -> Any:
    """Return quantiles of sorted rows, lazily."""
    rows, q, *lengths, outer, length, inner, shape, options = args
    ordered, dtype, method = Ordered(rows, outer, length, inner), rows.dtype, options.method
    q_dtype, q = q.dtype, q.reshape(-1, 1, 1)
    if q_dtype.kind in "biu":
        method, q = ("lower" if options.is_picking else method), q.astype(np.float64)
    q = methods.counting(q, length)
    count = ordered.across(lengths[0]) if lengths else lazy.transform(_second, q, np.int64(length))
    n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
    ranks = lazy.transform(_ranks_by(method), count, n, most, q)
    value = ordered.at(lazy.transform(_low, ranks))
    if not options.is_picking:
        high = ordered.at(lazy.transform(_high, ranks))
        fraction = lazy.transform(_fraction, ranks)
        complement = 1 - fraction
        weights = options.kind if options.is_weak else q.dtype if q_dtype.kind in "biu" else q_dtype
        fraction, complement = fraction.astype(weights), complement.astype(weights)
        value = _interpolate(value, high, fraction, complement, options.kind)
    if not lengths and order_statistics.has_nan(dtype):
        last = ordered.at(lazy.transform(_second, q, np.int64(length - 1)))
        value = lazy.transform(between.nan_or, value, last)
    return value.reshape(shape)


def _interpolate(low: Any, high: Any, fraction: Any, complement: Any, kind: Any) -> Any:
    dtype = low.dtype
    if dtype.kind in "iu" and dtype.itemsize == 8:
        return lazy.transform(_lerp_long, low, high, fraction, complement)
    if dtype.kind in "iu":
        low, high = low.astype(kind), high.astype(kind)
    return lazy.transform(_lerp, low, high, fraction, complement)


_QUANTILES = Kept(_quantiles)


def _second(a: Any, length: Any) -> Any:
    return length


def medians(rows: Rows, lengths: Any, kind: Any) -> Any:
    """Return medians of rows, of which the first `lengths` elements in sorted order count."""
    wide = np.dtype(np.float32) if kind.itemsize == 2 else kind
    if is_small(rows, 1):
        element = gathered(rows)
        low, high = (element(op(lengths)) for op in (_before_middle, _after_middle))
        with np.errstate(all="ignore"):
            return _middle(low.astype(wide), high.astype(wide), lengths).astype(kind)
    inputs = order_statistics.sorted_rows(rows), lengths
    value = _MEDIANS(inputs, "nanmedian", *extents_of(rows), rows.shape, wide)
    return transform(same, value, dtype=kind)


def _medians(rows: Any, lengths: Any, outer: int, length: int, inner: int, *options: Any) -> Any:
    shape, wide = options
    ordered = Ordered(rows, outer, length, inner)
    count = ordered.across(lengths)
    pair = [ordered.at(lazy.transform(op, count)) for op in (_before_middle, _after_middle)]
    low, high = (one if one.dtype == wide else one.astype(wide) for one in pair)
    return lazy.transform(_middle, low, high, count).reshape(shape)


_MEDIANS = Kept(_medians)


# --- in host memory, where results are few ----------------------------------------------------


def is_small(rows: Rows, num_results: int) -> bool:
    """Return whether NumPy computes the results from the sorted rows: they are few."""
    return is_host(rows.x) and math.prod(rows.shape) * num_results <= _SMALL


def gathered(rows: Rows, found: Any = None) -> Any:
    """Return a function that gathers elements of ranks, of shape (…, *rows.shape), for each row."""
    if found is None:
        found = order_statistics.sorted_rows(rows)
    found = found.reshape(-1) if rows.axis is None else np.moveaxis(found, rows.axis, 0)

    def at(ranks: Any) -> Any:
        flat = ranks.reshape(-1, *rows.shape)
        return np.take_along_axis(found, flat, 0).reshape(ranks.shape)

    return at


def few_quantiles(rows: Rows, q: Any, method: str, is_weak: bool, lengths: Any) -> Any:
    """Return quantiles of rows, of which the first `lengths` elements in sorted order count."""
    ranks = methods.parse_devices(
        lengths, q.reshape((*q.shape, *(1,) * len(rows.shape))), method, is_weak, rows.dtype
    )
    element = gathered(rows)
    low, high = element(ranks.low), element(ranks.high)
    if ranks.part is None:
        return low.astype(ranks.kind, copy=False)
    with np.errstate(all="ignore"):
        distance = high - low
        up, down = low + distance * ranks.part, high - distance * ranks.rest
        return np.where(ranks.part >= 0.5, down, up).astype(ranks.kind, copy=False)
