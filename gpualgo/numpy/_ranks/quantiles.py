"""Medians, quantiles and percentiles: elements of few ranks, and interpolation between them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy import is_lazy
from gpualgo._operators.tokens import same
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._ranks import computed
from gpualgo.numpy._ranks import quantile_methods as methods
from gpualgo.numpy._ranks.computed import Rows, at_ranks, rows_of

_UNSET: Any = np._NoValue
FEW_WITH_WEIGHTS = 1 << 15  # 4096: NumPy 75 µs, here 480; 2^20: 36 ms or more, 18 to 46

# --- results ----------------------------------------------------------------------------------


def finished(
    found: Any, rows: Rows, before: tuple[int, ...], keepdims: Any, out: Any, casting: str,
    where: str,
) -> Any:  # fmt: skip
    """Return a result in its shape, written to ``out`` if given; 0-d NumPy arrays as numbers."""
    keeps_axes = keepdims is not _UNSET and bool(keepdims)
    shape = (*before, *(rows.kept if keeps_axes else rows.shape))
    is_numpys = isinstance(found, (np.generic, np.ndarray))
    if tuple(found.shape) != shape:
        found = found.reshape(shape) if is_numpys else copy(lazy.asarray(found).reshape(shape))
    if out is None:
        return found[()] if is_numpys and not keeps_axes else found
    kind, wanted = function.dtype_of(found, where), tuple(out.shape)
    kind = function.check_cast(kind, out, where, casting)
    if wanted != shape and (where == "median" or not _broadcasts(shape, wanted)):
        raise ValueError(f"{where}: out has shape {wanted}, the result has {shape}")
    if is_numpys and is_host(out):
        np.copyto(out, found, casting="unsafe")
        return out
    return copy(lazy.asarray(found).astype(kind).broadcast_to(wanted), out=out)


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether NumPy broadcasts a result to out's shape: its last step is an addition."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


# --- quantiles --------------------------------------------------------------------------------


def fractions_of(q: Any, percent: bool, where: str) -> Any:
    """Return q as an array of fractions; q on a GPU stays there and is not validated."""
    if not isinstance(q, (np.ndarray, np.generic, list, tuple, int, float)):
        q = array_of(q, f"{where}: q")
        if not is_host(q):
            return _gpu_fractions(q, percent, where)
    q = np.asarray(q)
    if q.dtype.kind not in "biuf":
        raise TypeError(f"{where}: q must be real numbers, got dtype {q.dtype}")
    if percent:
        q = np.asarray(np.true_divide(q, 100))  # the oldest supported NumPy lacks out=...
    if not np.all((q >= 0) & (q <= 1)):
        most = 100 if percent else 1
        raise ValueError(f"{where}: q must be in the range [0, {most}], got {q * most}")
    if q.ndim > 2:
        raise ValueError(f"{where}: q must be a number or have one axis, got {q.ndim}")
    return q


def _gpu_fractions(q: Any, percent: bool, where: str) -> Any:
    kind = function.dtype_of(q, where)
    if kind.kind not in "biuf":
        raise TypeError(f"{where}: q must be real numbers, got dtype {kind}")
    if len(q.shape) > 2:
        raise ValueError(f"{where}: q must be a number or have one axis, got {len(q.shape)}")
    if percent:
        return copy(lazy.asarray(q) / 100)
    return copy(q) if is_lazy(q) else q


def quantiles(
    a: Any, q: Any, axis: Any, out: Any, method: Any, keepdims: Any, weights: Any, percent: bool,
    where: str,
) -> Any:  # fmt: skip
    """Return quantiles of all elements in rows."""
    a = array_of(a, f"{where}: a")
    own = function.dtype_of(a, where)
    if is_left_to_numpy(a, own, q, method, weights):
        native = getattr(np, where)
        return native(a, q, axis, out, False, method, keepdims, weights=weights)
    if own.kind == "c":
        raise TypeError(f"{where}: a must be an array of real numbers, got dtype {own}")
    out = function.out_of(out, where)
    is_weak = type(q) in (int, float)
    fractions = fractions_of(q, percent, where)
    methods.check(method, where)
    if weights is not None:
        value = computed.weighted_quantiles(a, fractions, axis, method, weights, False, where)
        rows = rows_of(a, axis, where)
        return finished(value, rows, tuple(fractions.shape), keepdims, out, "same_kind", where)
    check_between(own, fractions, method, where)
    rows = rows_of(a, axis, where)
    if not rows.length:
        raise IndexError(f"{where}: rows of a have no elements")
    value = of_rows(rows, fractions, method, is_weak, where)
    return finished(value, rows, tuple(fractions.shape), keepdims, out, "same_kind", where)


def check_between(own: Any, q: Any, method: str, where: str) -> None:
    """Raise TypeError for methods that interpolate bools: NumPy does not subtract them."""
    sample = q if is_host(q) else np.empty(0, function.dtype_of(q, where))
    if own.kind == "b" and not methods.is_picking(sample, method):
        raise TypeError(f"{where}: bools cannot be interpolated; use method='nearest'")


def is_left_to_numpy(a: Any, own: Any, q: Any, method: Any, weights: Any) -> bool:
    """Return whether NumPy computes the result as well: for few floats, and for chosen integers.

    Interpolation between small integers overflows in NumPy.
    """
    if not is_host(a) or (hasattr(q, "dtype") and methods.counting(q, a.size) is not q):
        return False
    if weights is not None:
        return function.is_few(a.size, FEW_WITH_WEIGHTS)
    if own.kind == "f":
        return function.is_few(a.size, function.FEW)
    is_chosen_integer = own.kind in "iu" and own.itemsize > 1 and method in methods.DISCRETE_METHODS
    return is_chosen_integer and function.is_few(a.size, sys.maxsize)


def of_rows(rows: Rows, q: Any, method: str, is_weak: bool, where: str) -> Any:
    """Return quantiles of rows in the shape of q and the rows; NaN for rows that have one."""
    if not is_host(q):
        return computed.quantiles(rows, q, tuple(q.shape), method, False, None, where)
    places = methods.parse_devices(rows.length, q, method, is_weak, rows.dtype)
    ranks = [*places.low.ravel().tolist(), *places.high.ravel().tolist()]
    element, last = at_ranks(rows, ranks or [0])
    if not q.ndim:
        return _single_quantile(rows, element, last, places, (), None)
    out = function.new(rows.x, (*q.shape, *rows.shape), places.kind, where)
    for index in np.ndindex(q.shape):
        _single_quantile(
            rows, element, last, places, index, out[(*index, ...)] if is_host(out) else out[index]
        )
    return out


def _single_quantile(rows: Rows, element: Any, last: Any, places: Any, index: Any, out: Any) -> Any:
    """Return one quantile of each row."""
    low = element(int(places.low[index]))
    if places.part is None:
        return computed.interpolate(same, (low,), (), last, places.kind, out, rows, rows.dtype)
    high = element(int(places.high[index]))
    fraction, complement = places.part[index], places.rest[index]
    op, weight, wide = computed.between(fraction, complement, rows.dtype, places.kind)
    return computed.interpolate(op, (low, high), (weight,), last, places.kind, out, rows, wide)


_DIFFERS = (
    "differences of integers do not overflow; NaN results have the dtype of all others; weights "
    "are added in another order, and on a GPU invalid weights raise no error"
)
_PASSES = "One selection per rank for few ranks, else one sort; one pass that looks for NaN"


@numpys(_PASSES, few=0, differs=_DIFFERS)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Return the q-th quantiles along axes; NaN for a row that has a NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.quantile([4.0, 1.0, 3.0], [0.5, 0.75])
    array([3. , 3.5])
    """
    return quantiles(a, q, axis, out, method, keepdims, weights, False, "quantile")


