"""Quantiles of ranks that are computed where the rows lie: for each row its own, or of any q."""

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
def _places_by(method: str) -> Any:
    """Return what computes the ranks to both sides of a quantile, and the part of the way."""
    if method in methods.PICKING:
        fn = methods.PICKING[method]

        def picked(length: Any, n: Any, most: Any, q: Any) -> Any:
            rank = min(max(np.int64(fn(n, most, q)), 0), max(length - 1, 0))
            return rank, rank, 0.0

        return picked
    fn, way = methods.BETWEEN[method], methods.PARTS.get(method, methods._as_far)

    def places(length: Any, n: Any, most: Any, q: Any) -> Any:
        at = fn(n, most, q)
        if at >= most:  # NumPy takes the last element's place for -1
            part = min(np.float64(way(at, at + 1)), 2.0)  # MOST_PART
            return max(length - 1, 0), max(length - 1, 0), part
        if at < 0:
            return np.int64(0), np.int64(0), np.float64(way(at, at))
        below = np.int64(np.floor(at))
        return below, below + 1, np.float64(way(at, at - np.floor(at)))

    return places


def _low(places: Any) -> Any:
    return places[0]


def _high(places: Any) -> Any:
    return places[1]


def _part(places: Any) -> Any:
    return places[2]


def _lerp(a: Any, b: Any, part: Any, rest: Any) -> Any:
    return b - (b - a) * rest if part >= 0.5 else a + (b - a) * part


def _lerp_of_long(a: Any, b: Any, part: Any, rest: Any) -> Any:
    way = np.float64(np.uint64(b) - np.uint64(a))
    return b - way * rest if part >= 0.5 else a + way * part


def _middle(a: Any, b: Any, length: Any) -> Any:
    return np.where(length % 2 == 0, (a + b) / 2, a)


def _before_middle(length: Any) -> Any:
    return np.maximum(length - 1, 0) // 2


def _behind_middle(length: Any) -> Any:
    return length // 2


class Ordered:
    """Rows in order, one behind the other or side by side: (outer, length, inner)."""

    def __init__(self, found: Any, outer: int, length: int, inner: int) -> None:
        self.outer, self.length, self.inner = outer, length, inner
        self.flat = lazy.asarray(found).reshape(-1)

    def across(self, x: Any) -> Any:
        """Return an array of one number for each row as it stands beside those of this."""
        return lazy.asarray(x).reshape(1, self.outer, self.inner)

    def at(self, ranks: Any) -> Any:
        """Return lazily the elements of ranks, of shape (…, outer, inner)."""
        rest = lazy.arange(self.inner)
        begin = lazy.arange(self.outer).reshape(self.outer, 1) * (self.length * self.inner)
        ranks = ranks * self.inner + (begin + rest)  # of few shapes: each kind is compiled
        return lazy.take(self.flat, ranks, mode="clip")


def extents_of(rows: Rows) -> tuple[int, int, int]:
    """Return how many rows lie one behind the other, their length, and how many side by side."""
    axis, shape = rows.axis or 0, rows.shape
    return math.prod(shape[:axis]), rows.length, math.prod(shape[axis:])


def quantiles(
    rows: Rows, q: Any, q_shape: tuple[int, ...], method: str, is_weak: bool, lengths: Any,
    where: str,
) -> Any:  # fmt: skip
    """Return quantiles of rows of which the first so many elements in order count.

    q lies where the rows do. Without lengths all count, and NaN in a row makes its result one.
    """
    own, q_dtype = rows.dtype, results.dtype_of(q, where)
    like = np.empty(0, q_dtype)
    kind = methods.result_dtype(like, method, is_weak, own)
    found = order_statistics.sorted_rows(rows)
    asked = _Asked(method, is_weak, methods.is_picking(like, method), kind)
    read = (found, q) if lengths is None else (found, q, lengths)
    value = _QUANTILES(read, where, *extents_of(rows), (*q_shape, *rows.shape), asked)
    return transform(same, value, dtype=kind)


class _Asked(NamedTuple):
    """What of quantiles is no array."""

    method: str
    is_weak: bool
    is_picking: bool
    kind: Any


