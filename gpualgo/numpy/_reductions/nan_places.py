"""Indices of the least and the greatest numbers, ignoring NaN."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms import extremes
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform import transform
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.kept import Kept
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds.reducing import INDEX, UNSET, arrayed, flag_of, is_there, settled
from gpualgo.numpy._reductions.extremes import index_out, less, place_axis, places
from gpualgo.numpy._reductions.nan import has_nan

FEW = 1 << 18  # with NaN NumPy needs two vectorised passes, this package one of pairs


def _lesser_and_index(a: Any, b: Any) -> Any:
    keeps_a = b[0] != b[0] or a[0] <= b[0]
    return a[0] if keeps_a else b[0], a[1] if keeps_a else b[1]


def _greater_and_index(a: Any, b: Any) -> Any:
    keeps_a = b[0] != b[0] or a[0] >= b[0]
    return a[0] if keeps_a else b[0], a[1] if keeps_a else b[1]


@functools.lru_cache(64, typed=True)
def _index_or_minus_one(filler: Any) -> Callable[..., Any]:
    """Return an operator for NumPy's index: -1 if all are NaN.

    An extreme that equals the filler for NaN has the first index, as in NumPy.
    """
    return lambda value, index: np.where(value != value, -1, np.where(value == filler, 0, index))


# Complex numbers with an infinite part may be less or greater than the filler for NaN.


def _filled_triple(x: Any, index: Any, filler: Any) -> Any:
    return np.where(x == x, x, filler), index, x == x


def _first_least(a: Any, b: Any) -> Any:
    is_later = less(b[0], a[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _first_greatest(a: Any, b: Any) -> Any:
    is_later = less(a[0], b[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _complex_index(has_numbers: Any, index: Any) -> Any:
    return np.where(has_numbers, index, -1)


_PAIRS = Kept(lambda x, axis: zipped((x, places(x, axis, "")), ""))


def _search(
    search: Callable[..., Any], ops: tuple[Any, Any], none: float, a: Any, axis: Any, out: Any,
    keepdims: Any, name: str,
) -> Any:  # fmt: skip
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), index_out(out, name)
    axis, kind = place_axis(a, axis, name), results.dtype_of(a, name)
    if not has_nan(a, name):
        return settled(search(a, axis, keepdims=keepdims), INDEX, out, name)
    if is_host(a) and axis is None and kind.kind != "c":
        index = search(a, None, keepdims=keepdims)  # it stops at the first NaN
        value = a[np.unravel_index(np.ravel(index)[0], a.shape)]
        if value == value:
            return settled(index, INDEX, out, name)
    filler = kind.type(none)
    if kind.kind == "c":
        x = lazy_of(a)
        elements: Any = applied(_filled_triple, (x, places(x, axis, name), filler), name)
        _, *parts = reduce(elements, None, ops[1], axis=axis, keepdims=keepdims)
        parts, op = parts[::-1], _complex_index
    else:
        pairs = _PAIRS((a,), name, axis)
        parts = [*reduce(pairs, None, ops[0], axis=axis, keepdims=keepdims)]
        op = _index_or_minus_one(filler)
    if is_there(parts[0]):
        index = op(*parts)
        if np.any(index < 0):
            raise ValueError("All-NaN slice encountered")
        return settled(index, INDEX, out, name)
    index = transform(op, *parts, dtype=INDEX)
    return index if out is None else settled(index, INDEX, out, name)


_NOWHERE = "slices of device arrays without numbers give the index -1 (NumPy: ValueError)"
_PASSES = "One reduction of (element, index) pairs; host arrays are first searched for a NaN"


@numpys(_PASSES, few=FEW, orders=True, differs=_NOWHERE)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first smallest element; NaN counts as infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmin([float("nan"), 3.0, 1.0]))
    2
    """
    ops = _lesser_and_index, _first_least
    return _search(extremes.argmin, ops, np.inf, a, axis, out, keepdims, "nanargmin")


@numpys(_PASSES, few=FEW, orders=True, differs=_NOWHERE)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the first largest element; NaN counts as -infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmax([float("nan"), 3.0, 1.0]))
    1
    """
    ops = _greater_and_index, _first_greatest
    return _search(extremes.argmax, ops, -np.inf, a, axis, out, keepdims, "nanargmax")
