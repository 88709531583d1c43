"""NumPy reductions and scans of lazy arrays, each by one call of `reduce` or `inclusive_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.scan import inclusive_scan
from gpualgo._algorithms.transform import transform
from gpualgo._arrays.view import as_view
from gpualgo._base import dtypes
from gpualgo._lazy import ufuncs
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import applied, zipped
from gpualgo._pipeline import checks
from gpualgo.lazy import moments

# Rules for the dtype of results: as NumPy's sums, the elements' dtype, bool, or the ufunc's.
SUM, SAME, BOOL, OWN = "sum", "same", "bool", "own"
# The associative ufuncs, which may be computed in any grouping.
RULES: dict[np.ufunc, str] = {
    np.add: SUM, np.multiply: SUM, np.minimum: SAME, np.maximum: SAME, np.fmin: SAME,
    np.fmax: SAME, np.bitwise_and: SAME, np.bitwise_or: SAME, np.bitwise_xor: SAME, np.gcd: SAME,
    np.lcm: SAME, np.hypot: OWN, np.logaddexp: OWN, np.logaddexp2: OWN, np.logical_and: BOOL,
    np.logical_or: BOOL, np.logical_xor: BOOL,
}  # fmt: skip

Dtype = np.dtype[Any]


def reduced(
    ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
    keepdims: bool = False, initial: Any = None, name: str = "",
) -> Any:  # fmt: skip
    """Return ``ufunc.reduce``; sums of 16-bit floats are rounded once, at the end."""
    name = name or f"np.{ufunc.__name__}.reduce"
    x, kind = _elements(ufunc, a, dtype, name)
    acc = wide_of(ufunc, kind)
    ufuncs.no_lazy_out(out, name)
    axis = axis_of(axis, x.ndim, name)
    is_direct = out is not None and acc == kind and dtype_of(out, name) == kind
    if initial is None:
        initial = started(ufunc, kind)
    result = reduce(
        _cast(x, acc), initial, operator_of(ufunc, kind), axis=axis, keepdims=bool(keepdims),
        dtype=acc, out=out if is_direct else None,
    )  # fmt: skip
    if is_direct or (out is None and acc == kind):
        return result
    return finished(_same, (result,), kind if out is None else dtype_of(out, name), out)


def accumulated(
    ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, name: str = ""
) -> Any:
    """Return ``ufunc.accumulate``; each sum of 16-bit floats is rounded once."""
    name = name or f"np.{ufunc.__name__}.accumulate"
    x, kind = _elements(ufunc, a, dtype, name)
    acc = wide_of(ufunc, kind)
    ufuncs.no_lazy_out(out, name)
    if not x.ndim and axis is not None:
        raise TypeError(f"{name}: x has no axes; pass axis=None")
    axis = checks.plain_axis(axis, name)
    result_dtype = kind if out is None else dtype_of(out, name)
    if result_dtype == acc:
        return inclusive_scan(_cast(x, acc), None, ufunc, axis=axis, dtype=acc, out=out)
    result = inclusive_scan(_cast(x, acc), None, ufunc, axis=axis, dtype=acc)
    return finished(_same, (result,), result_dtype, out)


def _elements(ufunc: np.ufunc, a: Any, dtype: Any, name: str) -> tuple[LazyArray, Dtype]:
    """Return the elements to combine, and the dtype of the result."""
    if ufunc not in RULES:
        raise TypeError(
            f"{name}: {ufunc.__name__} is not known to be associative, which parallel reductions "
            "and scans need; materialize it with gpualgo.copy(x) or np.asarray(x) first"
        )
    x = zipped(a, f"{name}: a")
    if RULES[ufunc] is BOOL:
        check_bool(ufunc, dtype, name)
        return applied(np.bool_, (x,), name), np.dtype(bool)
    if dtype is not None:
        return x, dtypes.as_dtype(dtype, name)
    if RULES[ufunc] is OWN:
        return x, ufunc.resolve_dtypes((x.dtype, x.dtype, None))[2]
    return x, sum_dtype(x.dtype) if RULES[ufunc] is SUM else x.dtype


def check_bool(ufunc: np.ufunc, dtype: Any, name: str) -> None:
    """Raise TypeError for ``dtype=`` other than bool, for ufuncs that return bool."""
    if dtype is not None and np.dtype(dtype) != bool:
        raise TypeError(f"{name}: dtype={dtype!r} is not bool, which {ufunc.__name__} returns")


def sum_dtype(kind: Dtype) -> Dtype:
    if kind.kind in "bi" and kind.itemsize < 8:
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if kind.kind == "u" else kind


def wide(kind: Dtype) -> Dtype:
    """Return the dtype in which sums are computed: float32 for 16-bit floats.

    Sums of ones in float16 would stop growing at 2048, in bfloat16 at 256.
    """
    is_half = dtypes.kind(kind) == "f" and kind.itemsize == 2
    return np.dtype(np.float32) if is_half else kind


def wide_of(ufunc: np.ufunc, kind: Dtype) -> Dtype:
    """Return the dtype in which a ufunc combines elements, for results of a dtype."""
    return wide(kind) if RULES[ufunc] is SUM else kind


def _larger(a: Any, b: Any) -> Any:
    """Return the larger complex number, by real and then imaginary part; the first with a NaN."""
    is_less = (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))
    return b if (a == a) & ((b != b) | is_less) else a


def _smaller(a: Any, b: Any) -> Any:
    is_more = (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag))
    return b if (a == a) & ((b != b) | is_more) else a


def _larger_number(a: Any, b: Any) -> Any:
    is_less = (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))
    return b if (b == b) & ((a != a) | is_less) else a


def _smaller_number(a: Any, b: Any) -> Any:
    is_more = (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag))
    return b if (b == b) & ((a != a) | is_more) else a


_COMPLEX_OPERATORS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.maximum: _larger, np.minimum: _smaller, np.fmax: _larger_number, np.fmin: _smaller_number,
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
    """Return the operator that combines elements of a dtype like a ufunc."""
    if kind.kind == "c":
        return _COMPLEX_OPERATORS.get(ufunc, ufunc)
    return _INTEGER_OPERATORS.get(ufunc, ufunc) if kind.kind in "biu" else ufunc


def _cast(x: LazyArray, kind: Dtype) -> LazyArray:
    return x if x.dtype == kind else x.astype(kind)


def axis_of(axis: Any, ndim: int, name: str) -> Any:
    axis = checks.plain_axes(axis, name)
    return None if not ndim and axis in (0, -1) else axis


def dtype_of(out: Any, name: str) -> Dtype:
    return as_view(out, f"{name}: out").dtype


def _same(value: Any) -> Any:
    return value


def finished(op: Callable[..., Any], results: tuple[Any, ...], kind: Dtype, out: Any) -> Any:
    """Apply op to a reduction's results and convert to a dtype."""
    if not isinstance(results[0], (np.generic, np.ndarray)):
        return transform(op, *results, dtype=kind, out=out)
    value = np.asarray(op(*results)).astype(kind)
    if out is None:
        return value[()]
    if out.shape != value.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {value.shape}")
    out[...] = value
    return out


