"""Orders by several numbers: complex numbers and rows."""

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

_MOST_FIELDS = 8  # of a tuple used as a sort key


def fields(x: Any) -> list[Any]:
    """Return the numbers to sort a lazy array by, the most significant first."""
    if x.dtype.kind != "c":
        return [x]
    parts = (of_complex.group, of_complex.real, of_complex.imag)
    return [lazy.transform(part, x) for part in parts]


def order_of_rows(rows: Any) -> Any:
    """Return the stable order of the rows of a matrix; the first column is the most significant.

    Few columns are sorted as one tuple key. More columns are compared row by row, which usually
    ends early.
    """
    matrix = lazy.asarray(rows)
    columns = [field for j in range(min(matrix.shape[1], _MOST_FIELDS + 1))
               for field in fields(matrix[:, j])]  # fmt: skip
    if len(columns) <= _MOST_FIELDS:
        return order_by(columns)
    precedes = of_complex.less if matrix.dtype.kind == "c" else _precedes
    count, length = matrix.shape

    def less(i: Any, j: Any) -> Any:
        for k in range(length):
            a, b = rows[i, k], rows[j, k]
            if precedes(a, b):
                return True
            if precedes(b, a):
                return False
        return False

    return merge_sort(counted(count, rows), less=less)


def _precedes(a: Any, b: Any) -> Any:
    return a < b or (a == a and b != b)


def order_by(fields: Sequence[Any], axis: int = 0) -> Any:
    """Return the stable order by arrays, the most significant first."""
    if len(fields) == 1:
        return argsort(fields[0], axis=axis)
    if len(fields) <= _MOST_FIELDS:
        return argsort(tuple(fields), axis=axis)
    order = None
    while fields:  # from the least significant to the most
        keys, fields = fields[-_MOST_FIELDS:], fields[:-_MOST_FIELDS]
        if order is None:
            order = argsort(tuple(keys), axis=axis)
        else:
            finer = argsort(tuple([along(x, order, axis) for x in keys]), axis=axis)
            order = copy(along(order, finer, axis))
    return order


def complex_in_order(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return complex numbers sorted and flattened, and their indices in x."""
    flat = lazy.asarray(aligned(x)).reshape(-1)
    order = order_by(fields(flat)) if flat.size else transform(_zero, flat)
    return copy(lazy.take(flat, order) if flat.size else flat), order


def zeros(count: int, like: Any) -> Any:
    """Return zeros of int64 in the library of an array."""
    lazy_zeros = lazy.full((count,), np.int64(0))
    return copy(*place_lazy((lazy_zeros,), (like,), "zeros"))


def counted(count: int, like: Any) -> Any:
    """Return 0, 1, ..., count - 1 in the library of an array."""
    return copy(*place_lazy((lazy.arange(count),), (like,), "counted"))


def _zero(a: Any) -> Any:
    return np.int64(0)
