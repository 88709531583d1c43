"""Weighted quantiles: a sort with the weights, a scan of them, and a count for each quantile."""

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


def _zero_weight_of_nan(weight: Any, x: Any) -> Any:
    return np.where(x != x, 0.0, weight)


def _is_below(share: Any, q: Any) -> Any:
    return (share == 0) | (share < q)


def _least(a: Any, b: Any) -> Any:
    return np.minimum(a, b)


def quantiles(
    a: Any, q: Any, axis: Any, method: Any, weights: Any, skips_nan: bool, where: str
) -> Any:
    """Return the weighted quantiles of rows, in the shape of q and the other axes."""
    if method != "inverted_cdf":
        raise ValueError(f"{where}: only method 'inverted_cdf' takes weights, got {shown(method)}")
    if not is_host(q):
        raise NotTaken(f"{where}: q is on a GPU; with weights it must be in host memory")
    full_weights = _broadcast_weights(weights, a, axis, where)
    rows, weight_rows = rows_of(a, axis, where), rows_of(full_weights, axis, where)
    x, w, along = rows.x, weight_rows.x, rows.axis
    if along is None and len(rows.x.shape) != 1:
        x, w = (copy(lazy.asarray(one).reshape(-1)) for one in (x, w))
    if not rows.length:
        raise IndexError(f"{where}: rows of a have no elements")
    if skips_nan and has_nan(rows.dtype):
        w = copy(lazy.transform(_zero_weight_of_nan, w, x))
    ordered, w = radix_sort(x, w, axis=0 if along is None else along)
    return _by_sums(rows, ordered, inclusive_scan(w, axis=along or 0), q, skips_nan, where)


def _by_sums(rows: Rows, ordered: Any, sums: Any, q: Any, skips_nan: bool, where: str) -> Any:
    """Return the first sorted elements at which the sums of weights reach their shares."""
    axis, most = rows.axis or 0, rows.length - 1
    last = (*(slice(None),) * axis, slice(most, most + 1))
    lazy_sums = lazy.asarray(sums)
    if is_host(sums):
        _check_totals(sums[last], ordered, axis, skips_nan, where)
    shares = lazy_sums / lazy_sums[last]
    if q.dtype.kind == "f":
        shares = shares.astype(q.dtype)
    counts = [
        reduce(lazy.transform(_is_below, shares, q.dtype.type(one)), axis=axis, dtype=np.int64)
        for one in q.ravel().tolist()
    ]
    shape = (*q.shape, *rows.shape)
    checks = has_nan(rows.dtype) and not skips_nan
    if is_host(ordered):
        get = computed.gathered(rows, ordered)
        value = get(np.minimum(np.reshape(np.array(counts, np.int64), shape), most))
        return between.nan_or(value, get(np.full((1, *rows.shape), most))[0]) if checks else value
    return _select_on_gpu(rows, ordered, counts, shape, checks, where)


def _select_on_gpu(
    rows: Rows, sorted_rows: Any, counts: Any, shape: tuple[int, ...], checks: bool, where: str
) -> Any:
    ordered = computed.Ordered(sorted_rows, *computed.extents_of(rows))
    most = np.int64(rows.length - 1)
    result = results.new(rows.x, (len(counts), *rows.shape), rows.dtype, where)
    for i, count in enumerate(counts):
        ranks = ordered.across(count)
        value = ordered.at(lazy.transform(_least, ranks, most))
        if checks:
            last = ordered.at(lazy.transform(second, ranks, most))
            value = lazy.transform(between.nan_or, value, last)
        transform(same, value.reshape(rows.shape), dtype=rows.dtype, out=result[i])
    return result if result.shape == shape else copy(lazy.asarray(result).reshape(shape))


def _check_totals(totals: Any, ordered: Any, axis: int, skips_nan: bool, where: str) -> None:
    """Raise for rows whose weights have no valid sum; warn of rows without a number."""
    is_wrong = ~((totals > 0) & np.isfinite(totals))
    if skips_nan:
        first = np.take(ordered, [0], axis)
        is_all_nan = first != first
        if is_all_nan.any():
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=6)
        is_wrong &= ~is_all_nan
    if is_wrong.any():
        raise ValueError(f"{where}: weights include NaN or inf, or are all zero")


def _broadcast_weights(weights: Any, a: Any, axis: Any, where: str) -> Any:
    """Return weights as float64, broadcast to the shape of a."""
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
    axis_list = plain if isinstance(plain, tuple) else (plain,)
    axes = [one % len(shape) for one in axis_list if one is not None]
    if own != tuple(shape[i] for i in axes):
        raise ValueError(f"{where}: weights have shape {own}, not that of a along its axes")
    w = w.transpose(*np.argsort(axes).tolist())
    new_shape = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return w.reshape(new_shape).broadcast_to(shape)
