"""Elements of given ranks along axes: by selection for few ranks, else by one sort."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.merge_sort import merge_sort
from gpualgo._algorithms.radix_sort import radix_sort
from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.top_k import kth_value
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import checks
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._orders import of_complex


class Rows(NamedTuple):
    """An array and the axis (None: all axes) along which ranks are counted."""

    x: Any
    dtype: np.dtype[Any]
    axis: int | None
    length: int  # of a row
    shape: tuple[int, ...]  # of the other axes
    kept: tuple[int, ...]  # the same with reduced axes of length 1


def rows_of(a: Any, axis: Any, where: str) -> Rows:
    """Return an array as rows along axes; several axes are moved to the end and merged."""
    shape = tuple(a.shape)
    axes = checks.axes_of(checks.plain_axes(axis, where), len(shape), where)
    count = math.prod(shape[i] for i in axes)
    other_shape = tuple(n for i, n in enumerate(shape) if i not in axes)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    dtype = results.dtype_of(a, where)
    if len(axes) == len(shape):
        along: int | None = None
    elif len(axes) == 1:
        (along,) = axes
    else:
        order = [i for i in range(len(shape)) if i not in axes]
        a = lazy.asarray(a).transpose(*order, *axes).reshape(*other_shape, count)
        along = len(other_shape)
    if is_lazy(a):
        a = copy(a)  # else each read computes it
    return Rows(a, dtype, along, count, other_shape, kept)


def has_nan(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype can represent NaN."""
    return dtypes.kind(dtype) in "fc"


def at_ranks(rows: Rows, ranks: Sequence[int]) -> tuple[Callable[[int], Any], Any]:
    """Return a function from rank to elements, and an array with the NaN of rows (or None)."""
    x, axis, dtype = rows.x, rows.axis, rows.dtype
    wanted = sorted(set(ranks))
    if dtype.kind != "c" and _is_selected(rows, len(wanted)):
        selected = kth_value(x, wanted, axis=axis)
        index_of = {rank: i for i, rank in enumerate(wanted)}
        last = reduce(x, None, np.maximum, axis=axis) if has_nan(dtype) else None
        return lambda rank: selected[index_of[rank]], last
    element = in_order(rows)
    return element, element(rows.length - 1) if has_nan(dtype) else None


def in_order(rows: Rows) -> Callable[[int], Any]:
    """Return a function from rank to elements, for all ranks."""
    return _indexer(sorted_rows(rows), rows.axis)


def sorted_rows(rows: Rows) -> Any:
    x, axis = rows.x, rows.axis
    if rows.dtype.kind != "c":
        return radix_sort(x, axis=axis)
    if axis is None and len(x.shape) != 1:
        x = copy(lazy.asarray(x).reshape(-1))
    return merge_sort(x, less=of_complex.less, axis=0 if axis is None else axis)


def _indexer(x: Any, axis: int | None) -> Callable[[int], Any]:
    leading = (slice(None),) * (axis or 0)
    return lambda rank: x[(*leading, rank)]


# ms by selection / by a sort, on two cores with AVX-512, 2^20 float32, float64, int16: one row
# 1.3 / 2.6, 1.3 / 3.2, 0.3 / 0.4; rows of 1024 0.9 / 0.7, 1.2 / 1.4, 0.4 / 2.4; columns
# 1.5 / 9.6, 1.6 / 13, 0.8 / 7.4. Each further rank costs the same again, in short rows half.
_LONG = 1 << 16
_MOST_RANKS = 8  # on a GPU


def _is_selected(rows: Rows, num_ranks: int) -> bool:
    """Return whether selections of so many ranks are faster than a sort."""
    if not is_host(rows.x):
        return num_ranks <= _MOST_RANKS
    if rows.length < _LONG:
        if rows.axis is not None and rows.axis != len(rows.x.shape) - 1:
            return num_ranks <= 6
        is_short = rows.dtype.kind in "iu" and rows.dtype.itemsize == 2
        return num_ranks <= 2 and (is_short or rows.dtype.itemsize == 8)
    return rows.dtype.itemsize > 1 and num_ranks <= rows.dtype.itemsize // 4
