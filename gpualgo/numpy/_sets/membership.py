"""Membership: which elements of one array are in another."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.by_index import reduce_by_index
from gpualgo._algorithms.extremes import minmax
from gpualgo._algorithms.searchsorted import searchsorted
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._api import unique as sorting
from gpualgo._lazy import is_lazy
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._orders import lookups, of_complex, orders

_FEW = 7  # up to this number, each element is compared with all
_TABLE = 6  # bytes of a table for each element, as in NumPy
_DENSE = 16  # elements for each byte of a table from which all cores fill it


def are_among(x: Any, others: Any, invert: bool, where: str) -> Any:
    """Return which elements of x are (or with `invert` are not) in others, in the shape of x."""
    own, kind = (results.dtype_of(one, where) for one in (x, others))
    if not math.prod(others.shape):
        return transform(_true if invert else _false, x)
    if is_host(others) and others.size <= _FEW:
        return _among_few(x, np.asarray(others).reshape(-1), own, invert)
    if own.kind in "biu" and kind.kind in "biu":
        return _among_integers(x, others, own, kind, invert)
    common = np.result_type(own, kind)
    return _among(_as(x, common, own), _as(others, common, kind), invert)


def _true(a: Any) -> Any:
    return True


def _false(a: Any) -> Any:
    return False


def _as(x: Any, kind: Any, own: Any) -> Any:
    return x if kind == own else lazy.asarray(x).astype(kind)


# --- by a search ------------------------------------------------------------------------------


def _among(x: Any, others: Any, invert: bool) -> Any:
    """Search elements in others of the same dtype, after sorting these."""
    is_complex = results.dtype_of(others, "isin").kind == "c"
    in_order = orders.complex_in_order if is_complex else sorting.in_order
    keys, _ = in_order(others, False)
    if not is_complex and lookups.is_short_on_gpu(keys, "isin"):
        return transform(lookups.holding(keys, invert), x)
    x = copy(x) if is_lazy(x) else x
    indices = searchsorted(keys, x, less=of_complex.less if is_complex else None)
    if not isinstance(indices, np.ndarray) and isinstance(indices, np.generic):
        indices = np.asarray(indices)  # x is 0-d
    neighbours = lazy.take(keys, indices, mode="clip")
    return transform(_differ if invert else _equal, x, neighbours)


def _equal(a: Any, b: Any) -> Any:
    return a == b


def _differ(a: Any, b: Any) -> Any:
    return a != b


# --- integers -----------------------------------------------------------------------------------


def _among_integers(x: Any, others: Any, own: Any, kind: Any, invert: bool) -> Any:
    """Look up integers, signed or unsigned, without converting them to float."""
    if is_host(others) and is_host(x):
        low, high = (int(one) for one in minmax(others))
        if high - low <= _TABLE * (x.size + others.size):
            if function.is_few(x.size, sys.maxsize) and high - low > others.size // _DENSE:
                return np.isin(x, others, invert=invert)  # its plain stores are faster
            return _in_table(x, others, low, high, invert)
    common = np.result_type(own, kind)
    if common.kind != "f":
        return _among(_as(x, common, own), _as(others, common, kind), invert)
    wide = np.dtype(np.uint64 if own.kind == "i" else np.int64)  # one is uint64, the other signed
    is_member = _among(_as(x, wide, own), _as(others, wide, kind), invert)
    fits = _not_negative if own.kind == "i" else _fits_int64
    return transform(_or if invert else _and, is_member, lazy.transform(fits, x))


def _not_negative(a: Any) -> Any:
    return a >= 0


def _fits_int64(a: Any) -> Any:
    return a >> np.uint64(63) == np.uint64(0)


def _and(is_member: Any, fits: Any) -> Any:
    return is_member and fits


def _or(is_member: Any, fits: Any) -> Any:
    return is_member or not fits


def _in_table(x: Any, others: Any, low: int, high: int, invert: bool) -> Any:
    """Look up integers in a table of bools; its last entry stands for all outside its range."""
    size, first = high - low + 1, others.dtype.type(low)
    indices = lazy.transform(_table_index, others, first)
    table = reduce_by_index(indices, lazy.full(others.shape, True), size + 1, False, np.logical_or)
    slot = _slot
    if (x.dtype == np.uint64) != (others.dtype == np.uint64):
        slot = _slot_unsigned if x.dtype == np.uint64 else _slot_signed
    slots = lazy.transform(slot, x, first)
    is_member = lazy.take(table, slots, mode="clip")
    is_member = transform(np.logical_not, is_member) if invert else copy(is_member)
    return results.in_library_of(is_member, x, "isin")


def _table_index(a: Any, low: Any) -> Any:
    return np.int64(a) - np.int64(low)


def _slot(a: Any, low: Any) -> Any:
    """Return an integer's index in a table, modulo 2**64: integers below are out of range."""
    return np.uint64(np.int64(a) - np.int64(low))


def _slot_unsigned(a: Any, low: Any) -> Any:
    """The same for uint64 in a table of signed integers."""
    return _slot(a, low) if _fits_int64(a) else _OUTSIDE


def _slot_signed(a: Any, low: Any) -> Any:
    """The same for signed integers in a table of uint64."""
    return _slot(a, low) if np.int64(a) >= 0 else _OUTSIDE


_OUTSIDE = np.uint64(2**64 - 1)


# --- a few --------------------------------------------------------------------------------------


def _among_few(x: Any, others: Any, own: Any, invert: bool) -> Any:
    """Compare with each of a few numbers in host memory."""
    candidates = [others[min(i, others.size - 1)] for i in range(_FEW)]
    kind = others.dtype
    if own.kind in "biu" and kind.kind in "biu":
        least, most = (0, 1) if own.kind == "b" else (np.iinfo(own).min, np.iinfo(own).max)
        candidates = [one for one in map(int, others) if least <= one <= most]
        if not candidates:
            return transform(_true if invert else _false, x)
        candidates = [own.type(candidates[min(i, len(candidates) - 1)]) for i in range(_FEW)]
    else:
        common = np.result_type(own, kind)
        candidates = [one.astype(common) for one in candidates]
        x = _as(x, common, own)
    return transform(_none_of if invert else _any_of, x, *candidates)


def _any_of(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    # `|` rather than `or`: code without branches is vectorised.
    return (x == a) | (x == b) | (x == c) | (x == d) | (x == e) | (x == f) | (x == g)


def _none_of(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    return (x != a) & (x != b) & (x != c) & (x != d) & (x != e) & (x != f) & (x != g)
