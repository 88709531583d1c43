"""Orders by several numbers: complex ones, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.merge_sort import merge_sort
from gpualgo._algorithms.radix_sort import argsort
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy.combining import place_lazy
from gpualgo.numpy._orders import of_complex
from gpualgo.numpy._orders.gathers import aligned, along

_MOST_FIELDS = 8  # of a tuple that is sorted by


def fields(x: Any) -> list[Any]:
    """Return a lazy array as what is sorted by: numbers, of which the first decide first."""
    if x.dtype.kind != "c":
        return [x]
    parts = (of_complex.group, of_complex.real, of_complex.imag)
    return [lazy.transform(part, x) for part in parts]


def order_of_rows(rows: Any) -> Any:
    """Return the stable order of the rows of an array of two axes: its first columns decide first.

    Of few columns by one sort; else by comparing rows, of which few columns decide mostly.
    """
    whole = lazy.asarray(rows)
    columns = [field for j in range(min(whole.shape[1], _MOST_FIELDS + 1))
               for field in fields(whole[:, j])]  # fmt: skip
    if len(columns) <= _MOST_FIELDS:
        return order_by(columns)
    before = of_complex.less if whole.dtype.kind == "c" else _before
    count, length = whole.shape

    def less(i: Any, j: Any) -> Any:
        for k in range(length):
            a, b = rows[i, k], rows[j, k]
            if before(a, b):
                return True
            if before(b, a):
                return False
        return False

    return merge_sort(counted(count, rows), less=less)


def _before(a: Any, b: Any) -> Any:
    return a < b or (a == a and b != b)


def order_by(fields: Sequence[Any], axis: int = 0) -> Any:
    """Return the stable order by arrays, of which the first decide first."""
    if len(fields) == 1:
        return argsort(fields[0], axis=axis)
    if len(fields) <= _MOST_FIELDS:
        return argsort(tuple(fields), axis=axis)
    order = None
    while fields:  # those that decide last come first
        last, fields = fields[-_MOST_FIELDS:], fields[:-_MOST_FIELDS]
        if order is None:
            order = argsort(tuple(last), axis=axis)
        else:
            finer = argsort(tuple([along(x, order, axis) for x in last]), axis=axis)
            order = copy(along(order, finer, axis))
    return order


def complex_in_order(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return complex numbers in NumPy's order, flattened, and where in x they stand."""
    flat = lazy.asarray(aligned(x)).reshape(-1)
    order = order_by(fields(flat)) if flat.size else transform(_zero, flat)
    return copy(lazy.take(flat, order) if flat.size else flat), order


def zeros(count: int, like: Any) -> Any:
    """Return so many zeros of int64 in the library of an array."""
    made = lazy.full((count,), np.int64(0))
    return copy(*place_lazy((made,), (like,), "zeros"))


def counted(count: int, like: Any) -> Any:
    """Return the numbers from 0 up in the library of an array."""
    return copy(*place_lazy((lazy.arange(count),), (like,), "counted"))


def _zero(a: Any) -> Any:
    return np.int64(0)
