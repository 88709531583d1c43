"""Set operations on arrays: membership, union, intersection, differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.merge_sort import merge
from gpualgo._algorithms.runs import solve as firsts_of_runs
from gpualgo._algorithms.select import select
from gpualgo._api import unique as sorting
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import array_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._call.transfer import beside
from gpualgo.numpy._orders import of_complex, orders
from gpualgo.numpy._sets.membership import are_among
from gpualgo.numpy._sets.unique import distinct

_KINDS = (None, "sort", "table")
_FEW = 1 << 14  # NumPy is faster below: 2^13 elements in 0.1 ms, 0.4 here


@numpys(
    "One sort of `test_elements` and one search. On a GPU one pass for up to 1024 elements. Host "
    "arrays: a lookup table for integers of a small range, one pass for up to 7 elements",
    arrays=2,
    weak=True,
    orders=True,
    few=_FEW,
    differs="`kind` is checked but has no effect; int64 and uint64 are compared exactly (NumPy: as "
    "float64)",
)
def isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *,
    kind: Any = None,
) -> Any:  # fmt: skip
    """Return whether each element is in another array.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.isin([1, 2, 5, 7], [5, 1])
    array([ True, False,  True, False])
    """
    x, others = _pair(element, test_elements, "isin", ("element", "test_elements"))
    if kind not in _KINDS:
        raise ValueError(f"isin: kind must be None, 'sort' or 'table', got {shown(kind)}")
    if kind == "table" and any(_kind(one) not in "biu" for one in (x, others)):
        raise ValueError("isin: kind='table' is for integers and bools; leave kind out")
    return are_among(x, others, bool(invert), "isin")


@numpys("Two sorts, one merge, one selection", arrays=2, weak=True, few=_FEW, orders=True)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the distinct elements of both arrays, in ascending order.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.union1d([3, 1, 2], [2, 5])
    array([1, 2, 3, 5])
    """
    both = _promoted(*_pair(*_promote_number(ar1, ar2), "union1d"))
    merged = _merged([_sorted(one, False)[0] for one in both])
    return firsts_of_runs(merged, None, False, "union1d", None, None, None)


@numpys(
    "Two sorts, each with one pass; one merge, one selection",
    arrays=2,
    weak=True,
    few=_FEW,
    orders=True,
)
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    """Return the elements that are in both arrays, in ascending order; optionally their indices.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.intersect1d([3, 1, 2], [2, 5, 3])
    array([2, 3])
    """
    both = _promoted(*_pair(ar1, ar2, "intersect1d"))
    if assume_unique:
        ordered = [_sorted(one, bool(return_indices)) for one in both]
    else:
        wanted = sorting.Wanted(indices=bool(return_indices))
        ordered = [(*distinct(one, wanted, True), None)[:2] for one in both]
    keys = [one[0] for one in ordered]
    if not return_indices:
        merged = lazy.asarray(_merged(keys))
        current, following = merged[:-1], merged[1:]
        return select(current, lazy.transform(_equal, current, following))
    merged, indices = map(lazy.asarray, _merged(keys, [one[1] for one in ordered]))
    current, following = merged[:-1], merged[1:]
    is_shared = lazy.transform(_equal, current, following)
    return tuple(select((current, indices[:-1], indices[1:]), is_shared))


@numpys(
    "One sort of each array, each with one pass; one search, one selection",
    arrays=2,
    weak=True,
    orders=True,
    few=_FEW,
    differs="int64 and uint64 are compared exactly (NumPy: as float64)",
)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    """Return the distinct elements of one array that are not in the other.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.setdiff1d([3, 1, 2], [2, 5])
    array([1, 3])
    """
    x, others = _pair(ar1, ar2, "setdiff1d")
    x = lazy.asarray(x).reshape(-1) if assume_unique else distinct(x, sorting.Wanted(), True)[0]
    return select(x, are_among(x, others, True, "setdiff1d"))


@numpys(
    "Two sorts, each with one pass; one merge, one selection",
    arrays=2,
    weak=True,
    few=_FEW,
    orders=True,
)
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    """Return the elements that are in exactly one of the arrays, in ascending order.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.setxor1d([3, 1, 2], [2, 5])
    array([1, 3, 5])
    """
    operands = _promote_number(ar1, ar2) if assume_unique else (ar1, ar2)
    both = _promoted(*_pair(*operands, "setxor1d"))
    if assume_unique:
        keys = [_sorted(one, False)[0] for one in both]
    else:
        keys = [distinct(one, sorting.Wanted(), True)[0] for one in both]
    merged = lazy.asarray(_merged(keys))
    count = merged.size
    if not count:
        return select(merged, lazy.full((0,), True))
    indices = lazy.arange(count)
    previous, following = (lazy.take(merged, indices + by, mode="clip") for by in (-1, 1))
    single = lazy.transform(_is_unique, previous, merged, following, indices, np.int64(count - 1))
    return select(merged, single)


# --- shared helpers -----------------------------------------------------------------------------


def _pair(
    one: Any, other: Any, where: str, names: tuple[str, str] = ("ar1", "ar2")
) -> tuple[Any, Any]:
    """Return two arrays of one library; a host array is copied to the GPU of the other."""
    first, second = array_of(one, f"{where}: {names[0]}"), array_of(other, f"{where}: {names[1]}")
    if is_host(first) and not is_host(second) and not is_lazy(second):
        first = beside(first, second, where)
    elif is_host(second) and not is_host(first) and not is_lazy(first):
        second = beside(second, first, where)
    return first, second


def _kind(x: Any) -> str:
    return str(results.dtype_of(x, "isin").kind)


def _promote_number(one: Any, other: Any) -> tuple[Any, Any]:
    """Return a Python number as an array of the dtype that NumPy promotes it and the other to."""
    if hasattr(one, "dtype") == hasattr(other, "dtype"):
        return one, other
    if not hasattr(one, "dtype"):
        second, first = _promote_number(other, one)
        return first, second
    kind = np.result_type(results.dtype_of(one, "a set"), other)
    return one, np.asarray(other).astype(kind)


def _promoted(*arrays: Any) -> list[Any]:
    """Return arrays converted to NumPy's common dtype."""
    dtypes = [results.dtype_of(one, "a set") for one in arrays]
    kind = np.result_type(*dtypes)
    return [
        one if dtype == kind else lazy.asarray(one).astype(kind)
        for one, dtype in zip(arrays, dtypes, strict=True)
    ]


def _sorted(x: Any, needs_order: bool) -> tuple[Any, Any]:
    """Return the elements sorted and flattened, and their original indices."""
    if _kind(x) == "c":
        return orders.complex_in_order(x, needs_order)
    return sorting.in_order(x, needs_order)


def _merged(keys: list[Any], values: list[Any] | None = None) -> Any:
    """Return two sorted arrays merged; equal elements of the first come first."""
    less = of_complex.less if _kind(keys[0]) == "c" else None
    if values is None:
        return merge(*keys, less=less)
    return merge(*keys, a_values=values[0], b_values=values[1], less=less)


def _equal(a: Any, b: Any) -> Any:
    return a == b


def _is_unique(previous: Any, a: Any, following: Any, index: Any, last: Any) -> Any:
    """Return whether an element differs from its neighbours."""
    return (index == 0 or previous != a) and (index == last or a != following)
