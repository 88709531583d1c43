"""Searches in sorted arrays and in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.searchsorted import binned
from gpualgo._algorithms.searchsorted import searchsorted as parse_devices
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy import is_lazy
from gpualgo._operators.markers import second
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import ARRAY_TYPES, NotTaken, array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._orders import lookups, of_complex
from gpualgo.numpy._orders.gathers import aligned


@numpys(
    "One search; with `sorter`, one gather before it", arrays=2, orders=True,
    differs="an index in `sorter` out of range always raises a ValueError; on a GPU it is clamped",
)  # fmt: skip
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return the indices at which elements of v belong in a sorted array a.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.searchsorted([1, 3, 3, 7], [3, 4], side="right")
    array([3, 3])
    """
    where = "searchsorted"
    a, v = _evaluated(a, f"{where}: a"), _evaluated(v, f"{where}: v")
    if len(a.shape) != 1:
        raise ValueError(f"{where}: a must have one dimension, not {len(a.shape)}")
    if sorter is not None:
        a = _apply_sorter(a, array_of(sorter, f"{where}: sorter"))
    return _search(a, v, side, where)


def _evaluated(x: Any, where: str) -> Any:
    """Return an argument as an array that is not lazy: searches read elements in any order."""
    if type(x) in ARRAY_TYPES:
        return x
    x = array_of(x, where)
    return copy(x) if is_lazy(x) else x


def _apply_sorter(a: Any, sorter: Any) -> Any:
    """Return the elements of a in the order given by a sorter."""
    length, where = a.shape[0], "searchsorted"
    kind = results.dtype_of(sorter, where)
    if kind.kind not in "iu" or len(sorter.shape) != 1:
        raise TypeError(
            f"{where}: sorter must be integers of one dimension, got {kind} and shape "
            f"{tuple(sorter.shape)}"
        )
    if sorter.shape[0] != length:
        raise ValueError(f"{where}: sorter has {sorter.shape[0]} elements, and a {length}")
    if not length:
        return a
    if is_host(sorter) and not (sorter.min() >= 0 and sorter.max() < length):
        raise ValueError(f"{where}: sorter has an index out of range: a has {length} elements")
    return copy(lazy.take(aligned(a), sorter, mode="clip"))


def _search(a: Any, v: Any, side: Any, where: str) -> Any:
    """Return the insertion points of v in a; only a number v may be on the host alone."""
    v = _on_device_of(a, v, where)
    own, other = results.dtype_of(a, where), results.dtype_of(v, where)
    if own.kind != "c" and other.kind != "c":
        return parse_devices(a, v, side=side)
    common = np.result_type(own, other)
    a, v = (
        x if kind == common else copy(lazy.asarray(x).astype(common))
        for x, kind in ((a, own), (v, other))
    )
    return parse_devices(a, v, side=side, less=of_complex.less)


def _on_device_of(a: Any, v: Any, where: str, names: tuple[str, str] = ("a", "v")) -> Any:
    """Return v on the device of a; a number is copied by a kernel that receives it."""
    if is_host(a) or not is_host(v):
        return v
    if v.ndim:
        raise NotTaken(
            f"{where}: {names[1]} is in host memory, and {names[0]} is not; move one of them first"
        )
    if a.shape[0]:
        return copy(lazy.transform(second, lazy.asarray(a)[0], v[()]))
    return results.beside(a, v, where)


@numpys(
    "One search; with more than 1024 bins on a GPU, one pass before it and one after it",
    arrays=2, orders=True,
    differs="on a GPU bins that are not monotonic raise no error, and bins of one number followed "
    "only by NaN are treated as increasing (NumPy: decreasing)",
)  # fmt: skip
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """Return the index of each element's bin: ``bins[i-1] <= x < bins[i]``.

    Decreasing bins are numbered in reverse. With ``right=True`` a bin includes its right edge.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    array([1, 4, 3])
    """
    where = "digitize"
    x, bins = _evaluated(x, f"{where}: x"), _evaluated(bins, f"{where}: bins")
    for array, name in ((x, "x"), (bins, "bins")):
        if results.dtype_of(array, where).kind == "c":
            raise TypeError(f"{where}: {name} may not be complex")
    if len(bins.shape) != 1:
        raise ValueError(f"{where}: bins must have one dimension, not {len(bins.shape)}")
    side: Any = "left" if right else "right"
    if not is_host(bins):
        x = _on_device_of(bins, x, where, ("bins", "x"))
        return results.in_library_of(_digitize_on_gpu(x, bins, side), x, where)
    is_decreasing = _is_decreasing(bins)
    if is_decreasing:
        bins = bins[::-1]
    if not is_host(x):
        bins = results.beside(x, bins, where)
    indices = parse_devices(bins, x, side=side)
    return _reverse_numbers(indices, bins.shape[0]) if is_decreasing else indices


def _is_decreasing(bins: Any) -> bool:
    """Return whether bins decrease; raise ValueError if they neither increase nor decrease."""
    np.digitize(np.empty(0), bins)  # checks only bins
    differing = np.flatnonzero(bins[1:] != bins[:1])
    return bool(len(differing) and not bins[0] < bins[1 + differing[0]])


def _reverse_numbers(indices: Any, length: int) -> Any:
    if isinstance(indices, (np.generic, np.ndarray)):
        return np.subtract(length, indices)
    return transform(_reverse_number, indices, np.int64(length))


def _reverse_number(index: Any, length: Any) -> Any:
    return length - index


def _digitize_on_gpu(x: Any, bins: Any, side: Any) -> Any:
    """Return bin numbers for bins on a GPU, whose direction the host does not know."""
    length, where = bins.shape[0], "digitize"
    if length < 2:
        return parse_devices(bins, x, side=side)
    if lookups.is_short_on_gpu(bins, where):
        return binned(bins, x, side, where)
    lazy_bins = lazy.asarray(bins)
    first, last = lazy_bins[0], lazy_bins[-1]
    increasing = copy(lazy.transform(_increasing_element, lazy_bins, lazy_bins[::-1], first, last))
    indices = parse_devices(increasing, x, side=side)
    return transform(_bin_number, indices, first, last, np.int64(length))


def _ends_decrease(first: Any, last: Any) -> Any:
    """Return whether bins with these ends decrease; NaN is the largest."""
    return last < first or first != first


def _increasing_element(a: Any, b: Any, first: Any, last: Any) -> Any:
    return np.where(_ends_decrease(first, last), b, a)


def _bin_number(index: Any, first: Any, last: Any, length: Any) -> Any:
    return np.where(_ends_decrease(first, last), length - index, index)
