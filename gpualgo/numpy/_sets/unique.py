"""Distinct elements of an array or slices along an axis, their indices and counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.runs import solve as firsts_of_runs
from gpualgo._algorithms.scan import inclusive_scan
from gpualgo._algorithms.transform.copying import copy
from gpualgo._api import unique as sorting
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import array_of, axis_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._orders import orders
from gpualgo.numpy._orders.gathers import aligned

_FEW_WITH_INDICES = 1 << 14  # with indices NumPy is faster below: 2^13 in 0.1 to 0.4 ms, 0.6 here
_NONE = np.empty(0)
_All, _Counts, _Inverse = map(type, (
    np.unique_all(_NONE), np.unique_counts(_NONE), np.unique_inverse(_NONE),
))  # fmt: skip


def _numpy_unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    """Call NumPy's function without `sorted`, which NumPy 2.2 lacks."""
    return np.unique(ar, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)


@numpys(
    "One sort (of indices, if indices or the inverse are returned), one pass",
    native=_numpy_unique,
    orders=True,
    differs="sorted even with `sorted=False`; of equal elements (-0.0 and 0.0; NaN) the first is "
    "returned",
)
def unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, or the distinct slices along an axis.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.unique([3, 1, 3, 2], return_counts=True)
    (array([1, 2, 3]), array([1, 1, 2]))
    >>> gnp.unique([[2, 0], [1, 5], [2, 0]], axis=0)
    array([[1, 5],
           [2, 0]])
    """
    ar = array_of(ar, "unique: ar")
    wanted = sorting.Wanted(bool(return_index), bool(return_inverse), bool(return_counts))
    if axis is not None:
        axis = axis_of(axis, len(ar.shape))
    needs_indices = wanted.indices or wanted.inverse or axis is not None
    is_few = needs_indices and is_host(ar) and function.is_few(ar.size, _FEW_WITH_INDICES)
    if is_few and function.has_order(ar.dtype):
        return _numpy_unique(ar, *wanted, axis, equal_nan=equal_nan)
    parts = (
        distinct(ar, wanted, bool(equal_nan))
        if axis is None or len(ar.shape) == 1
        else _distinct_slices(ar, axis, wanted)
    )
    return parts if len(parts) > 1 else parts[0]


def _numpy_unique_values(x: Any) -> Any:
    """Call NumPy's function that sorts, as for many elements."""
    return np.unique(x, equal_nan=False)


@numpys("As `unique`", native=_numpy_unique_values, orders=True, differs="always sorted")
def unique_values(x: Any) -> Any:
    """Return the distinct elements; every NaN is distinct.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.unique_values([3, 1, 3, 2])
    array([1, 2, 3])
    """
    return distinct(array_of(x, "unique_values: x"), sorting.Wanted(), False)[0]


@numpys("As `unique`", orders=True)
def unique_counts(x: Any) -> Any:
    """Return the distinct elements and their counts; every NaN is distinct.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.unique_counts([3, 1, 3, 2]).counts
    array([1, 1, 2])
    """
    wanted = sorting.Wanted(counts=True)
    return _Counts(*distinct(array_of(x, "unique_counts: x"), wanted, False))


@numpys("As `unique`", few=_FEW_WITH_INDICES, orders=True)
def unique_inverse(x: Any) -> Any:
    """Return the distinct elements and the inverse indices; every NaN is distinct.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.unique_inverse([3, 1, 3, 2]).inverse_indices
    array([2, 0, 2, 1])
    """
    wanted = sorting.Wanted(inverse=True)
    return _Inverse(*distinct(array_of(x, "unique_inverse: x"), wanted, False))


@numpys("As `unique`", few=_FEW_WITH_INDICES, orders=True)
def unique_all(x: Any) -> Any:
    """Return the distinct elements, their indices, inverse and counts; every NaN is distinct.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.unique_all([3, 1, 3, 2]).indices
    array([1, 3, 0])
    """
    wanted = sorting.Wanted(True, True, True)
    return _All(*distinct(array_of(x, "unique_all: x"), wanted, False))


def distinct(x: Any, wanted: Any, equal_nan: bool) -> tuple[Any, ...]:
    """Return the distinct elements of an array, and the wanted indices and counts."""
    kind = dtypes.kind(results.dtype_of(x, "unique"))
    shape = tuple(x.shape)
    if kind != "c" and (equal_nan or kind in "biu"):
        names = ("return_index", "return_inverse", "return_counts")
        result = sorting.unique(x, **dict(zip(names, wanted, strict=True)))
        return result if any(wanted) else (result,)
    if is_lazy(x):
        x = copy(x)
    in_order = orders.complex_in_order if kind == "c" else sorting.in_order
    keys, order = in_order(x, wanted.indices or wanted.inverse)
    eq, differs = (None, None) if equal_nan else (_equal, _differs)
    if not any(wanted):
        return (firsts_of_runs(keys, eq, False, "unique", None, None, None),)
    return sorting.of_runs(keys, order, wanted, shape, eq=eq, differs=differs)


def _equal(a: Any, b: Any) -> Any:
    return a == b


def _differs(a: Any, b: Any) -> Any:
    return np.int64(a != b)


# --- along an axis ------------------------------------------------------------------------------


def _distinct_slices(x: Any, axis: int, wanted: Any) -> tuple[Any, ...]:
    """Return the distinct slices along an axis; slices with a NaN are all distinct."""
    x = copy(x) if is_lazy(x) else aligned(x)
    moved: Any = np.moveaxis(lazy.asarray(x), axis, 0)  # type: ignore[type-var]
    count, size = moved.shape[0], math.prod(moved.shape[1:])
    rows = x if not axis and moved.ndim == 2 else copy(moved.reshape(count, size))
    numbers = orders.zeros(count, x)
    order = None
    if count and size:
        order = orders.order_of_rows(rows)
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
        is_new = reduce(lazy.transform(_differs, current, previous), 0, max, axis=1)
        inclusive_scan(is_new, out=numbers[1:])