def _quantiles(*given: Any) -> Any:
    """Return quantiles of rows in order, lazily."""
    found, q, *lengths, outer, length, inner, shape, asked = given
    ordered, own, method = Ordered(found, outer, length, inner), found.dtype, asked.method
    q_dtype, q = q.dtype, q.reshape(-1, 1, 1)
    if q_dtype.kind in "biu":
        method, q = ("lower" if asked.is_picking else method), q.astype(np.float64)
    q = methods.counting(q, length)
    count = ordered.across(lengths[0]) if lengths else lazy.transform(_length, q, np.int64(length))
    n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
    places = lazy.transform(_places_by(method), count, n, most, q)
    value = ordered.at(lazy.transform(_low, places))
    if not asked.is_picking:
        high = ordered.at(lazy.transform(_high, places))
        part = lazy.transform(_part, places)
        rest = 1 - part
        to = asked.kind if asked.is_weak else q.dtype if q_dtype.kind in "biu" else q_dtype
        part, rest = part.astype(to), rest.astype(to)
        value = _lerped(value, high, part, rest, asked.kind)
    if not lengths and order_statistics.has_nan(own):
        last = ordered.at(lazy.transform(_length, q, np.int64(length - 1)))
        value = lazy.transform(between.nan_or, value, last)
    return value.reshape(shape)


def _lerped(low: Any, high: Any, part: Any, rest: Any, kind: Any) -> Any:
    own = low.dtype
    if own.kind in "iu" and own.itemsize == 8:
        return lazy.transform(_lerp_of_long, low, high, part, rest)
    if own.kind in "iu":
        low, high = low.astype(kind), high.astype(kind)
    return lazy.transform(_lerp, low, high, part, rest)


_QUANTILES = Kept(_quantiles)


def _length(a: Any, length: Any) -> Any:
    return length


def medians(rows: Rows, lengths: Any, kind: Any) -> Any:
    """Return medians of rows of which the first so many elements in order count."""
    wide = np.dtype(np.float32) if kind.itemsize == 2 else kind
    if is_small(rows, 1):
        at = gathered(rows)
        low, high = (at(op(lengths)) for op in (_before_middle, _behind_middle))
        with np.errstate(all="ignore"):
            return _middle(low.astype(wide), high.astype(wide), lengths).astype(kind)
    read = order_statistics.sorted_rows(rows), lengths
    value = _MEDIANS(read, "nanmedian", *extents_of(rows), rows.shape, wide)
    return transform(same, value, dtype=kind)


def _medians(found: Any, lengths: Any, outer: int, length: int, inner: int, *rest: Any) -> Any:
    shape, wide = rest
    ordered = Ordered(found, outer, length, inner)
    count = ordered.across(lengths)
    pair = [ordered.at(lazy.transform(op, count)) for op in (_before_middle, _behind_middle)]
    low, high = (one if one.dtype == wide else one.astype(wide) for one in pair)
    return lazy.transform(_middle, low, high, count).reshape(shape)


_MEDIANS = Kept(_medians)


# --- in host memory, where results are few ----------------------------------------------------


def is_small(rows: Rows, num_results: int) -> bool:
    """Return whether NumPy makes the results of what has been sorted: they are few."""
    return is_host(rows.x) and math.prod(rows.shape) * num_results <= _SMALL


def gathered(rows: Rows, found: Any = None) -> Any:
    """Return what gives elements of ranks, of the shape (…, *rest), each row its own."""
    if found is None:
        found = order_statistics.sorted_rows(rows)
    found = found.reshape(-1) if rows.axis is None else np.moveaxis(found, rows.axis, 0)

    def at(ranks: Any) -> Any:
        flat = ranks.reshape(-1, *rows.shape)
        return np.take_along_axis(found, flat, 0).reshape(ranks.shape)

    return at


def few_quantiles(rows: Rows, q: Any, method: str, is_weak: bool, lengths: Any) -> Any:
    """Return quantiles of rows of which the first so many elements in order count."""
    places = methods.places_of(
        lengths, q.reshape((*q.shape, *(1,) * len(rows.shape))), method, is_weak, rows.dtype
    )
    at = gathered(rows)
    low, high = at(places.low), at(places.high)
    if places.part is None:
        return low.astype(places.kind, copy=False)
    with np.errstate(all="ignore"):
        step = high - low
        up, down = low + step * places.part, high - step * places.rest
        return np.where(places.part >= 0.5, down, up).astype(places.kind, copy=False)
