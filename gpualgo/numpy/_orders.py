"""Orders of elements: indices that sort, gathers, lookups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo import argsort, copy, lazy, merge_sort, transform
from gpualgo._lazy.combining import led_by, place_lazy, zipped
from gpualgo.numpy import _call
from gpualgo.numpy._call import aligned

# --- Gathers along an axis, with separate indices for each row.


def along(x: Any, indices: Any, axis: int) -> Any:
    """Return ``numpy.take_along_axis`` lazily; apart from the axis, shapes are equal."""
    shape, indices_shape = tuple(x.shape), tuple(indices.shape)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = lazy.asarray(indices).reshape(outer, indices_shape[axis], inner)
    if inner != 1:
        flat = flat * inner + lazy.arange(inner)
    if outer != 1:
        flat = flat + lazy.arange(outer).reshape(outer, 1, 1) * (shape[axis] * inner)
    return lazy.take(lazy.asarray(aligned(x)).reshape(-1), flat).reshape(indices_shape)


def indices_along(shape: tuple[int, ...], axis: int | None) -> Any:
    """Return each element's index along an axis, or in C order among all."""
    along = tuple(n if axis in (i, i - len(shape), None) else 1 for i, n in enumerate(shape))
    return lazy.arange(math.prod(along)).reshape(along).broadcast_to(shape)


# --- NumPy's order of complex numbers: by real part, then imaginary part, NaN last.


def complex_less(a: Any, b: Any) -> Any:
    """Return whether a precedes b: NaN parts follow all numbers, a NaN real part comes last."""
    if a.real < b.real:
        return a.imag == a.imag or b.imag != b.imag
    if a.real > b.real:
        return a.imag == a.imag and b.imag != b.imag
    if a.real == b.real or (a.real != a.real and b.real != b.real):
        return a.imag < b.imag or (a.imag == a.imag and b.imag != b.imag)
    return b.real != b.real


def complex_greater(a: Any, b: Any) -> Any:
    """Return whether a precedes b in descending order, with NaN last as well."""
    return complex_less(-a, -b)


def _nan_group(a: Any) -> Any:
    """Return the primary sort key: 0 for a number, 1 if only the imaginary part is NaN, else 2."""
    if a.real != a.real:
        return np.uint8(2)
    return np.uint8(a.imag != a.imag)


# --- Orders by several numbers: complex numbers and rows.

_MOST_FIELDS = 8  # of a tuple used as a sort key


def fields(x: Any) -> list[Any]:
    """Return the numbers to sort an array by, the most significant first."""
    if _call.dtype_of(x, "x").kind != "c":
        return [x]
    return [lazy.transform(part, x) for part in (_nan_group, np.real, np.imag)]


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
    is_complex = matrix.dtype.kind == "c"
    precedes = complex_less if is_complex else (lambda a, b: a < b or (a == a and b != b))
    count, length = matrix.shape

    def less(i: Any, j: Any) -> Any:
        for k in range(length):
            a, b = rows[i, k], rows[j, k]
            if precedes(a, b):
                return True
            if precedes(b, a):
                return False
        return False

    return merge_sort(evaluated_like(lazy.arange(count), rows), less=less)


def order_by(fields: Sequence[Any], axis: int = 0) -> Any:
    """Return the stable order by arrays, the most significant first."""
    if len(fields) == 1:
        return argsort(fields[0], axis=axis)
    order = None
    while fields:  # from the least significant to the most
        keys, fields = fields[-_MOST_FIELDS:], fields[:-_MOST_FIELDS]
        if order is None:
            order = argsort(tuple(keys), axis=axis)
        else:
            # One by one: operators capture few arrays.
            finer = argsort(tuple([copy(along(x, order, axis)) for x in keys]), axis=axis)
            order = copy(along(order, finer, axis))
    return order


def complex_in_order(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return complex numbers sorted and flattened, and their indices in x."""
    flat = lazy.asarray(aligned(x)).reshape(-1)
    order = order_by(fields(flat)) if flat.size else transform(lambda a: np.int64(0), flat)
    return copy(lazy.take(flat, order) if flat.size else flat), order


def evaluated_like(x: Any, like: Any) -> Any:
    """Return a lazy array that reads no array, evaluated in the library of another."""
    return copy(*place_lazy((x,), (like,), "unique"))


def in_library_of(result: Any, x: Any, where: str) -> Any:
    """Return a result in the library of x, an argument of its shape."""
    if type(result) is type(x) or isinstance(result, np.generic):
        return result
    computed = zipped(result, where)
    placed = led_by(computed, zipped(x, where))
    return result if placed is computed else copy(placed)
