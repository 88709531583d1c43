"""Quantiles of ranks that are computed where the rows lie: for each row its own, or of any q."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform import transform
from gpualgo.numpy import _order_statistics, _results
from gpualgo.numpy import _quantile_methods as methods
from gpualgo.numpy._order_statistics import Rows


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
            return max(length - 1, 0), max(length - 1, 0), np.float64(way(at, at + 1))
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


def _same(a: Any) -> Any:
    return a


def _lerp(a: Any, b: Any, part: Any, rest: Any) -> Any:
    return b - (b - a) * rest if part >= 0.5 else a + (b - a) * part


def _lerp_of_long(a: Any, b: Any, part: Any, rest: Any) -> Any:
    way = np.float64(np.uint64(b) - np.uint64(a))
    return b - way * rest if part >= 0.5 else a + way * part


def _nan_or(value: Any, last: Any) -> Any:
    return np.where(last != last, last, value)


def _middle(a: Any, b: Any, length: Any) -> Any:
    return (a + b) / 2 if length % 2 == 0 else a


def _before_middle(length: Any) -> Any:
    return max(length - 1, 0) // 2


def _behind_middle(length: Any) -> Any:
    return length // 2


class Ordered:
    """Rows in order, one behind the other or side by side: (outer, length, inner)."""

    def __init__(self, rows: Rows) -> None:
        axis = rows.axis or 0
        shape = rows.shape
        self.outer, self.inner = math.prod(shape[:axis]), math.prod(shape[axis:])
        if rows.axis is None:
            self.outer = self.inner = 1
        self.rows, self.length = rows, rows.length
        self.flat = lazy.asarray(_order_statistics.sorted_rows(rows)).reshape(-1)

    def across(self, x: Any) -> Any:
        """Return an array of one number for each row as it stands beside those of this."""
        return lazy.asarray(x).reshape(1, self.outer, self.inner)

    def at(self, ranks: Any) -> Any:
        """Return lazily the elements of ranks, of shape (…, outer, inner)."""
        if self.inner != 1:
            ranks = ranks * self.inner + lazy.arange(self.inner)
        if self.outer != 1:
            ranks = ranks + lazy.arange(self.outer).reshape(self.outer, 1) * (
                self.length * self.inner
            )
        return lazy.take(self.flat, ranks, mode="clip")


def quantiles(
    rows: Rows, q: Any, q_shape: tuple[int, ...], method: str, is_weak: bool, lengths: Any,
    where: str,
) -> Any:  # fmt: skip
    """Return quantiles of rows of which the first so many elements in order count.

    q lies where the rows do; lengths is one number, NaN in a row makes its result one, or an array.
    """
    ordered, own, q_dtype = Ordered(rows), rows.dtype, _results.dtype_of(q, where)
    like = np.empty(0, q_dtype)
    kind = methods.result_dtype(like, method, is_weak, own)
    is_picking = methods.is_picking(like, method)
    q = lazy.asarray(q).reshape(-1, 1, 1)
    if q_dtype.kind in "biu":
        method, q = ("lower" if is_picking else method), q.astype(np.float64)
    count = ordered.across(lengths) if np.ndim(lengths) else lazy.transform(_length, q, lengths)
    n, most = count.astype(q.dtype), (count - 1).astype(q.dtype)
    places = lazy.transform(_places_by(method), count, n, most, q)
    low = ordered.at(lazy.transform(_low, places))
    if is_picking:
        value = low
    else:
        high = ordered.at(lazy.transform(_high, places))
        part = lazy.transform(_part, places)
        rest = 1 - part
        to = kind if is_weak else q.dtype
        part, rest = part.astype(to), rest.astype(to)
        is_long = own.kind in "iu" and own.itemsize == 8
        if own.kind in "iu" and not is_long:
            low, high = low.astype(kind), high.astype(kind)
        value = lazy.transform(_lerp_of_long if is_long else _lerp, low, high, part, rest)
    if not np.ndim(lengths) and _order_statistics.has_nan(own):
        last = ordered.at(lazy.transform(_length, q, np.int64(rows.length - 1)))
        value = lazy.transform(_nan_or, value, last)
    return transform(_same, value.reshape(*q_shape, *rows.shape), dtype=kind)


def _length(a: Any, length: Any) -> Any:
    return length


def medians(rows: Rows, lengths: Any, kind: Any) -> Any:
    """Return medians of rows of which the first so many elements in order count."""
    ordered = Ordered(rows)
    count = ordered.across(lengths)
    pair = [ordered.at(lazy.transform(op, count)) for op in (_before_middle, _behind_middle)]
    wide = np.dtype(np.float32) if kind.itemsize == 2 else kind
    low, high = (one if rows.dtype == wide else one.astype(wide) for one in pair)
    value = lazy.transform(_middle, low, high, count)
    return transform(_same, value.reshape(rows.shape), dtype=kind)
