"""Sorts and searches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import TopK, copy, lazy, merge_sort, transform
from gpualgo import argsort as order_of
from gpualgo import searchsorted as search
from gpualgo import top_k as select_top
from gpualgo._algorithms.radix_sort import ARGSORT_OPTIONS, SORT_OPTIONS, radix_sort
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._arrays.view import view_of
from gpualgo._base.errors import shown
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._operators.tokens import second
from gpualgo._pipeline import checks
from gpualgo._pipeline.run import run_remembered
from gpualgo.numpy import _call, _orders
from gpualgo.numpy._call import UNSET, NotTaken, array_of, is_host, numpy_function
from gpualgo.numpy._orders import order_by

# --- Sorts and sorted orders.

_LOOK = Sort.problems.look
_FEW = 1 << 10  # NumPy's stable argsort is faster below: 1.2 µs for 64 elements, 4.2 here


def _known(options: Any) -> Any:
    """Return a function that sorts a row, and returns None if none of its layout was sorted."""
    return lambda a: run_remembered(_LOOK, None, None, None, options, (a,)) if _is_row(a) else None


@numpy_function(
    "One radix sort; complex: one merge sort",
    ("sort", "Return a sorted copy; NaN is last, also with ``descending=True``.",
     'gnp.sort([3.0, float("nan"), 1.0], descending=True)', "array([ 3.,  1., nan])",
     {"quick": _known(SORT_OPTIONS)}),
    ("argsort", "Return the indices that sort the elements, always stably.",
     "gnp.argsort([2, 1, 2, 0])", "array([3, 1, 0, 2])",
     {"passes": "One radix sort of indices; complex: one merge sort",
      "quick": _known(ARGSORT_OPTIONS)}),
    few=0, differs="always stable; `descending` works as in NumPy 2.5, with any NumPy version",
)  # fmt: skip
def _sort(
    name: str, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None,
    descending: Any = UNSET,
) -> Any:  # fmt: skip
    is_descending = _is_descending(kind, stable, descending, order, name)
    few = _call.FEW if name == "sort" else _few(a)
    if not (is_descending or _is_row(a)) and _is_few(a, few):
        return getattr(np, name)(a, axis=axis, kind="stable")
    if name == "argsort":
        return _indices(a, axis, is_descending, name)
    if not _is_complex(a, name):
        return radix_sort(a, descending=is_descending, axis=axis)
    if _sorts_as_pair(a):
        out = np.empty_like(a, order="C") if axis is not None else np.empty(a.size, a.dtype)
        radix_sort((a.real, a.imag), descending=is_descending, axis=axis, out=(out.real, out.imag))
        return out
    return merge_sort(a, less=_less(is_descending), axis=axis)


def _sorts_as_pair(a: Any) -> bool:
    """Return whether complex numbers are sorted as 8-byte tuples: complex64 without NaN."""
    return is_host(a) and a.dtype.itemsize == 8 and not np.isnan(a).any()


def _indices(a: Any, axis: Any, is_descending: bool, where: str) -> Any:
    """Return the stable order along an axis; a 0-d array counts as one element."""
    if not len(a.shape):
        a = lazy.asarray(a).reshape(1)
    if not _is_complex(a, where):
        return order_of(a, descending=is_descending, axis=axis)
    if _sorts_as_pair(a):
        return order_of((a.real, a.imag), descending=is_descending, axis=axis)
    if axis is None:
        a, axis = _call.flattened(a), 0
    (axis,) = checks.axes_of(checks.plain_axis(axis, where), len(a.shape), where)
    return merge_sort(a, _positions(a, axis), less=_less(is_descending), axis=axis)[1]


def _positions(a: Any, axis: int) -> Any:
    return lazy.transform(second, a, _orders.indices_along(tuple(a.shape), axis))


def _few(a: Any) -> int:
    """Return below how many elements NumPy's order is faster."""
    return _FEW << 4 if a.dtype.kind == "c" else _FEW


