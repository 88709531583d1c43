"""Histograms of one dimension, in one pass over the samples."""

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import histogram as counted
from gpualgo._algorithms.transform import transform
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._operators.numpy_rules import promotion
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import function
from gpualgo.numpy._call.arguments import NotTaken, array_of, beside
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._counting import binning

# NumPy's limit for calls that need preparation or several kernels.
_FEW = 1 << 14

FLOAT = np.dtype(np.float64)
COUNT = np.dtype(np.intp)


def are_few(arrays: tuple[Any, ...]) -> bool:
    """Return whether all given arrays are NumPy's and small enough for NumPy."""
    given = [one for one in arrays if one is not None]
    if not all(type(one) is np.ndarray for one in given):
        return False
    return function.is_few(given[0].size, _FEW)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _weights_of(weights: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return weights as an array of the samples' shape, None if there are none."""
    if weights is None:
        return None
    weights = array_of(weights, f"{name}: weights")
    if shape_of(weights) != shape:
        raise ValueError(
            f"{name}: weights should have the same shape as a, {shape}, got {shape_of(weights)}"
        )
    return weights


def _warn_of_bool(a: Any) -> None:
    """Warn of bool samples, as NumPy does."""
    kind = a.dtype if is_lazy(a) else function.dtype_of(a, "histogram")
    if kind.kind == "b":
        warnings.warn(
            f"Converting input from bool to {np.uint8} for compatibility.", RuntimeWarning,
            stacklevel=4,
        )  # fmt: skip


@numpys(
    "One histogram; without `range`, min and max first (the call waits)",
    differs="counts follow the edges exactly (NumPy rounds 64-bit integers and short floats); "
    "weights are summed exactly and rounded once; edges with NaN raise a ValueError",
)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return the number of samples in each bin, and the edges of the bins.

    >>> gnp.histogram([1, 2, 1, 4], bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    name = "histogram"
    a = array_of(a, f"{name}: a")
    weights = _weights_of(weights, shape_of(a), name)
    has_more = weights is not None or type(bins) is str
    if has_more and are_few((a, weights)):
        return np.histogram(a, bins, range, density, weights)
    _warn_of_bool(a)
    kind = binning.dtype_of(a, name)
    resolved = binning.bins_of(a, kind, bins, range, weights is not None, name)
    counts = _count(a, resolved, weights, name)
    edges = beside(resolved.edges, counts, name)
    if density:
        return density_of(counts, (np.diff(resolved.edges),), name), edges
    return counts, edges


def _count(a: Any, resolved: binning.Found, weights: Any, name: str) -> Any:
    """Return the counts of samples, or the sums of their weights in the weights' dtype."""
    weights_dtype = None if weights is None else function.dtype_of(weights, name)
    sum_dtype = None if weights_dtype is None or weights_dtype.kind == "b" else weights_dtype
    if resolved.edges.size < 2:
        empty = np.empty(0, COUNT if weights_dtype is None else weights_dtype)
        return beside(empty, counted(a, 1, (0, 1)), name)
    bins: Any = resolved.edges.size - 1
    if resolved.ends is None:
        bins = binning.native(resolved.edges)
    if weights_dtype is not None and weights_dtype.kind == "b":
        if resolved.ends is None and 0 not in shape_of(a):
            raise TypeError(f"{name}: bool weights cannot be summed between explicit edges")
        sums = counted(a, bins, resolved.ends, weights=weights)
        return function.apply_and_cast(_is_nonzero, (sums,), weights_dtype)
    return counted(a, bins, resolved.ends, weights=weights, dtype=sum_dtype)


def _is_nonzero(n: Any) -> Any:
    return n != 0


def density_of(counts: Any, widths: tuple[np.ndarray[Any, Any], ...], name: str) -> Any:
    """Return counts divided by the sizes of their bins and by their sum."""
    size = np.asarray(widths[0], float)
    for width in widths[1:]:
        size = np.multiply.outer(size, np.asarray(width, float))
    if isinstance(counts, np.ndarray):
        return counts / size / counts.sum()
    from gpualgo._algorithms.reduce import reduce

    total = reduce(counts)
    kind = np.result_type(function.dtype_of(counts, name), FLOAT)
    return transform(_density, counts, beside(size, counts, name), total, dtype=kind)


def _density(n: Any, size: Any, total: Any) -> Any:
    return n / size / total


@numpys(
    "None for given edges; min and max for a number of bins; a few reductions for a rule, and one "
    "histogram per candidate for 'stone'. The call waits",
    differs="edges with NaN raise a ValueError if samples are counted",
)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins that `histogram` uses.

    >>> gnp.histogram_bin_edges([0, 3, 1], bins=3)
    array([0., 1., 2., 3.])
    """
    name = "histogram_bin_edges"
    a = array_of(a, f"{name}: a")
    _warn_of_bool(a)
    weights = _weights_of(weights, shape_of(a), name)
    kind = binning.dtype_of(a, name)
    resolved = binning.bins_of(a, kind, bins, range, weights is not None, name)
    return beside(resolved.edges, like(a), name)


def like(a: Any) -> Any:
    """Return an array whose library and device results of an argument have."""
    if not is_lazy(a):
        return a
    return counted(a, 1, (0, 1))  # lazy arrays have no library


# --- Histograms of several dimensions, in one pass over the samples.

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
        if dtypes.kind(function.dtype_of(weights, name)) == "c":
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
    return counts if weights is not None else function.apply_and_cast(_same, (counts,), FLOAT)


def _comparable(x: Any, edges: Any, name: str) -> Any:
    """Return samples as NumPy compares them with edges: 64-bit integers as floats with floats."""
    kind = function.dtype_of(x, name)
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
