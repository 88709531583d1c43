"""Set functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import gpualgo as ga
from gpualgo import copy, lazy, merge, minmax, searchsorted, select, transform
from gpualgo._algorithms.runs import solve as firsts_of_runs
from gpualgo._api import unique as sorting
from gpualgo._arrays.view import view_of
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo.numpy import _call, _orders
from gpualgo.numpy._call import array_of, is_host, numpy_function

# --- Membership: which elements of one array are in another.

_FEW = 7  # up to this number, each element is compared with all
_TABLE = 6  # bytes of a table for each element, as in NumPy
_DENSE = 16  # elements for each byte of a table from which all cores fill it


def are_among(x: Any, others: Any, invert: bool, where: str) -> Any:
    """Return which elements of x are (or with `invert` are not) in others, in the shape of x."""
    own, kind = (_call.dtype_of(one, where) for one in (x, others))
    if not math.prod(others.shape):
        return _all(invert, x)
    if is_host(others) and others.size <= _FEW:
        return _among_few(x, np.asarray(others).reshape(-1), own, invert)
    if own.kind in "biu" and kind.kind in "biu":
        return _among_integers(x, others, own, kind, invert)
    common = np.result_type(own, kind)
    x = _call.cast(x, common, where) if common.kind == "c" else x
    return _among(x, _call.cast(others, common, where), invert)


def _all(value: bool, like: Any) -> Any:
    return transform(lambda a: value, like)


def _among(x: Any, others: Any, invert: bool) -> Any:
    """Search elements in others, which have the common dtype, after sorting these."""
    is_complex, (keys, _) = _kind(others) == "c", _sorted(others, False)
    if not is_complex and view_of(keys, "isin").device != CPU:
        from gpualgo._algorithms.searchsorted.problem import AMONG, NOT_AMONG, search_on_gpu

        result = search_on_gpu(keys, x, "isin", NOT_AMONG if invert else AMONG)
        return _orders.in_library_of(result, x, "isin")
    x = copy(x) if is_lazy(x) else x
    indices = searchsorted(keys, x, less=_orders.complex_less if is_complex else None)
    if not isinstance(indices, np.ndarray) and isinstance(indices, np.generic):
        indices = np.asarray(indices)  # x is 0-d
    neighbours = lazy.take(keys, indices, mode="clip")
    return transform(np.not_equal if invert else np.equal, x, neighbours)


def _among_integers(x: Any, others: Any, own: Any, kind: Any, invert: bool) -> Any:
    """Look up integers, signed or unsigned, without converting them to float."""
    if is_host(others) and is_host(x):
        low, high = (int(one) for one in minmax(others))
        if high - low <= _TABLE * (x.size + others.size):
            if _call.is_few(x.size, _call.ALL) and high - low > others.size // _DENSE:
                return np.isin(x, others, invert=invert)  # its plain stores are faster
            return _in_table(x, others, low, high, invert)
    common = np.result_type(own, kind)
    if common.kind != "f":
        return _among(x, _call.cast(others, common, "isin"), invert)
    wide = np.dtype(np.uint64 if own.kind == "i" else np.int64)  # one is uint64, the other signed
    x_wide, others_wide = (_call.cast(one, wide, "isin") for one in (x, others))
    is_member = _among(x_wide, others_wide, invert)
    fits: Any = lazy.transform((lambda a: a >= 0) if own.kind == "i" else _fits_int64, x)
    if invert:
        return transform(np.logical_or, is_member, np.logical_not(fits))
    return transform(np.logical_and, is_member, fits)


def _fits_int64(a: Any) -> Any:
    return a >> np.uint64(63) == np.uint64(0)


def _in_table(x: Any, others: Any, low: int, high: int, invert: bool) -> Any:
    """Look up integers in a table of bools; its last entry stands for all outside its range."""
    size, first = high - low + 1, others.dtype.type(low)
    indices = lazy.transform(lambda a, low: np.int64(a) - np.int64(low), others, first)
    flags: Any = lazy.full(others.shape, True)
    table = ga.reduce_by_index(indices, flags, size + 1, False, np.logical_or)
    slot = _slot
    if (x.dtype == np.uint64) != (others.dtype == np.uint64):
        slot = _slot_unsigned if x.dtype == np.uint64 else _slot_signed
    slots = lazy.transform(slot, x, first)
    is_member = lazy.take(table, slots, mode="clip")
    is_member = transform(np.logical_not, is_member) if invert else copy(is_member)
    return _orders.in_library_of(is_member, x, "isin")


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


def _among_few(x: Any, others: Any, own: Any, invert: bool) -> Any:
    """Compare with each of a few numbers in host memory."""
    candidates = [others[min(i, others.size - 1)] for i in range(_FEW)]
    kind = others.dtype
    if own.kind in "biu" and kind.kind in "biu":
        least, most = (0, 1) if own.kind == "b" else (np.iinfo(own).min, np.iinfo(own).max)
        candidates = [one for one in map(int, others) if least <= one <= most]
        if not candidates:
            return _all(invert, x)
        candidates = [own.type(candidates[min(i, len(candidates) - 1)]) for i in range(_FEW)]
    else:
        common = np.result_type(own, kind)
        candidates = [one.astype(common) for one in candidates]
        x = _call.cast(x, common, "isin")
    return transform(_none_of if invert else _any_of, x, *candidates)


def _any_of(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    # `|` rather than `or`: code without branches is vectorised.
    return (x == a) | (x == b) | (x == c) | (x == d) | (x == e) | (x == f) | (x == g)


def _none_of(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    return (x != a) & (x != b) & (x != c) & (x != d) & (x != e) & (x != f) & (x != g)


# --- Distinct elements of an array or slices along an axis, their indices and counts.

_FEW_WITH_INDICES = 1 << 14  # with indices NumPy is faster below: 2^13 in 0.1 to 0.4 ms, 0.6 here
_NONE = np.empty(0)
_All, _Counts, _Inverse = map(type, (
    np.unique_all(_NONE), np.unique_counts(_NONE), np.unique_inverse(_NONE),
))  # fmt: skip


def _numpy_unique(x: Any, wanted: Any, axis: Any, equal_nan: Any) -> Any:
    """Return what NumPy's function returns for few elements in host memory, else None."""
    few = _FEW_WITH_INDICES if wanted[0] or wanted[1] or axis is not None else _call.FEW
    if is_host(x) and _call.is_few(x.size, few) and _call.has_order(x.dtype):
        unique: Any = np.unique
        return unique(x, *wanted, axis, equal_nan=equal_nan)
    return None


