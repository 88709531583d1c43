"""The places of the least and the greatest numbers, NaN left out."""

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

FEW = 1 << 18  # where NaN are, NumPy looks twice by vectors, and we once by pairs


def _place_of_least(a: Any, b: Any) -> Any:
    stays = b[0] != b[0] or a[0] <= b[0]
    return a[0] if stays else b[0], a[1] if stays else b[1]


def _place_of_greatest(a: Any, b: Any) -> Any:
    stays = b[0] != b[0] or a[0] >= b[0]
    return a[0] if stays else b[0], a[1] if stays else b[1]


@functools.lru_cache(64, typed=True)
def _placing(none: Any) -> Callable[..., Any]:
    """Return what makes places NumPy's: what is worth no more than NaN is at none's, the first."""
    return lambda value, place: np.where(value != value, -1, np.where(value == none, 0, place))


# Complex numbers of one infinite part may be less and more than what NaN counts as.


def _placed(x: Any, place: Any, none: Any) -> Any:
    return np.where(x == x, x, none), place, x == x


def _first_least(a: Any, b: Any) -> Any:
    is_later = less(b[0], a[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _first_greatest(a: Any, b: Any) -> Any:
    is_later = less(a[0], b[0])
    return b[0] if is_later else a[0], b[1] if is_later else a[1], a[2] | b[2]


def _place_of_complex(has_numbers: Any, place: Any) -> Any:
    return np.where(has_numbers, place, -1)


_PLACED = Kept(lambda x, axis: zipped((x, places(x, axis, "")), ""))


def _found(
    search: Callable[..., Any], ops: tuple[Any, Any], none: float, a: Any, axis: Any, out: Any,
    keepdims: Any, name: str,
) -> Any:  # fmt: skip
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), index_out(out, name)
    axis, kind = place_axis(a, axis, name), results.dtype_of(a, name)
    if not has_nan(a, name):
        return settled(search(a, axis, keepdims=keepdims), INDEX, out, name)
    if is_host(a) and axis is None and kind.kind != "c":
        place = search(a, None, keepdims=keepdims)  # which ends at the first NaN
        value = a[np.unravel_index(np.ravel(place)[0], a.shape)]
        if value == value:
            return settled(place, INDEX, out, name)
    worst = kind.type(none)
    if kind.kind == "c":
        x = lazy_of(a)
        elements: Any = applied(_placed, (x, places(x, axis, name), worst), name)
        _, *found = reduce(elements, None, ops[1], axis=axis, keepdims=keepdims)
        found, op = found[::-1], _place_of_complex
    else:
        beside = _PLACED((a,), name, axis)
        found = [*reduce(beside, None, ops[0], axis=axis, keepdims=keepdims)]
        op = _placing(worst)
    if is_there(found[0]):
        place = op(*found)
        if np.any(place < 0):
            raise ValueError("All-NaN slice encountered")
        return settled(place, INDEX, out, name)
    place = transform(op, *found, dtype=INDEX)
    return place if out is None else settled(place, INDEX, out, name)


_NOWHERE = "in device arrays the place in a slice without numbers is -1, and not a ValueError"
_OF_PLACES = (
    "One reduction, of elements and their places; in host memory first a search that ends at a NaN"
)


@numpys(_OF_PLACES, few=FEW, orders=True, differs=_NOWHERE)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the least number: of the first one, NaN counting as infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmin([float("nan"), 3.0, 1.0]))
    2
    """
    ops = _place_of_least, _first_least
    return _found(extremes.argmin, ops, np.inf, a, axis, out, keepdims, "nanargmin")


@numpys(_OF_PLACES, few=FEW, orders=True, differs=_NOWHERE)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = UNSET) -> Any:
    """Return the index of the greatest number: of the first one, NaN counting as -infinity.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> int(gnp.nanargmax([float("nan"), 3.0, 1.0]))
    1
    """
    ops = _place_of_greatest, _first_greatest
    return _found(extremes.argmax, ops, -np.inf, a, axis, out, keepdims, "nanargmax")
