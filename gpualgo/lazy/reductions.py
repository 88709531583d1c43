"""Reductions of lazy arrays as NumPy's: rules of ufuncs, sums, moments, products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._base import dtypes
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks

Dtype = np.dtype[Any]

# Rules for the dtype of results: as NumPy's sums, the elements' dtype, bool, or the ufunc's.
SUM, SAME, TRUTH, OWN = "sum", "same", "truth", "own"
# The associative ufuncs, which may be computed in any grouping.
RULES: dict[np.ufunc, str] = {
    np.add: SUM, np.multiply: SUM, np.minimum: SAME, np.maximum: SAME, np.fmin: SAME,
    np.fmax: SAME, np.bitwise_and: SAME, np.bitwise_or: SAME, np.bitwise_xor: SAME, np.gcd: SAME,
    np.lcm: SAME, np.hypot: OWN, np.logaddexp: OWN, np.logaddexp2: OWN, np.logical_and: TRUTH,
    np.logical_or: TRUTH, np.logical_xor: TRUTH,
}  # fmt: skip


def wide(kind: Dtype) -> Dtype:
    """Return the dtype in which sums and moments are computed: float32 for 16-bit floats.

    Sums of ones in float16 would stop growing at 2048, in bfloat16 at 256.
    """
    is_half = dtypes.kind(kind) == "f" and kind.itemsize == 2
    return np.dtype(np.float32) if is_half else kind


def sum_dtype(kind: Dtype) -> Dtype:
    if kind.kind in "bi" and kind.itemsize < 8:
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if kind.kind == "u" else kind


def wide_of(ufunc: np.ufunc, kind: Dtype) -> Dtype:
    return wide(kind) if RULES[ufunc] is SUM else kind


# The built-in functors of these ufuncs need an order; operators have NumPy's of complex numbers.
_COMPLEX_OPERATORS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: lambda a, b: np.maximum(a, b), np.minimum: lambda a, b: np.minimum(a, b),
    np.fmax: lambda a, b: np.fmax(a, b), np.fmin: lambda a, b: np.fmin(a, b),
}  # fmt: skip
_FROM_IDENTITY = frozenset((np.gcd, np.hypot, np.logaddexp, np.logaddexp2))
_INTEGER_OPERATORS: dict[np.ufunc, np.ufunc] = {np.fmax: np.maximum, np.fmin: np.minimum}


def started(ufunc: np.ufunc, kind: Dtype) -> Any:
    """Return NumPy's initial value if it affects results: sums of -0.0 are 0.0, gcd(-4) is 4."""
    if ufunc in _FROM_IDENTITY:
        return ufunc.identity
    if ufunc is np.add and dtypes.kind(kind) in "fc":
        return 0
    return 1 if ufunc is np.multiply and kind.kind == "c" else None


def operator_of(ufunc: np.ufunc, kind: Dtype) -> Any:
    if kind.kind == "c":
        return _COMPLEX_OPERATORS.get(ufunc, ufunc)
    return _INTEGER_OPERATORS.get(ufunc, ufunc) if kind.kind in "biu" else ufunc


def lazy_as(x: Any, kind: Dtype) -> LazyArray:
    lazy = zipped(x, "")
    return lazy if lazy.dtype == kind else lazy.astype(kind)


# --- Means and variances in one reduction, for NumPy functions of lazy and other arrays.
#
# Counts, means and sums of squares are combined by the formulas of Welford and Chan et al., which
# avoid cancellation (doi:10.1080/00401706.1962.10490022, doi:10.1080/00031305.1983.10483115).


def float_of(kind: Dtype) -> Dtype:
    return np.dtype(np.float64) if kind.kind in "biu" else kind


def real_of(kind: Dtype) -> Dtype:
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def _combined(a: Any, b: Any) -> Any:
    count, distance = a[0] + b[0], b[1] - a[1]
    move = distance * (b[0] / max(count, 1))  # both counts may be 0
    squares = distance * (move * a[0])  # of 0 and a distance whose square overflows: 0, not NaN
    return count, a[1] + move, a[2] + b[2] + squares


def _combined_complex(a: Any, b: Any) -> Any:
    count, x, y = a[0] + b[0], b[1] - a[1], b[2] - a[2]
    share = b[0] / max(count, 1)
    u, v = x * share, y * share
    return count, a[1] + u, a[2] + v, a[3] + b[3] + x * (u * a[0]) + y * (v * a[0])


# Declared commutative: another order changes rounding only.
_COMBINE, _COMBINE_COMPLEX = (
    Operator(fn, commutative=True) for fn in (_combined, _combined_complex)
)


def _one(x: Any) -> Any:
    return 1.0, x, 0.0


def _one_complex(x: Any) -> Any:
    return 1.0, x.real, x.imag, 0.0


def _one_where(mask: Any, x: Any) -> Any:
    return np.float64(mask), np.where(mask, x, 0), 0.0


def _one_complex_where(mask: Any, x: Any) -> Any:
    return np.float64(mask), np.where(mask, x.real, 0), np.where(mask, x.imag, 0), 0.0