@numpy_function(
    "One sort (of indices, if indices or the inverse are returned), one pass",
    few=0,
    differs="sorted even with `sorted=False`; of equal elements (-0.0 and 0.0; NaN) the first is "
    "returned",
)
def unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, or the distinct slices along an axis.

    >>> gnp.unique([3, 1, 3, 2], return_counts=True)
    (array([1, 2, 3]), array([1, 1, 2]))
    >>> gnp.unique([[2, 0], [1, 5], [2, 0]], axis=0)
    array([[1, 5],
           [2, 0]])
    """
    options = (return_index, return_inverse, return_counts)
    if (result := _numpy_unique(ar, options, axis, equal_nan)) is not None:
        return result
    wanted = sorting.Wanted(*map(bool, options))
    if axis is not None:
        axis = normalize_axis_index(axis, len(ar.shape))
    parts = (
        distinct(ar, wanted, bool(equal_nan))
        if axis is None or len(ar.shape) == 1
        else _distinct_slices(ar, axis, wanted)
    )
    return parts if len(parts) > 1 else parts[0]


@numpy_function(
    "As `unique`",
    ("unique_values", sorting.Wanted(), lambda values: values,
     "Return the distinct elements; every NaN is distinct.",
     "gnp.unique_values([3, 1, 3, 2])", "array([1, 2, 3])",
     {"differs": "always sorted"}),
    ("unique_counts", sorting.Wanted(counts=True), _Counts,
     "Return the distinct elements and their counts; every NaN is distinct.",
     "gnp.unique_counts([3, 1, 3, 2]).counts", "array([1, 1, 2])"),
    ("unique_inverse", sorting.Wanted(inverse=True), _Inverse,
     "Return the distinct elements and the inverse indices; every NaN is distinct.",
     "gnp.unique_inverse([3, 1, 3, 2]).inverse_indices", "array([2, 0, 2, 1])"),
    ("unique_all", sorting.Wanted(True, True, True), _All,
     "Return the distinct elements, their indices, inverse and counts; every NaN is distinct.",
     "gnp.unique_all([3, 1, 3, 2]).indices", "array([1, 3, 0])"),
    few=0,
)  # fmt: skip
def _unique_of_array_api(name: str, wanted: Any, pack: Callable[..., Any], x: Any) -> Any:
    result = _numpy_unique(x, wanted, None, False)
    if result is None:
        return pack(*distinct(x, wanted, False))
    return pack(*result) if any(wanted) else result


def distinct(x: Any, wanted: Any, equal_nan: bool) -> tuple[Any, ...]:
    """Return the distinct elements of an array, and the wanted indices and counts."""
    kind = dtypes.kind(_call.dtype_of(x, "unique"))
    shape = tuple(x.shape)
    if kind != "c" and (equal_nan or kind in "biu"):
        names = ("return_index", "return_inverse", "return_counts")
        result = sorting.unique(x, **dict(zip(names, wanted, strict=True)))
        return result if any(wanted) else (result,)
    if is_lazy(x):
        x = copy(x)
    keys, order = _sorted(x, wanted.indices or wanted.inverse)
    eq, differs = (None, None) if equal_nan else (np.equal, _differs)
    if not any(wanted):
        return (firsts_of_runs(keys, eq, False, "unique", None, None, None),)
    return sorting.of_runs(keys, order, wanted, shape, eq=eq, differs=differs)


def _differs(a: Any, b: Any) -> Any:
    return np.int64(a != b)


def _distinct_slices(x: Any, axis: int, wanted: Any) -> tuple[Any, ...]:
    """Return the distinct slices along an axis; slices with a NaN are all distinct."""
    x = copy(x) if is_lazy(x) else _call.aligned(x)
    moved: Any = np.moveaxis(lazy.asarray(x), axis, 0)  # type: ignore[type-var]
    count, size = moved.shape[0], math.prod(moved.shape[1:])
    rows = x if not axis and moved.ndim == 2 else copy(moved.reshape(count, size))
    numbers = _orders.evaluated_like(lazy.full((count,), np.int64(0)), x)
    order = None
    if count and size:
        order = _orders.order_of_rows(rows)
        _number_rows(numbers, rows, order)
    _, index, *counts = sorting.of_runs(
        numbers, order, sorting.Wanted(indices=True, counts=wanted.counts), (count,)
    )
    outputs = [copy(lazy.take(x, index, axis=axis))]
    if wanted.indices:
        outputs.append(index)
    if wanted.inverse:
        outputs.append(numbers if order is None else sorting.put_back(order, numbers))
    return (*outputs, *counts)


def _number_rows(numbers: Any, rows: Any, order: Any) -> None:
    """Write the number of distinct rows before each sorted row to `numbers`."""
    if len(numbers) > 1:
        current, previous = (lazy.take(rows, part, axis=0) for part in (order[1:], order[:-1]))
        is_new = ga.reduce(lazy.transform(_differs, current, previous), 0, max, axis=1)
        ga.inclusive_scan(is_new, out=numbers[1:])


# --- Set operations on arrays: membership, union, intersection, differences.

_KINDS = (None, "sort", "table")
# NumPy is faster on fewer elements of both arrays.
_FEW_TO_MERGE = 1 << 16
_set_function = functools.partial(numpy_function, arrays=2, weak=True, few=1 << 14, orders=True)


@_set_function(
    "One sort of `test_elements` and one search. Host arrays: a lookup table for integers of a "
    "small range, one pass for up to 7 elements",
    differs="`kind` is checked but has no effect; int64 and uint64 are compared exactly (NumPy: as "
    "float64)",
)
def isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *,
    kind: Any = None,
) -> Any:  # fmt: skip
    """Return whether each element is in another array.

    >>> gnp.isin([1, 2, 5, 7], [5, 1])
    array([ True, False,  True, False])
    """
    x, others = _pair(element, test_elements, "isin", ("element", "test_elements"))
    if kind not in _KINDS:
        raise ValueError(f"isin: kind must be None, 'sort' or 'table', got {shown(kind)}")
    if kind == "table" and any(_kind(one) not in "biu" for one in (x, others)):
        raise ValueError("isin: kind='table' is for integers and bools; leave kind out")
    return are_among(x, others, bool(invert), "isin")


@_set_function("Two sorts, one merge, one selection")
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the distinct elements of both arrays, in ascending order.

    >>> gnp.union1d([3, 1, 2], [2, 5])
    array([1, 2, 3, 5])
    """
    both = _promoted(*_pair(*_promote_number(ar1, ar2), "union1d"))
    merged = _merged([_sorted(one, False)[0] for one in both])
    return firsts_of_runs(merged, None, False, "union1d", None, None, None)


