"""Places of elements among sorted ones, and in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.searchsorted import binned
from gpualgo._algorithms.searchsorted import searchsorted as places_of
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy import is_lazy
from gpualgo._operators.markers import second
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import AS_THEY_ARE, NotTaken, array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._orders import lookups, of_complex
from gpualgo.numpy._orders.gathers import aligned


@numpys(
    "One search; with `sorter` a gather before it", arrays=2, orders=True,
    differs="a sorter that points out of range is a ValueError whatever is looked up, and on a GPU "
    "points to the nearest element",
)  # fmt: skip
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return where elements of v belong in a, which is sorted, or which sorter sorts.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.searchsorted([1, 3, 3, 7], [3, 4], side="right")
    array([3, 3])
    """
    where = "searchsorted"
    a, v = _real(a, f"{where}: a"), _real(v, f"{where}: v")
    if len(a.shape) != 1:
        raise ValueError(f"{where}: a must have one dimension, not {len(a.shape)}")
    if sorter is not None:
        a = _in_order(a, array_of(sorter, f"{where}: sorter"))
    return _found(a, v, side, where)


def _real(x: Any, where: str) -> Any:
    """Return an argument as an array that is not lazy: searches look at places everywhere."""
    if type(x) in AS_THEY_ARE:
        return x
    x = array_of(x, where)
    return copy(x) if is_lazy(x) else x


def _in_order(a: Any, sorter: Any) -> Any:
    """Return the elements of a in the order that a sorter has."""
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
        raise ValueError(f"{where}: sorter points out of a, which has {length} elements")
    return copy(lazy.take(aligned(a), sorter, mode="clip"))


def _found(a: Any, v: Any, side: Any, where: str) -> Any:
    """Return the places of v in a, of which a number may be on the host alone."""
    v = _beside(a, v, where)
    own, other = results.dtype_of(a, where), results.dtype_of(v, where)
    if own.kind != "c" and other.kind != "c":
        return places_of(a, v, side=side)
    common = np.result_type(own, other)
    a, v = (
        x if kind == common else copy(lazy.asarray(x).astype(common))
        for x, kind in ((a, own), (v, other))
    )
    return places_of(a, v, side=side, less=of_complex.less)


def _beside(a: Any, v: Any, where: str, names: tuple[str, str] = ("a", "v")) -> Any:
    """Return v where a lies: numbers go there with the kernel that reads them."""
    if is_host(a) or not is_host(v):
        return v
    if v.ndim:
        raise NotTaken(
            f"{where}: {names[1]} is in host memory, and {names[0]} is not; move them to one side "
            "first"
        )
    if a.shape[0]:
        return copy(lazy.transform(second, lazy.asarray(a)[0], v[()]))
    return results.beside(a, v, where)


@numpys(
    "One search; of more than 1024 bins that lie on a GPU a pass over them before it, and one over "
    "the results", arrays=2, orders=True,
    differs="bins on a GPU are not looked at on the host, so that such as neither rise nor fall "
    "raise nothing, and one number before nothing but NaN rises, where NumPy takes it to fall",
)  # fmt: skip
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """Return the number of the bin that each element is in: bins[i-1] <= x < bins[i].

    Bins that fall count the other way round, and with ``right=True`` the end of a bin belongs to
    it.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    array([1, 4, 3])
    """
    where = "digitize"
    x, bins = _real(x, f"{where}: x"), _real(bins, f"{where}: bins")
    for one, name in ((x, "x"), (bins, "bins")):
        if results.dtype_of(one, where).kind == "c":
            raise TypeError(f"{where}: {name} may not be complex")
    if len(bins.shape) != 1:
        raise ValueError(f"{where}: bins must have one dimension, not {len(bins.shape)}")
    side = "left" if right else "right"
    if not is_host(bins):
        x = _beside(bins, x, where, ("bins", "x"))
        return results.beside_first(_digitized(x, bins, side), x, where)
    falls = _falls(bins)
    if falls:
        bins = bins[::-1]
    if not is_host(x):
        bins = results.beside(x, bins, where)
    found = places_of(bins, x, side=side)
    return _turned(found, bins.shape[0]) if falls else found


def _falls(bins: Any) -> bool:
    """Return whether bins fall; raise ValueError where they do neither."""
    np.digitize(np.empty(0), bins)  # which looks at bins alone
    others = np.flatnonzero(bins[1:] != bins[:1])
    return bool(len(others) and not bins[0] < bins[1 + others[0]])


def _turned(found: Any, length: int) -> Any:
    if isinstance(found, (np.generic, np.ndarray)):
        return np.subtract(length, found)
    return transform(_rest, found, np.int64(length))


def _rest(found: Any, length: Any) -> Any:
    return length - found


def _digitized(x: Any, bins: Any, side: str) -> Any:
    """Return places in bins of which nobody has looked whether they rise or fall."""
    length, where = bins.shape[0], "digitize"
    if length < 2:
        return places_of(bins, x, side=side)
    if lookups.is_short_on_gpu(bins, where):
        return binned(bins, x, side, where)
    whole = lazy.asarray(bins)
    first, last = whole[0], whole[-1]
    rising = copy(lazy.transform(_risen, whole, whole[::-1], first, last))
    found = places_of(rising, x, side=side)
    return transform(_counted, found, first, last, np.int64(length))


def _is_falling(first: Any, last: Any) -> Any:
    """Return whether bins with these ends fall: NaN is last in order."""
    return last < first or first != first


def _risen(a: Any, b: Any, first: Any, last: Any) -> Any:
    return np.where(_is_falling(first, last), b, a)


def _counted(found: Any, first: Any, last: Any, length: Any) -> Any:
    return np.where(_is_falling(first, last), length - found, found)