_moment_elements = ExpressionCache(
    lambda x, acc: applied(_one_complex if acc.kind == "c" else _one, (lazy_as(x, acc),), "")
)
_numbers = ExpressionCache(
    lambda x, acc: applied(_one_where, (are_numbers(x), lazy_as(x, acc)), "")
)

# Tuples are reused, as cached plans compare the initial value by identity.
_INITIAL: dict[int, Any] = {count: (0.0,) * count for count in (3, 4)}

NUMBERS: Any = object()
"""A mask that selects all elements of a real array that are not NaN."""


def are_numbers(x: Any) -> Any:
    x = zipped(x, "")
    return np.equal(x, x)


def moments(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, ...]:
    """Return counts, means and sums of squared deviations from them, computed as `kind`.

    Complex numbers have two means, of real and imaginary parts. `mask` is a lazy array with x's
    shape, `NUMBERS` or None. Counts are exact with a mask. Without one the caller knows them, and
    they have the dtype of the sums.
    """
    acc = wide(kind)
    real, is_complex = real_of(acc), acc.kind == "c"
    op = _COMBINE_COMPLEX if is_complex else _COMBINE
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
        elements = _moment_elements((x,), "", acc)
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
    return spread(len(found), rest, is_root)(*found[1:])


def spread(count: int, rest: float, is_root: bool) -> Callable[..., Any]:
    """Return an operator that computes variances (or standard deviations) from moments.

    `count` is the number of moments, 3 or 4 for complex numbers; `rest` is the divisor.
    """

    def root(variance: Any) -> Any:
        return np.sqrt(variance) if is_root else variance

    if count == 3:
        return lambda center, squares: root(_finite(center, squares) / rest)
    return lambda x, y, squares: root(_finite_complex(x, y, squares) / rest)


def _squared(x: Any) -> Any:
    return x * x


def _squared_modulus(x: Any) -> Any:
    return x.real * x.real + x.imag * x.imag


def _distances(x: Any, mean: Any, acc: Any) -> Any:
    return np.subtract(x if x.dtype == acc else x.astype(acc), mean)


_DISTANCES = ExpressionCache(_distances)


def squares(x: Any, mean: Any, acc: Any) -> Any:
    """Return squared distances from a mean."""
    distance = _distances(x, mean, acc)
    is_complex = distance.dtype.kind == "c"
    return applied(_squared_modulus if is_complex else _squared, (distance,), "")


SQUARES = ExpressionCache(squares)


# A core reads so many float32 twice in less time than it divides for each.
READ_TWICE = 64


def mean_by_distances(a: Any, axis: Any, acc: Any, count: int, name: str) -> Any:
    """Return means over axes, which are kept, with those of equal elements exact."""
    axes = checks.axes_of(axis, a.ndim, name)
    first = a[tuple(slice(1 if i in axes else None) for i in range(a.ndim))].astype(acc)
    distances = _DISTANCES((a, first), name, acc)
    total = reduce(distances, 0, axis=axis, keepdims=True, dtype=acc)
    return first + total / acc.type(count)


def _counted(mask: Any, x: Any, none: Any) -> Any:
    return np.int64(mask), np.where(mask, x, none)


def _added(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


added = Operator(_added, commutative=True)


def _counts_and_elements(x: Any, mask: Any, kind: Dtype) -> Any:
    return applied(_counted, (mask, lazy_as(x, kind), kind.type(0)), "")


_counted_numbers = ExpressionCache(lambda x, kind: _counts_and_elements(x, are_numbers(x), kind))


def counted_sums(x: Any, mask: Any, axis: Any, kind: Dtype, keepdims: bool) -> tuple[Any, Any]:
    """Return the counts and the sums of masked elements; the mask is lazy or `NUMBERS`."""
    elements: Any
    if mask is NUMBERS:
        elements = _counted_numbers((x,), "", kind)
    else:
        elements = _counts_and_elements(x, mask, kind)
    results = reduce(elements, (0, 0), added, axis=axis, keepdims=keepdims)
    return results[0], results[1]


def count_of(shape: tuple[int, ...], axis: Any, name: str) -> int:
    """Return how many elements are reduced to one result."""
    return math.prod(shape[i] for i in checks.axes_of(axis, len(shape), name))


# --- Products of vectors.


def products(x: Any, y: Any, is_conjugate: bool, name: str) -> tuple[LazyArray, Dtype]:
    """Return the products of two arrays, and the dtype of their sum; 16-bit floats in float32."""
    kinds = tuple(dtypes.as_dtype(one.dtype, name) for one in (x, y))
    kind = np.multiply.resolve_dtypes((*kinds, None))[2]
    product = _PRODUCT
    if is_conjugate and kinds[0].kind == "c":
        product = _CONJUGATED
    elif wide(kind) != kind:
        product = _IN_FLOAT32
    return lazy_as(product((x, y), name), wide(kind)), kind


def _conjugated(a: Any, b: Any) -> Any:
    return np.conjugate(a) * b


def _in_float32(a: Any, b: Any) -> Any:
    return np.float32(a) * np.float32(b)


_PRODUCT, _CONJUGATED, _IN_FLOAT32 = (
    ExpressionCache(lambda x, y, op=op: applied(op, (x, y), "product"))
    for op in (np.multiply, _conjugated, _in_float32)
)