@_set_function("Two sorts, each with one pass; one merge, one selection", few=_FEW_TO_MERGE)
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    """Return the elements that are in both arrays, in ascending order; optionally their indices.

    >>> gnp.intersect1d([3, 1, 2], [2, 5, 3])
    array([2, 3])
    """
    both = _promoted(*_pair(ar1, ar2, "intersect1d"))
    keys, values = zip(*_ascending(both, assume_unique, bool(return_indices)), strict=True)
    merged, indices = _merged(keys, values) if return_indices else (_merged(keys), None)
    merged = lazy.asarray(merged)
    current, following = merged[:-1], merged[1:]
    is_shared = lazy.transform(np.equal, current, following)
    if indices is None:
        return select(current, is_shared)
    indices = lazy.asarray(indices)
    return tuple(select((current, indices[:-1], indices[1:]), is_shared))


@_set_function(
    "One sort of each array, each with one pass; one search, one selection",
    differs="int64 and uint64 are compared exactly (NumPy: as float64)",
    few=_FEW_TO_MERGE,
)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    """Return the distinct elements of one array that are not in the other.

    >>> gnp.setdiff1d([3, 1, 2], [2, 5])
    array([1, 3])
    """
    x, others = _pair(ar1, ar2, "setdiff1d")
    x = _call.flattened(x) if assume_unique else distinct(x, sorting.Wanted(), True)[0]
    return select(x, are_among(x, others, True, "setdiff1d"))