def _is_few(a: Any, few: int) -> bool:
    """Return whether NumPy sorts an array faster, and in the same order."""
    return is_host(a) and _call.is_few(a.size, few) and a.dtype.kind != "V"  # NumPy's stable sort


def _is_row(a: Any) -> bool:
    """Return whether radix_sort sorts a short array as fast as NumPy, from its second call on."""
    return type(a) is np.ndarray and a.ndim == 1 and a.dtype.kind != "c"


def _is_complex(a: Any, where: str) -> bool:
    return _call.dtype_of(a, where).kind == "c"


def _less(is_descending: bool) -> Any:
    return _orders.complex_greater if is_descending else _orders.complex_less


def _refuse_order(order: Any, where: str) -> None:
    if order is not None:
        raise NotTaken(
            f"{where}: order={shown(order)} is not possible here; leave it out, or use "
            f"numpy.{where}"
        )


def _is_descending(kind: Any, stable: Any, descending: Any, order: Any, where: str) -> bool:
    """Return whether the largest come first; raise for options that are not supported."""
    _refuse_order(order, where)
    if descending is UNSET:
        if stable is None and (kind is None or (type(kind) is str and kind == "stable")):
            return False
        descending = None
    if kind is not None:
        if not isinstance(kind, str):
            raise TypeError(f"{where}: kind must be a str, got {type(kind).__name__}")
        if kind[:1].lower() not in _KINDS:  # NumPy checks only the first letter
            names = ", ".join(_KINDS.values())
            raise ValueError(f"{where}: kind must be one of {names}, got {shown(kind)}")
        if stable is not None or descending is not None:
            raise ValueError(
                f"{where}: kind cannot be combined with stable or descending; leave kind out, "
                "sorts are stable here"
            )
    return bool(descending)


_KINDS = {"q": "quicksort", "m": "mergesort", "h": "heapsort", "s": "stable"}


@numpy_function("One radix sort of indices for each 8 bytes of the keys", arrays=0, few=0)
def lexsort(keys: Any, axis: Any = -1) -> Any:
    """Return the indices that sort by several keys, stably; the last key is the primary one.

    >>> gnp.lexsort(([5, 7, 4, 6], [1, 0, 1, 0]))
    array([3, 1, 2, 0])
    """
    arrays = _keys_of(keys)
    shape = tuple(arrays[0].shape)
    if any(tuple(one.shape) != shape for one in arrays):
        raise ValueError("lexsort: all keys need to be of one shape")
    axis = checks.integer(axis, "axis", "lexsort")
    (axis,) = checks.axes_of(axis, max(len(shape), 1), "lexsort")
    few = max(map(_few, arrays)) if all(map(is_host, arrays)) else 0
    if all(_is_few(one, few) for one in arrays):
        return np.lexsort(arrays, axis=axis)
    if not shape:
        return _indices(arrays[0], 0, False, "lexsort")[0]
    fields = [field for one in reversed(arrays) for field in _orders.fields(one)]
    return _orders.in_library_of(order_by(fields, axis), arrays[0], "lexsort")


def _keys_of(keys: Any) -> list[Any]:
    """Return the keys as a list; an array contains them along its first axis."""
    if not isinstance(keys, (list, tuple)):
        keys = array_of(keys, "lexsort: keys")
        keys = [keys[i] for i in range(keys.shape[0] if len(keys.shape) else 0)]
    if not len(keys):
        raise TypeError("lexsort: there are no keys; pass one at least")
    return [array_of(one, f"lexsort: keys[{i}]") for i, one in enumerate(keys)]


# --- Partitions, and the largest or smallest elements.


