"""Means and variances in one reduction, for NumPy functions of lazy and other arrays.

Counts, means and sums of squares are combined by the formulas of Welford and Chan et al., which
avoid cancellation (doi:10.1080/00401706.1962.10490022, doi:10.1080/00031305.1983.10483115).
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
    return np.dtype(np.float64) if kind.kind in "biu" else kind


def real_of(kind: Dtype) -> Dtype:
    """Return the dtype of variances, which are real for complex numbers."""
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def wide_of(kind: Dtype) -> Dtype:
    """Return the dtype in which moments are computed: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtypes.kind(kind) == "f" and kind.itemsize == 2 else kind


def _combined(a: Any, b: Any) -> Any:
    count, distance = a[0] + b[0], b[1] - a[1]
    share = b[0] / count
    squares = distance * distance * (a[0] * share)
    return count, a[1] + distance * share, a[2] + b[2] + squares


def _combined_maybe_empty(a: Any, b: Any) -> Any:
    count, distance = a[0] + b[0], b[1] - a[1]
    share = b[0] / max(count, 1)  # both counts may be 0
    squares = distance * distance * (a[0] * share)
    return count, a[1] + distance * share, a[2] + b[2] + squares


def _combined_complex(a: Any, b: Any) -> Any:
    count, x, y = a[0] + b[0], b[1] - a[1], b[2] - a[2]
    share = b[0] / max(count, 1)
    squares = (x * x + y * y) * (a[0] * share)
    return count, a[1] + x * share, a[2] + y * share, a[3] + b[3] + squares


# Declared commutative: another order changes rounding only.
_COMBINE, _COMBINE_EMPTY, _COMBINE_COMPLEX = (
    Operator(fn, commutative=True) for fn in (_combined, _combined_maybe_empty, _combined_complex)
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

# Tuples are reused, as cached plans compare the initial value by identity.
_INITIAL: dict[int, Any] = {count: (0.0,) * count for count in (3, 4)}

NUMBERS: Any = object()
"""A mask that selects all elements of a real array that are not NaN."""


def are_numbers(x: Any) -> Any:
    """Return a mask of the elements that are not NaN."""
    x = zipped(x, "")
    return np.equal(x, x)


def moments(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, ...]:
    """Return counts, means and sums of squared deviations from them, computed as `kind`.

    Complex numbers have two means, of real and imaginary parts. `mask` is a lazy array with x's
    shape, `NUMBERS` or None. Counts are exact with a mask. Without one the caller knows them, and
    they have the dtype of the sums.
    """
    acc = wide_of(kind)
    real, is_complex = real_of(acc), acc.kind == "c"
    op = _COMBINE_COMPLEX if is_complex else _COMBINE if mask is None else _COMBINE_EMPTY
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
    kinds = (count, real, real, real) if is_complex else (count, real, real)
    return tuple(
        reduce(elements, _INITIAL[len(kinds)], op, axis=axis, keepdims=keepdims, dtype=kinds)
    )


def _finite(center: Any, squares: Any) -> Any:
    return np.where(np.isfinite(center), squares, np.nan)


def _finite_complex(x: Any, y: Any, squares: Any) -> Any:
    return np.where(np.isfinite(x) & np.isfinite(y), squares, np.nan)


def spread_of(found: tuple[Any, ...], rest: Any, is_root: bool) -> Any:
    """Return variances (or standard deviations) from moments, `rest` being the divisor."""
    finite = _finite if len(found) == 3 else _finite_complex
    value = finite(*found[1:]) / rest
    return np.sqrt(value) if is_root else value


def spread(count: int, rest: float, is_root: bool) -> Callable[..., Any]:
    """Return an operator that computes variances (or standard deviations) from moments.

    `count` is the number of moments, 3 or 4 for complex numbers; `rest` is the divisor.
    """
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


def _counted_numbers_of(x: LazyArray, kind: Dtype) -> LazyArray:
    return applied(_counted, (are_numbers(x), lazy_as(x, kind), kind.type(0)), "")


_counted_numbers = Kept(_counted_numbers_of)


def counted_sums(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, Any]:
    """Return the counts and the sums of masked elements; the mask is lazy or `NUMBERS`."""
    elements: Any
    if mask is NUMBERS:
        elements = _counted_numbers((x,), "", kind)
    else:
        elements = applied(_counted, (mask, lazy_as(x, kind), kind.type(0)), "")
    results = reduce(elements, (0, 0), added, axis=axis, keepdims=keepdims)
    return results[0], results[1]
