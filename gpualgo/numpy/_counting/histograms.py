"""Histograms and counts: each sample is read once, whatever the bins."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import histogram as counted
from gpualgo._algorithms.transform import transform
from gpualgo._lazy import is_lazy
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import array_of
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._call.transfer import beside
from gpualgo.numpy._counting import binning

# Where a kernel has more to do before it begins, or there are several: more are few.
_MORE = 1 << 14

FLOAT = np.dtype(np.float64)
COUNT = np.dtype(np.intp)


def are_few(arrays: tuple[Any, ...]) -> bool:
    """Return whether all that are given are NumPy's, and few, where there is more to do."""
    given = [one for one in arrays if one is not None]
    if not all(type(one) is np.ndarray for one in given):
        return False
    return function.is_few(given[0].size, _MORE)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _weights_of(weights: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return weights as an array of the shape of the samples, None where there are none."""
    if weights is None:
        return None
    weights = array_of(weights, f"{name}: weights")
    if shape_of(weights) != shape:
        raise ValueError(
            f"{name}: weights should have the same shape as a, {shape}, got {shape_of(weights)}"
        )
    return weights


def _told_of_bool(a: Any) -> None:
    """Warn of samples of bool as NumPy does."""
    kind = a.dtype if is_lazy(a) else results.dtype_of(a, "histogram")
    if kind.kind == "b":
        warnings.warn(
            f"Converting input from bool to {np.uint8} for compatibility.", RuntimeWarning,
            stacklevel=4,
        )  # fmt: skip


@numpys(
    "One histogram, and without range= the extremes first, for which it waits",
    differs="counts follow the edges where NumPy rounds 64-bit integers and short floats first; "
    "weights are summed exactly and rounded once; edges that hold NaN are a ValueError",
)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Count the samples in bins.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.histogram([1, 2, 1, 4], bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    name = "histogram"
    a = array_of(a, f"{name}: a")
    weights = _weights_of(weights, shape_of(a), name)
    has_more = weights is not None or type(bins) is str
    if has_more and are_few((a, weights)):
        return np.histogram(a, bins, range, density, weights)
    _told_of_bool(a)
    kind = binning.dtype_of(a, name)
    found = binning.bins_of(a, kind, bins, range, weights is not None, name)
    counts = _counted(a, found, weights, name)
    edges = beside(found.edges, counts, name)
    if density:
        return density_of(counts, (np.diff(found.edges),), name), edges
    return counts, edges


def _counted(a: Any, found: binning.Found, weights: Any, name: str) -> Any:
    """Return the counts of samples, or the sums of their weights, of the weights' dtype."""
    own = None if weights is None else results.dtype_of(weights, name)
    wanted = None if own is None or own.kind == "b" else own
    if found.edges.size < 2:
        none = np.empty(0, COUNT if own is None else own)
        return beside(none, counted(a, 1, (0, 1)), name)
    bins: Any = found.edges.size - 1
    if found.ends is None:
        bins = binning.native(found.edges)
    if own is not None and own.kind == "b":
        if found.ends is None and 0 not in shape_of(a):
            raise TypeError(f"{name}: weights of bool are not added up between edges of your own")
        sums = counted(a, bins, found.ends, weights=weights)
        return results.finished(_is_some, (sums,), own)
    return counted(a, bins, found.ends, weights=weights, dtype=wanted)


def _is_some(n: Any) -> Any:
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
    kind = np.result_type(results.dtype_of(counts, name), FLOAT)
    return transform(_divided, counts, beside(size, counts, name), total, dtype=kind)


def _divided(n: Any, size: Any, total: Any) -> Any:
    return n / size / total


@numpys(
    "None for edges; the extremes for a number of bins; a few reductions for a rule, and a "
    "histogram for each number that 'stone' tries; it waits for them",
    differs="edges that hold NaN are a ValueError where samples are counted",
)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins that `histogram` counts in.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.histogram_bin_edges([0, 3, 1], bins=3)
    array([0., 1., 2., 3.])
    """
    name = "histogram_bin_edges"
    a = array_of(a, f"{name}: a")
    _told_of_bool(a)
    weights = _weights_of(weights, shape_of(a), name)
    kind = binning.dtype_of(a, name)
    found = binning.bins_of(a, kind, bins, range, weights is not None, name)
    return beside(found.edges, like(a), name)


def like(a: Any) -> Any:
    """Return an array of the library that results of an argument have."""
    if not is_lazy(a):
        return a
    return counted(a, 1, (0, 1))  # lazy ones have no library of their own
