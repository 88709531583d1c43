"""Means and variances by one reduction: what NumPy's functions of lazy and of other arrays share.

Counts, means and sums of squares are joined as B. P. Welford's and T. F. Chan's are
(doi:10.1080/00401706.1962.10490022, doi:10.1080/00031305.1983.10483115), which does not cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._base import dtypes
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.kept import Kept
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]


def float_of(kind: Dtype) -> Dtype:
    """Return the dtype of a mean of numbers."""
    return np.dtype(np.float64) if kind.kind in "biu" else kind


def real_of(kind: Dtype) -> Dtype:
    """Return the dtype of a variance of numbers that are floats or complex."""
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def wide_of(kind: Dtype) -> Dtype:
    """Return what moments of floats or complex numbers are computed in."""
    return np.dtype(np.float32) if dtypes.kind(kind) == "f" and kind.itemsize == 2 else kind


def _joined(a: Any, b: Any) -> Any:
    count, distance = a[0] + b[0], b[1] - a[1]
    share = b[0] / count
    squares = distance * distance * (a[0] * share)
    return count, a[1] + distance * share, a[2] + b[2] + squares


def _joined_some(a: Any, b: Any) -> Any:
    count, distance = a[0] + b[0], b[1] - a[1]
    share = b[0] / max(count, 1)  # of nothing and nothing: nothing
    squares = distance * distance * (a[0] * share)
    return count, a[1] + distance * share, a[2] + b[2] + squares


def _joined_complex(a: Any, b: Any) -> Any:
    count, x, y = a[0] + b[0], b[1] - a[1], b[2] - a[2]
    share = b[0] / max(count, 1)
    squares = (x * x + y * y) * (a[0] * share)
    return count, a[1] + x * share, a[2] + y * share, a[3] + b[3] + squares


# In whatever order: rounding differs alone.
_ALL, _SOME, _COMPLEX = (
    Operator(fn, commutative=True) for fn in (_joined, _joined_some, _joined_complex)
)


def _one(x: Any) -> Any:
    return 1.0, x, 0.0


def _one_complex(x: Any) -> Any:
    return 1.0, x.real, x.imag, 0.0


def _one_where(mask: Any, x: Any) -> Any:
    return np.float64(mask), np.where(mask, x, 0), 0.0


def _one_complex_where(mask: Any, x: Any) -> Any:
    return np.float64(mask), np.where(mask, x.real, 0), np.where(mask, x.imag, 0), 0.0


def _elements_of(x: LazyArray, acc: Dtype) -> LazyArray:
    return applied(_one_complex if acc.kind == "c" else _one, (lazy_as(x, acc),), "")


def _numbers_of(x: LazyArray, acc: Dtype) -> LazyArray:
    return applied(_one_where, (are_numbers(x), lazy_as(x, acc)), "")


_elements, _numbers = Kept(_elements_of), Kept(_numbers_of)

# Start values that are one object are known again by that.
_STARTS: dict[int, Any] = {count: (0.0,) * count for count in (3, 4)}

NUMBERS: Any = object()
"""A mask: all that is not NaN of an array of real floats."""


def are_numbers(x: Any) -> Any:
    """Return where an array holds no NaN."""
    x = zipped(x, "")
    return np.equal(x, x)


def moments(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, ...]:
    """Return counts, means and sums of squares of distances from them, of x as `kind`.

    Of complex numbers there are two means, of real and of imaginary parts. Counts are exact with a
    mask, which is lazy and of x's shape, or `NUMBERS`; else they are known, and rounded to the
    dtype of the sums, as weights may be.
    """
    acc = wide_of(kind)
    real, is_complex = real_of(acc), acc.kind == "c"
    op = _COMPLEX if is_complex else _ALL if mask is None else _SOME
    if mask is NUMBERS and is_complex:
        mask = are_numbers(x)
    elements: Any
    if mask is NUMBERS:
        elements = _numbers((x,), "", acc)
    elif mask is not None:
        one = _one_complex_where if is_complex else _one_where
        elements = applied(one, (mask, lazy_as(x, acc)), "")
    elif isinstance(x, np.ndarray) and dtypes.can_cast(x.dtype, acc):
        elements = (1.0, x.real, x.imag, 0.0) if is_complex else (1.0, x, 0.0)
    else:
        elements = _elements((x,), "", acc)
    count = real if mask is None else np.dtype(np.float64)
    wanted = (count, real, real, real) if is_complex else (count, real, real)
    return tuple(
        reduce(elements, _STARTS[len(wanted)], op, axis=axis, keepdims=keepdims, dtype=wanted)
    )


def _finite(center: Any, squares: Any) -> Any:
    return np.where(np.isfinite(center), squares, np.nan)


def _finite_complex(x: Any, y: Any, squares: Any) -> Any:
    return np.where(np.isfinite(x) & np.isfinite(y), squares, np.nan)


def spread_of(found: tuple[Any, ...], rest: Any, is_root: bool) -> Any:
    """Return variances of moments that NumPy computes with, or their roots."""
    finite = _finite if len(found) == 3 else _finite_complex
    value = finite(*found[1:]) / rest
    return np.sqrt(value) if is_root else value


def spread(count: int, rest: float, is_root: bool) -> Callable[..., Any]:
    """Return what makes variances, or their roots, of so many means and squares."""
    if count == 3:
        if is_root:
            return lambda center, squares: np.sqrt(_finite(center, squares) / rest)
        return lambda center, squares: _finite(center, squares) / rest
    if is_root:
        return lambda x, y, squares: np.sqrt(_finite_complex(x, y, squares) / rest)
    return lambda x, y, squares: _finite_complex(x, y, squares) / rest


def lazy_as(x: Any, kind: Dtype) -> LazyArray:
    lazy = zipped(x, "")
    return lazy if lazy.dtype == kind else lazy.astype(kind)


def _counted(mask: Any, x: Any, none: Any) -> Any:
    return np.int64(mask), np.where(mask, x, none)


def _added(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


added = Operator(_added, commutative=True)


def _counted_of(x: LazyArray, kind: Dtype) -> LazyArray:
    return applied(_counted, (are_numbers(x), lazy_as(x, kind), kind.type(0)), "")


_counted_numbers = Kept(_counted_of)


def counted_sums(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, Any]:
    """Return how many elements the mask has, which is lazy or `NUMBERS`; and their sums."""
    elements: Any
    if mask is NUMBERS:
        elements = _counted_numbers((x,), "", kind)
    else:
        elements = applied(_counted, (mask, lazy_as(x, kind), kind.type(0)), "")
    found = reduce(elements, (0, 0), added, axis=axis, keepdims=keepdims)
    return found[0], found[1]
