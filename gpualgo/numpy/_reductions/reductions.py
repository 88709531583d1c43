"""Sums, products, any, all and counts: one reduction each, conversions and masks included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms import extremes
from gpualgo._algorithms.find import count
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform import transform
from gpualgo._lazy.combining import zipped
from gpualgo._pipeline import checks
from gpualgo.lazy import LazyArray, arange
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import ARRAY_TYPES
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds import (
    BOOL,
    INDEX,
    UNSET,
    arrayed,
    axis_of,
    cast_result,
    check_some,
    flag_of,
    is_on_host,
    reduced,
)

MANY_BOOLS = 1 << 22  # below, NumPy's loops are faster than two threads here

_QUIET = "no warnings for overflow or NaN"


@numpys("One reduction", differs=_QUIET)
def sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the sum of the elements over axes.

    >>> int(gnp.sum([1, 2, 3]))
    6
    """
    return reduced(np.add, a, axis, dtype, out, keepdims, initial, where, "sum")


@numpys("One reduction", differs=_QUIET)
def prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = UNSET,
    initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the product of the elements over axes.

    >>> int(gnp.prod([1, 2, 3, 4]))
    24
    """
    return reduced(np.multiply, a, axis, dtype, out, keepdims, initial, where, "prod")


@numpys("One reduction", few_bools=MANY_BOOLS)
def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, *, where: Any = UNSET
) -> Any:
    """Return whether any element over axes is true.

    >>> bool(gnp.any([0, 3, 0]))
    True
    """
    return reduced(np.logical_or, a, axis, None, out, keepdims, UNSET, where, "any")


@numpys("One reduction", few_bools=MANY_BOOLS)
def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, *, where: Any = UNSET
) -> Any:
    """Return whether all elements over axes are true.

    >>> bool(gnp.all([1, 3, 0]))
    False
    """
    return reduced(np.logical_and, a, axis, None, out, keepdims, UNSET, where, "all")


def _is_true(x: Any) -> Any:
    return x != 0


@numpys("One reduction", few=1 << 13, few_bools=MANY_BOOLS)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the number of elements over axes that are not zero.

    >>> int(gnp.count_nonzero([0, 3, 0, -1]))
    2
    """
    name = "count_nonzero"
    a, keepdims = arrayed(a, name), flag_of(keepdims, name)
    axis = axis_of(axis, a.ndim, name)
    if function.dtype_of(a, name) == BOOL:
        return reduce(a, axis=axis, keepdims=keepdims, dtype=np.int64)
    return count(a, _is_true, axis=axis, keepdims=keepdims)


# --- The least and the greatest elements, and their indices.


@numpys("One reduction")
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the largest element over axes; NaN if there is a NaN.

    >>> int(gnp.max([3, 1, 4, 1]))
    4
    """
    return reduced(np.maximum, a, axis, None, out, keepdims, initial, where, "max")


@numpys("One reduction")
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the smallest element over axes; NaN if there is a NaN.

    >>> int(gnp.min([3, 1, 4, 1]))
    1
    """
    return reduced(np.minimum, a, axis, None, out, keepdims, initial, where, "min")


@numpys("One reduction")
def amax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the largest element over axes, as `max`.

    >>> int(gnp.amax([3, 1, 4, 1]))
    4
    """
    return reduced(np.maximum, a, axis, None, out, keepdims, initial, where, "amax")


@numpys("One reduction")
def amin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET, initial: Any = UNSET,
    where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return the smallest element over axes, as `min`.

    >>> int(gnp.amin([3, 1, 4, 1]))
    1
    """
    return reduced(np.minimum, a, axis, None, out, keepdims, initial, where, "amin")


@numpys("One reduction of (min, max) pairs")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = UNSET) -> Any:
    """Return the difference between the largest and the smallest element over axes.

    >>> int(gnp.ptp([3, 1, 4, 1]))
    3
    """
    a, keepdims, out = arrayed(a, "ptp"), flag_of(keepdims, "ptp"), function.out_of(out, "ptp")
    axis, kind = axis_of(axis, a.ndim, "ptp"), function.dtype_of(a, "ptp")
    if 0 in a.shape:
        check_some(np.maximum, a.shape, axis, UNSET, "ptp", cure="")
    if kind.kind == "c":
        pair = zipped((a, a), "ptp")
        high, low = reduce(pair, None, _ends_of_complex, axis=axis, keepdims=keepdims)
    else:
        low, high = extremes.minmax(a, axis, keepdims=keepdims)
    if kind == BOOL:
        raise TypeError("ptp: bools have no differences; pass integers, or use any and all")
    wanted = kind if out is None else function.check_cast(kind, out, "ptp")
    if kind != wanted and np.can_cast(kind, wanted):  # NumPy subtracts in out's dtype
        kind = wanted
        as_array = np.asarray if is_on_host(high) else lazy_of
        high, low = (as_array(one).astype(kind) for one in (high, low))
    if is_on_host(high):
        return cast_result(np.subtract(high, low), kind, out, "ptp")
    return transform(np.subtract, high, low, dtype=wanted, out=out)