@numpy_function(
    "One radix sort; host arrays: NumPy's function, which is faster",
    ("partition", "Return a copy with the k-th elements at their sorted indices, no larger ones "
     "before them.", "int(gnp.partition([5, 1, 4, 2], 2)[2])", "4",
     {"differs": "on a GPU the result is fully sorted"}),
    ("argpartition", "Return indices that put the k-th elements at their sorted indices, no larger "
     "ones before.", "int(gnp.argpartition([5, 1, 4, 2], 2)[2])", "2",
     {"differs": "on a GPU the result is that of a stable sort"}),
    few=0,
)  # fmt: skip
def _partition(
    name: str, a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    _refuse_order(order, name)
    if _is_few(a, _call.ALL):
        return getattr(np, name)(a, kth, axis, kind)
    if name == "argpartition":
        row = a if len(a.shape) else lazy.asarray(a).reshape(1)
        _check_ranks(row, kth, axis, kind, name)
        return _indices(a, axis, False, name)
    _check_ranks(a, kth, axis, kind, name)
    return _sort("sort", a, axis)


def _check_ranks(a: Any, kth: Any, axis: Any, kind: Any, where: str) -> None:
    """Raise for ranks that NumPy rejects; a sort satisfies all others."""
    if kind != "introselect":
        raise ValueError(f"{where}: kind must be 'introselect', got {shown(kind)}")
    ranks = np.asarray(kth)
    if ranks.dtype.kind not in "iu" or ranks.ndim > 1:
        kind = ValueError if ranks.dtype == bool or ranks.ndim > 1 else TypeError
        raise kind(f"{where}: kth must be an int or a sequence of ints, got {shown(kth)}")
    length = size = math.prod(a.shape)
    if axis is not None:
        (axis,) = checks.axes_of(checks.plain_axis(axis, where), len(a.shape), where)
        length = a.shape[axis]
    for rank in ranks.ravel().tolist():
        if size and not -length <= rank < length:
            raise ValueError(f"{where}: kth={rank} is out of range for {length} elements")


@numpy_function("One selection; complex: one merge sort")
def top_k(a: Any, k: Any, /, *, axis: Any = -1, mode: Any = "largest", sorted: Any = True) -> Any:
    """Return the k largest or smallest elements in sorted order, and their indices.

    NaN come last in both modes. Of equal elements the first are chosen, as NumPy 2.6 allows.

    >>> gnp.top_k([3, 9, 4, 9, 5], 3)
    TopK(values=array([9, 9, 5]), indices=array([1, 3, 4]))
    """
    if not _is_complex(a, "top_k"):
        return select_top(a, k, axis=axis, mode=mode)
    k = checks.integer(k, "k", "top_k")
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {shown(mode)}")
    if axis is None:
        a, axis = _call.flattened(a), 0
    (axis,) = checks.axes_of(checks.plain_axis(axis, "top_k"), len(a.shape), "top_k")
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"top_k: k is {k}, and there are {a.shape[axis]} elements to choose from")
    ordered = merge_sort(a, _positions(a, axis), less=_less(mode == "largest"),
                       axis=axis)  # fmt: skip
    first = (*(slice(None),) * axis, slice(0, k))
    return TopK(*(copy(array[first]) for array in ordered))


# --- Searches in sorted arrays and in bins.


