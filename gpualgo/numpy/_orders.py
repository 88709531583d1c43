"""Orders by several numbers: complex ones, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.radix_sort import argsort
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._arrays.view import as_view
from gpualgo._lazy.combining import beside
from gpualgo.numpy import _order_of_complex

_MOST_FIELDS = 8  # of a tuple that is sorted by


def fields(x: Any) -> list[Any]:
    """Return a lazy array as what is sorted by: numbers, of which the first decide first."""
    if x.dtype.kind != "c":
        return [x]
    parts = (_order_of_complex.group, _order_of_complex.real, _order_of_complex.imag)
    return [lazy.transform(part, x) for part in parts]


def fields_of_rows(rows: Any) -> list[Any]:
    """Return the columns of a lazy array of two axes as what is sorted by."""
    return [field for j in range(rows.shape[1]) for field in fields(rows[:, j])]


def order_by(given: Sequence[Any]) -> Any:
    """Return the stable order by arrays of one axis, of which the first decide first."""
    given = list(given)
    order = None
    while given:  # those that decide last come first
        last, given = given[-_MOST_FIELDS:], given[:-_MOST_FIELDS]
        if order is not None:
            last = [lazy.take(x, order) for x in last]
        found = argsort(last[0] if len(last) == 1 else tuple(last))
        order = found if order is None else copy(lazy.take(order, found))
    return order


def complex_in_order(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return complex numbers in NumPy's order, flattened, and where in x they stand."""
    flat = lazy.asarray(x).reshape(-1)
    order = order_by(fields(flat)) if flat.size else transform(_zero, flat)
    return copy(lazy.take(flat, order) if flat.size else flat), order


def zeros(count: int, like: Any) -> Any:
    """Return so many zeros of int64 in the library of an array."""
    made = lazy.full((count,), np.int64(0))
    return copy(beside(made, as_view(like, "like"), "zeros"))


def _zero(a: Any) -> Any:
    return np.int64(0)