@_set_function("Two sorts, each with one pass; one merge, one selection", few=_FEW_TO_MERGE)
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    """Return the elements that are in exactly one of the arrays, in ascending order.

    >>> gnp.setxor1d([3, 1, 2], [2, 5])
    array([1, 3, 5])
    """
    operands = _promote_number(ar1, ar2) if assume_unique else (ar1, ar2)
    both = _promoted(*_pair(*operands, "setxor1d"))
    merged = lazy.asarray(_merged([keys for keys, _ in _ascending(both, assume_unique, False)]))
    count = merged.size
    if not count:
        return select(merged, lazy.full((0,), True))
    indices = lazy.arange(count)
    previous, following = (lazy.take(merged, indices + by, mode="clip") for by in (-1, 1))
    single = lazy.transform(_is_unique, previous, merged, following, indices, np.int64(count - 1))
    return select(merged, single)


def _pair(
    one: Any, other: Any, where: str, names: tuple[str, str] = ("ar1", "ar2")
) -> tuple[Any, Any]:
    """Return two arrays of one library; a host array is copied to the GPU of the other."""
    first, second = array_of(one, f"{where}: {names[0]}"), array_of(other, f"{where}: {names[1]}")
    if is_host(first) and not is_host(second) and not is_lazy(second):
        first = _call.copy_to_device_of(second, first, where)
    elif is_host(second) and not is_host(first) and not is_lazy(first):
        second = _call.copy_to_device_of(first, second, where)
    return first, second


def _kind(x: Any) -> str:
    return str(_call.dtype_of(x, "isin").kind)


def _promote_number(one: Any, other: Any) -> tuple[Any, Any]:
    """Return a Python number as an array of the dtype that NumPy promotes it and the other to."""
    if hasattr(one, "dtype") == hasattr(other, "dtype"):
        return one, other
    if not hasattr(one, "dtype"):
        second, first = _promote_number(other, one)
        return first, second
    kind = np.result_type(_call.dtype_of(one, "a set"), other)
    return one, np.asarray(other).astype(kind)


def _promoted(*arrays: Any) -> list[Any]:
    kind = np.result_type(*[_call.dtype_of(one, "a set") for one in arrays])
    return [_call.cast(one, kind, "a set") for one in arrays]


def _sorted(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return the elements sorted and flattened, and their original indices."""
    if _kind(x) == "c":
        return _orders.complex_in_order(x, needs_order)
    return sorting.in_order(x, needs_order)


def _ascending(arrays: list[Any], is_distinct: bool, needs_order: bool) -> list[tuple[Any, Any]]:
    """Return the distinct elements of each array in ascending order, and their indices."""
    if is_distinct:
        return [_sorted(one, needs_order) for one in arrays]
    wanted = sorting.Wanted(indices=needs_order)
    return [(*distinct(one, wanted, True), None)[:2] for one in arrays]


def _merged(keys: Sequence[Any], values: Sequence[Any] = (None, None)) -> Any:
    """Return two sorted arrays merged; equal elements of the first come first."""
    less = _orders.complex_less if _kind(keys[0]) == "c" else None
    return merge(*keys, a_values=values[0], b_values=values[1], less=less)


def _is_unique(previous: Any, a: Any, following: Any, index: Any, last: Any) -> Any:
    return (index == 0 or previous != a) and (index == last or a != following)