@numpy_function(
    "One search; with `sorter`, one gather before it",
    arrays=2, few=_call.FEW_TO_SEARCH, orders=True,
    differs="an index in `sorter` out of range always raises a ValueError; on a GPU it is clamped",
)  # fmt: skip
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return the indices at which elements of v belong in a sorted array a.

    >>> gnp.searchsorted([1, 3, 3, 7], [3, 4], side="right")
    array([3, 3])
    """
    where = "searchsorted"
    a, v = _evaluated(a, f"{where}: a"), _evaluated(v, f"{where}: v")
    if len(a.shape) != 1:
        raise ValueError(f"{where}: a must have one dimension, not {len(a.shape)}")
    if sorter is not None:
        a = _apply_sorter(a, array_of(sorter, f"{where}: sorter"))
    v = _on_device_of(a, v, where)
    own, other = _call.dtype_of(a, where), _call.dtype_of(v, where)
    if own.kind != "c" and other.kind != "c":
        return search(a, v, side=side)
    common = np.result_type(own, other)
    a, v = (
        x if kind == common else copy(lazy.asarray(x).astype(common))
        for x, kind in ((a, own), (v, other))
    )
    return search(a, v, side=side, less=_orders.complex_less)


def _evaluated(x: Any, where: str) -> Any:
    """Return an argument as an array that is not lazy: searches read elements in any order."""
    return copy(x) if is_lazy(x) else array_of(x, where)


def _apply_sorter(a: Any, sorter: Any) -> Any:
    length, where = a.shape[0], "searchsorted"
    kind = _call.dtype_of(sorter, where)
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
    return copy(lazy.take(_call.aligned(a), sorter, mode="clip"))


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
    return _call.copy_to_device_of(a, v, where)


@numpy_function(
    "One search; with more than 1024 bins on a GPU, one pass before it and one after it",
    arrays=2, few=_call.FEW_TO_SEARCH, orders=True,
    differs="on a GPU bins that are not monotonic raise no error, and bins of one number followed "
    "only by NaN are treated as increasing (NumPy: decreasing)",
)  # fmt: skip
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """Return the index of each element's bin: ``bins[i-1] <= x < bins[i]``.

    Decreasing bins are numbered in reverse. With ``right=True`` a bin includes its right edge.

    >>> gnp.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    array([1, 4, 3])
    """
    where = "digitize"
    x, bins = _evaluated(x, f"{where}: x"), _evaluated(bins, f"{where}: bins")
    for array, name in ((x, "x"), (bins, "bins")):
        if _call.dtype_of(array, where).kind == "c":
            raise TypeError(f"{where}: {name} may not be complex")
    if len(bins.shape) != 1:
        raise ValueError(f"{where}: bins must have one dimension, not {len(bins.shape)}")
    side: Any = "left" if right else "right"
    if not is_host(bins):
        x = _on_device_of(bins, x, where, ("bins", "x"))
        return _orders.in_library_of(_digitize_on_gpu(x, bins, side), x, where)
    is_decreasing = _is_decreasing(bins)
    if is_decreasing:
        bins = bins[::-1]
    if not is_host(x):
        bins = _call.copy_to_device_of(x, bins, where)
    indices = search(bins, x, side=side)
    if not is_decreasing:
        return indices
    length = np.int64(bins.shape[0])
    if isinstance(indices, (np.generic, np.ndarray)):
        return np.subtract(length, indices)
    return transform(np.subtract, length, indices)


def _is_decreasing(bins: Any) -> bool:
    """Return whether bins decrease; raise ValueError if they neither increase nor decrease."""
    np.digitize(np.empty(0), bins)  # checks only bins
    differing = np.flatnonzero(bins[1:] != bins[:1])
    return bool(len(differing) and not bins[0] < bins[1 + differing[0]])


_SHORT = 1 << 10  # bins of which a GPU finds out the direction in the search


def _digitize_on_gpu(x: Any, bins: Any, side: Any) -> Any:
    """Return bin numbers for bins on a GPU, whose direction the host does not know."""
    length, where = bins.shape[0], "digitize"
    if length < 2:
        return search(bins, x, side=side)
    if length <= _SHORT and view_of(bins, where).device != CPU:
        from gpualgo._algorithms.searchsorted.problem import IN_EITHER, search_on_gpu

        return search_on_gpu(bins, x, where, IN_EITHER, side)
    lazy_bins = lazy.asarray(bins)
    first, last = lazy_bins[0], lazy_bins[-1]
    increasing = copy(lazy.transform(_increasing_element, lazy_bins, lazy_bins[::-1], first, last))
    indices = search(increasing, x, side=side)
    return transform(_bin_number, indices, first, last, np.int64(length))


def _ends_decrease(first: Any, last: Any) -> Any:
    """Return whether bins with these ends decrease; NaN is the largest."""
    return last < first or first != first


def _increasing_element(a: Any, b: Any, first: Any, last: Any) -> Any:
    return np.where(_ends_decrease(first, last), b, a)


def _bin_number(index: Any, first: Any, last: Any, length: Any) -> Any:
    return np.where(_ends_decrease(first, last), length - index, index)