# --- NumPy functions --------------------------------------------------------------------------


def sums(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None,
    ) -> Any:  # fmt: skip
        return reduced(ufunc, a, axis, dtype, out, keepdims, initial, name)

    return call


def extremes(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    def call(
        a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None
    ) -> Any:
        return reduced(ufunc, a, axis, None, out, keepdims, initial, name)

    return call


def scans(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return accumulated(ufunc, a, axis, dtype, out, name)

    return call


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    name = "np.count_nonzero"
    axis = axis_of(axis, zipped(a, name).ndim, name)
    return reduce(applied(np.bool_, (a,), name), axis=axis, keepdims=keepdims, dtype=np.int64)


def count_of(shape: tuple[int, ...], axis: Any, name: str) -> int:
    """Return how many elements are reduced to one result."""
    count = 1
    for i in checks.axes_of(axis, len(shape), name):
        count *= shape[i]
    return count


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    name = "np.mean"
    x = zipped(a, f"{name}: a")
    kind = moments.float_of(x.dtype if dtype is None else dtypes.as_dtype(dtype, name))
    axis = axis_of(axis, x.ndim, name)
    total = reduced(np.add, x, axis, wide(kind), None, keepdims, None, name)
    count = float(count_of(x.shape, axis, name))
    return finished(lambda s: s / count, (total,), kind if out is None else dtype_of(out, name),
                    out)  # fmt: skip


def variances(is_root: bool, name: str) -> Callable[..., Any]:
    """Return ``np.var`` or ``np.std``, computed by one reduction."""

    def call(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, correction: Any = None,
    ) -> Any:  # fmt: skip
        ufuncs.no_lazy_out(out, name)
        x = zipped(a, f"{name}: a")
        kind = moments.float_of(x.dtype if dtype is None else dtypes.as_dtype(dtype, name))
        axis = axis_of(axis, x.ndim, name)
        divisor = count_of(x.shape, axis, name) - (ddof if correction is None else correction)
        results = moments.moments(x, None, axis, kind, keepdims)
        result_dtype = moments.real_of(kind) if out is None else dtype_of(out, name)
        op = moments.spread(len(results), float(max(divisor, 0)), is_root)
        return finished(op, results[1:], result_dtype, out)

    return call


var, std = variances(False, "np.var"), variances(True, "np.std")