def less(a: Any, b: Any) -> Any:
    """Return whether complex a precedes b: by real part, then imaginary part."""
    return (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))


def _ends_of_complex(a: Any, b: Any) -> Any:
    is_higher = (a[0] == a[0]) & ((b[0] != b[0]) | less(a[0], b[0]))
    is_lower = (a[1] == a[1]) & ((b[1] != b[1]) | less(b[1], a[1]))
    return b[0] if is_higher else a[0], b[1] if is_lower else a[1]


# --- indices ----------------------------------------------------------------------------------


def _larger_and_index(a: Any, b: Any) -> Any:
    is_later = (a[0] == a[0]) & ((b[0] != b[0]) | less(a[0], b[0]))
    return b[0] if is_later else a[0], b[1] if is_later else a[1]


def _smaller_and_index(a: Any, b: Any) -> Any:
    is_later = (a[0] == a[0]) & ((b[0] != b[0]) | less(b[0], a[0]))
    return b[0] if is_later else a[0], b[1] if is_later else a[1]


def places(x: LazyArray, axis: Any, name: str) -> LazyArray:
    """Return the index of each element along the axis, or among all elements."""
    axes = checks.axes_of(axis, x.ndim, name)
    along = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
    return arange(int(np.prod(along))).reshape(along).broadcast_to(x.shape)


def place_axis(a: Any, axis: Any, name: str) -> Any:
    """Return the axis of a search; raise ValueError if there are no elements to choose from."""
    axis = checks.plain_axis(axis, name)
    axis = None if not a.ndim and axis in (0, -1) else axis
    if 0 in [a.shape[i] for i in checks.axes_of(axis, a.ndim, name)]:
        raise ValueError(f"{name}: x of shape {tuple(a.shape)} has no elements to choose from")
    return axis


def index_out(out: Any, name: str) -> Any:
    """Return ``out=`` of a search, which must hold integers."""
    out = function.out_of(out, name)
    if out is not None and not np.can_cast(function.dtype_of(out, name), INDEX, "safe"):
        raise TypeError(f"{name}: out has dtype {out.dtype}; pass one of {INDEX}")
    return out


def _search(
    search: Callable[..., Any], of_complex: Any, a: Any, axis: Any, out: Any, keepdims: Any,
    name: str,
) -> Any:  # fmt: skip
    if out is None and keepdims is UNSET and (axis is None or type(axis) is int):
        is_plain = type(a) in ARRAY_TYPES and 0 not in a.shape and len(a.shape)
        if is_plain and function.dtype_of(a, name).kind != "c":
            return search(a, axis)
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), index_out(out, name)
    axis = place_axis(a, axis, name)
    if function.dtype_of(a, name).kind == "c":
        x = lazy_of(a)
        pair = (x, places(x, axis, name))
        index = reduce(pair, None, of_complex, axis=axis, keepdims=keepdims)[1]
        return cast_result(index, INDEX, out, name)
    if out is not None and not is_on_host(out) and function.dtype_of(out, name) == INDEX:
        return search(a, axis, keepdims=keepdims, out=out)
    return cast_result(search(a, axis, keepdims=keepdims), INDEX, out, name)


@numpys("One reduction of (element, index) pairs")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first largest element, or of the first NaN.

    >>> int(gnp.argmax([3, 4, 1, 4]))
    1
    """
    return _search(extremes.argmax, _larger_and_index, a, axis, out, keepdims, "argmax")


@numpys("One reduction of (element, index) pairs")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first smallest element, or of the first NaN.

    >>> int(gnp.argmin([3, 1, 4, 1]))
    1
    """
    return _search(extremes.argmin, _smaller_and_index, a, axis, out, keepdims, "argmin")
