"""Histograms of one dimension, in one pass over the samples."""

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
    kind = a.dtype if is_lazy(a) else results.dtype_of(a, "histogram")
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
    weights_dtype = None if weights is None else results.dtype_of(weights, name)
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
        return results.finished(_is_nonzero, (sums,), weights_dtype)
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
    kind = np.result_type(results.dtype_of(counts, name), FLOAT)
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

    Examples
    --------
    >>> import gpualgo.numpy as gnp
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
