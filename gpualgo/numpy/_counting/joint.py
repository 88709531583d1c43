"""Histograms of several dimensions, in one pass over the samples."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import histogram as counted
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._operators.numpy_rules import promotion
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import NotTaken, array_of
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._call.transfer import beside
from gpualgo.numpy._counting import binning
from gpualgo.numpy._counting.histograms import FLOAT, are_few, density_of, shape_of

_range = range


@numpys(
    "One histogram; without `range`, min and max of each dimension first (the call waits)",
    arrays=0, few=0,
    differs="at most 8 dimensions; "
    "weights are summed exactly and rounded once; edges with NaN "
    "raise a ValueError",
)  # fmt: skip
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return the number of samples of several dimensions in each bin, and the edges.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> counts, edges = gnp.histogramdd(([0, 1, 1], [0, 0, 2]), bins=2)
    >>> counts
    array([[1., 0.],
           [1., 1.]])
    """
    return _count_joint(sample, bins, range, density, weights, "histogramdd")


def _count_joint(sample: Any, bins: Any, range: Any, density: Any, weights: Any, name: str) -> Any:
    columns = _columns(sample, name)
    if weights is not None:
        weights = array_of(weights, f"{name}: weights")
    if columns and are_few((*columns, weights)):
        return np.histogramdd(columns, bins, range, density, weights)
    if not 1 <= len(columns) <= 8:
        raise NotTaken(f"{name}: samples have {len(columns)} dimensions; from 1 to 8 are possible")
    if weights is not None:
        if len(shape_of(weights)) != 1 or shape_of(weights) != shape_of(columns[0]):
            raise ValueError(f"{name}: weights must have one number for each sample")
        if dtypes.kind(results.dtype_of(weights, name)) == "c":
            raise TypeError(f"{name}: weights are complex; pass the parts separately")
    edges, numbers, ends = _joint_bins(columns, bins, range, name)
    counts = _joint_counts(columns, edges, numbers, ends, weights, name)
    if density:
        counts = density_of(counts, tuple(map(np.diff, edges)), name)
    return counts, [beside(one, counts, name) for one in edges]


def _joint_counts(
    columns: list[Any], edges: list[Any], numbers: tuple[Any, ...], ends: tuple[Any, ...],
    weights: Any, name: str,
) -> Any:  # fmt: skip
    shape = tuple(one.size - 1 for one in edges)
    if any(n < 1 for n in shape):
        empty = np.zeros([max(n, 0) for n in shape])
        return beside(empty, counted(columns[0], 1, (0, 1)), name)
    kind = None if weights is None else FLOAT
    samples = tuple([_comparable(x, edge, name) for x, edge in zip(columns, edges, strict=True)])
    counts = counted(samples, numbers, ends, weights=weights, dtype=kind)
    return counts if weights is not None else results.finished(_same, (counts,), FLOAT)


def _comparable(x: Any, edges: Any, name: str) -> Any:
    """Return samples as NumPy compares them with edges: 64-bit integers as floats with floats."""
    kind = results.dtype_of(x, name)
    is_wide = kind.kind in "iu" and kind.itemsize == 8 and edges.dtype.kind == "f"
    return lazy_of(x).astype(FLOAT) if is_wide else x


def _same(n: Any) -> Any:
    return n


def _columns(sample: Any, name: str) -> list[Any]:
    """Return the coordinates of samples, one array for each dimension."""
    if not hasattr(sample, "shape"):
        columns = [array_of(one, f"{name}: sample") for one in sample]
        if columns and not shape_of(columns[0]):  # a flat sequence: samples of one dimension
            columns = [array_of(sample, f"{name}: sample")]
        if any(shape_of(one) != shape_of(columns[0]) for one in columns):
            raise ValueError(f"{name}: the coordinates differ in shape")
        if any(len(shape_of(one)) != 1 for one in columns):
            raise ValueError(f"{name}: each coordinate must have one axis")
        return columns
    sample = array_of(sample, f"{name}: sample")
    shape = shape_of(sample)
    if len(shape) > 2:
        raise ValueError(f"{name}: sample has {len(shape)} axes; pass (samples, dimensions)")
    if len(shape) < 2:
        return [sample.reshape(1) if not shape else sample]
    if not isinstance(sample, np.ndarray):
        sample = lazy_of(sample)
    return [sample[:, i] for i in _range(shape[1])]


def _joint_bins(columns: list[Any], bins: Any, range: Any, name: str) -> Any:
    """Return the edges of each dimension, and the bins and ranges for `gpualgo.histogram`."""
    count = len(columns)
    per_dim = list(bins) if _has_length(bins) else [bins] * count
    if len(per_dim) != count:
        raise ValueError(f"{name}: there are {len(per_dim)} bins for samples of {count} dimensions")
    ranges = (None,) * count if range is None else range
    if len(ranges) != count:
        raise ValueError(f"{name}: there are {len(ranges)} ranges for {count} dimensions")
    kind = _common([binning.dtype_of(one, name) for one in columns])
    dimensions = [
        _dimension(x, one, span, kind, f"{name}: dimension {i}")
        for i, (x, one, span) in enumerate(zip(columns, per_dim, ranges, strict=True))
    ]
    return [one[0] for one in dimensions], *(tuple(one[i] for one in dimensions) for i in (1, 2))


def _common(kinds: list[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype to which NumPy converts coordinates together."""
    first, *others = [str(dtypes.name_of(kind)) for kind in kinds]
    return dtypes.from_name(functools.reduce(promotion.promote, others, first))


def _has_length(bins: Any) -> bool:
    shape = getattr(bins, "shape", None)
    return bool(shape) if shape is not None else hasattr(bins, "__len__")


def _dimension(x: Any, bins: Any, range: Any, kind: Any, name: str) -> tuple[Any, Any, Any]:
    """Return one dimension's edges, and the bins and range that `gpualgo.histogram` takes."""
    if binning.is_edges(bins):
        edges = binning.edges_of(bins, name)
        return edges, binning.native(edges), None
    if bins < 1:
        raise ValueError(f"{name}: bins is {bins}; pass one or more")
    low, high = binning.ends_of(x, range, name)
    try:
        number = operator.index(bins)
    except TypeError:
        raise TypeError(f"{name}: bins is {shown(bins)}; pass a number of bins, or edges") from None
    if range is None and dtypes.kind(kind) == "f":
        low, high = kind.type(low), kind.type(high)
    with np.errstate(all="ignore"):
        edges = np.linspace(low, high, number + 1)
    if edges.dtype.kind != "f" or not np.all(edges[:-1] < edges[1:]):
        return edges, edges, None
    return edges, number, (edges.dtype.type(low), edges.dtype.type(high))


@numpys(
    "One histogram; without `range`, min and max of each dimension first (the call waits)",
    arrays=2, few=0,
    differs="weights are summed exactly and rounded once; edges with NaN raise a ValueError",
)  # fmt: skip
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return the number of samples of two dimensions in each bin, and the edges.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.histogram2d([0, 1, 1], [0, 0, 2], bins=2)[0]
    array([[1., 0.],
           [1., 1.]])
    """
    name = "histogram2d"
    if len(x) != len(y):
        raise ValueError(f"{name}: x and y differ in length")
    if _has_length(bins) and len(bins) not in (1, 2):
        edges = binning.edges_of(bins, name)
        bins = [edges, edges]
    counts, edges = _count_joint([x, y], bins, range, density, weights, name)
    return counts, edges[0], edges[1]