@numpys(_PASSES, few=0, differs=_DIFFERS)
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    method: Any = "linear", keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Return the q-th percentiles along axes; NaN for a row that has a NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.percentile([4.0, 1.0, 3.0], 75))
    3.5
    """
    return quantiles(a, q, axis, out, method, keepdims, weights, True, "percentile")


# --- medians ----------------------------------------------------------------------------------


@numpys(_PASSES, few=0)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    """Return the medians along axes; NaN for a row that has a NaN.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> float(gnp.median([4, 1, 3, 2]))
    2.5
    """
    a = array_of(a, "median: a")
    if is_host(a) and function.is_few(a.size, function.FEW):
        return np.median(a, axis, out, False, keepdims)
    out = function.out_of(out, "median")
    rows = rows_of(a, axis, "median")
    value = middles(rows) if rows.length else of_nothing(rows, "median")
    return finished(value, rows, (), keepdims, out, "unsafe", "median")


def mean_dtype(own: Any) -> Any:
    """Return the dtype of means."""
    return np.dtype(np.float64) if own.kind in "biu" else own


def middles(rows: Rows) -> Any:
    kind, half = mean_dtype(rows.dtype), rows.length // 2
    is_odd = rows.length % 2 == 1
    element, last = at_ranks(rows, [half] if is_odd else [half - 1, half])
    if is_odd:
        return computed.interpolate(same, (element(half),), (), last, kind, None, rows, kind)
    wide = np.dtype(np.float32) if kind.itemsize == 2 else kind
    pair = element(half - 1), element(half)
    return computed.interpolate(computed.middle, pair, (), last, kind, None, rows, wide)


def of_nothing(rows: Rows, where: str) -> Any:
    """Return NaN, the mean of no elements."""
    if np.prod(rows.shape, dtype=object):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=4)
    kind = mean_dtype(rows.dtype)
    nan = complex(np.nan, np.nan) if kind.kind == "c" else np.nan
    return function.copy_to_device_of(rows.x, np.full(rows.shape, nan, kind), where)
