"""Quantiles of elements that weigh: one sort with the weights, a scan of them, a count for each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.radix_sort import radix_sort
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.scan import inclusive_scan
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._operators.markers import same, second
from gpualgo._pipeline import checks
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import NotTaken, array_of, is_host
from gpualgo.numpy._ranks import between, computed
from gpualgo.numpy._ranks.order_statistics import Rows, has_nan, rows_of


def _weight_of_number(weight: Any, x: Any) -> Any:
    return np.where(x != x, 0.0, weight)


def _is_before(share: Any, q: Any) -> Any:
    return (share == 0) | (share < q)


def _least(a: Any, b: Any) -> Any:
    return np.minimum(a, b)


def quantiles(
    a: Any, q: Any, axis: Any, method: Any, weights: Any, skips_nan: bool, where: str
) -> Any:
    """Return the weighted quantiles of rows, in the shape of q and of what is left of a."""
    if method != "inverted_cdf":
        raise ValueError(f"{where}: only method 'inverted_cdf' has weights, got {shown(method)}")
    if not is_host(q):
        raise NotTaken(f"{where}: q lies on a GPU, and beside weights must be in host memory")
    whole = _spread(weights, a, axis, where)
    rows, beside = rows_of(a, axis, where), rows_of(whole, axis, where)
    x, w, along = rows.x, beside.x, rows.axis
    if along is None and len(rows.x.shape) != 1:
        x, w = (copy(lazy.asarray(one).reshape(-1)) for one in (x, w))
    if not rows.length:
        raise IndexError(f"{where}: rows of a have no elements")
    if skips_nan and has_nan(rows.dtype):
        w = copy(lazy.transform(_weight_of_number, w, x))
    found, w = radix_sort(x, w, axis=0 if along is None else along)
    return _of_sums(rows, found, inclusive_scan(w, axis=along or 0), q, skips_nan, where)


def _of_sums(rows: Rows, found: Any, sums: Any, q: Any, skips_nan: bool, where: str) -> Any:
    """Return the first elements in order at which the sums of weights reach their shares."""
    axis, most = rows.axis or 0, rows.length - 1
    last = (*(slice(None),) * axis, slice(most, most + 1))
    whole = lazy.asarray(sums)
    if is_host(sums):
        _check_totals(sums[last], found, axis, skips_nan, where)
    shares = whole / whole[last]
    if q.dtype.kind == "f":
        shares = shares.astype(q.dtype)
    counts = [
        reduce(lazy.transform(_is_before, shares, q.dtype.type(one)), axis=axis, dtype=np.int64)
        for one in q.ravel().tolist()
    ]
    shape = (*q.shape, *rows.shape)
    looks = has_nan(rows.dtype) and not skips_nan
    if is_host(found):
        at = computed.gathered(rows, found)
        made = at(np.minimum(np.reshape(np.array(counts, np.int64), shape), most))
        return between.nan_or(made, at(np.full((1, *rows.shape), most))[0]) if looks else made
    return _on_a_gpu(rows, found, counts, shape, looks, where)


def _on_a_gpu(
    rows: Rows, found: Any, counts: Any, shape: tuple[int, ...], looks: bool, where: str
) -> Any:
    ordered = computed.Ordered(found, *computed.extents_of(rows))
    most = np.int64(rows.length - 1)
    made = results.new(rows.x, (len(counts), *rows.shape), rows.dtype, where)
    for i, count in enumerate(counts):
        places = ordered.across(count)
        value = ordered.at(lazy.transform(_least, places, most))
        if looks:
            end = ordered.at(lazy.transform(second, places, most))
            value = lazy.transform(between.nan_or, value, end)
        transform(same, value.reshape(rows.shape), dtype=rows.dtype, out=made[i])
    return made if made.shape == shape else copy(lazy.asarray(made).reshape(shape))


def _check_totals(totals: Any, found: Any, axis: int, skips_nan: bool, where: str) -> None:
    """Raise for rows whose weights have no shares; warn of those without a number."""
    is_wrong = ~((totals > 0) & np.isfinite(totals))
    if skips_nan:
        first = np.take(found, [0], axis)
        is_nothing = first != first
        if is_nothing.any():
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=6)
        is_wrong &= ~is_nothing
    if is_wrong.any():
        raise ValueError(f"{where}: weights include NaN or inf, or are all zero")


def _spread(weights: Any, a: Any, axis: Any, where: str) -> Any:
    """Return weights as float64 in the shape of a."""
    w = array_of(weights, f"{where}: weights")
    shape, own = tuple(a.shape), tuple(w.shape)
    if results.dtype_of(w, where).kind == "c":
        raise TypeError(f"{where}: weights must be real numbers")
    if is_host(w) and (w < 0).any():
        raise ValueError(f"{where}: weights must not be negative")
    if is_host(w) and not is_host(a) and not is_lazy(a):
        w = results.beside(a, w, where)
    w = lazy.asarray(w).astype(np.float64)
    if own == shape:
        return w
    if axis is None:
        raise TypeError(f"{where}: weights have shape {own}, a has {shape}; name an axis")
    plain = checks.plain_axes(axis, where)
    given = plain if isinstance(plain, tuple) else (plain,)
    axes = [one % len(shape) for one in given if one is not None]
    if own != tuple(shape[i] for i in axes):
        raise ValueError(f"{where}: weights have shape {own}, not that of a along its axes")
    w = w.transpose(*np.argsort(axes).tolist())
    kept = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return w.reshape(kept).broadcast_to(shape)
