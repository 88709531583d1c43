"""Counts of samples in bins: histograms, their edges by NumPy's rules, and counts of integers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo import histogram as count_samples
from gpualgo import kth_value, minmax, reduce, reduce_by_index, select, transform
from gpualgo._algorithms.histogram.arguments import finite_ends
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy.combining import applied
from gpualgo._operators.tokens import same
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy import _call
from gpualgo.numpy._call import NotTaken, array_of, host_of, is_host, numpy_function

_range = range


Array = np.ndarray[Any, Any]
# Edges in host memory, and what `gpualgo.histogram` takes: a number of bins and their range, or
# edges and None.
ResolvedBins = tuple[Array, int | Array, tuple[Any, Any] | None]


def bins_of(x: Any, bins: Any, range: Any, has_weights: bool, name: str) -> ResolvedBins:
    """Return the bins of samples, as NumPy defines them."""
    kind = sample_dtype(x, name)
    if isinstance(bins, str):
        rule = RULES.get(bins)
        if rule is None:
            raise ValueError(f"{name}: bins={bins!r} is not a rule; pass one of {', '.join(RULES)}")
        if has_weights:
            raise TypeError(f"{name}: rules for bins do not support weights; pass a number of bins")
        ends = ends_of(x, range, kind, name)
        return _even_bins(kind, _bins_by_rule(x, kind, rule, ends, range is not None, name), ends)
    if not is_edges(bins):
        try:
            number = operator.index(bins)
        except TypeError:
            raise TypeError(
                f"{name}: bins is {shown(bins)}; pass a number of bins, edges or the name of a rule"
            ) from None
        if number < 1:
            raise ValueError(f"{name}: bins is {number}; pass one or more")
        return _even_bins(kind, number, ends_of(x, range, kind, name))
    return _given_bins(bins, name)


def is_edges(bins: Any) -> bool:
    ndim = getattr(bins, "ndim", None)
    return bool(np.ndim(bins) if ndim is None else ndim)


def edges_of(bins: Any, name: str) -> Array:
    """Return the given edges in host memory."""
    is_foreign = hasattr(bins, "dtype") and not isinstance(bins, (np.ndarray, np.generic))
    edges = host_of(bins, f"{name}: bins") if is_foreign else np.asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"{name}: an array of bins must be 1d, got shape {edges.shape}")
    _check_kernel(edges.dtype, f"{name}: bins")
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError(f"{name}: bins decreases; pass edges in ascending order")
    return edges


def _given_bins(bins: Any, name: str) -> ResolvedBins:
    edges = edges_of(bins, name)
    return edges, edges.astype(edges.dtype.newbyteorder("="), copy=False), None


def _even_bins(kind: Any, number: int, ends: tuple[Any, Any]) -> ResolvedBins:
    try:
        return Bins(kind, number, None, *ends).all_edges(), number, ends
    except ValueError:
        raise ValueError(
            f"Too many bins for data range: {number} from {ends[0]} to {ends[1]} have edges that "
            f"their dtype cannot tell apart"
        ) from None


def ends_of(x: Any, range: Any, kind: Any, name: str) -> tuple[Any, Any]:
    """Return the range of even bins: the given one, or the extreme samples as `kind`."""
    if range is not None:
        low, high = (_range_end(end, name) for end in range)
        if low > high:
            raise ValueError(f"{name}: max must be larger than min in range, got ({low}, {high})")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name}: range ({low}, {high}) is not finite")
    elif 0 in x.shape:
        low, high = 0, 1
    else:
        low, high = (host_of(end, name).astype(kind)[()] for end in minmax(x))
        low, high = finite_ends(low, high, "the samples", name)
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _range_end(end: Any, name: str) -> Any:
    """Return an end of a range as a number; it may be a result on a GPU."""
    if isinstance(end, bool):
        return int(end)
    if hasattr(end, "dtype"):
        value = np.asarray(host_of(end, f"{name}: range"))
        _check_kernel(value.dtype, f"{name}: range")
        if value.ndim:
            raise ValueError(f"{name}: range holds an array of shape {value.shape}; pass numbers")
        return np.uint8(value) if value.dtype.kind == "b" else value[()]
    return end


def _check_kernel(kind: np.dtype[Any], where: str) -> None:
    """Raise NotTaken for dtypes that only NumPy supports, such as long double."""
    if dtypes.name_of(kind) is None and dtypes.name_of(kind.newbyteorder("=")) is None:
        raise NotTaken(f"{where} has dtype {kind}, which has no kernel")


# --- Rules for the number of bins.


def _bins_by_rule(
    x: Any, kind: Any, rule: Callable[..., Any], ends: tuple[Any, Any], has_range: bool, name: str
) -> int:
    lazy = lazy_of(x)
    if lazy.dtype.kind == "b":
        x = lazy = lazy.astype(kind)
    size = lazy.size
    if has_range:
        low, high = ends
        x = select(x, (lazy >= low) & (lazy <= high))
        (size,) = x.shape
    width = rule(_Samples(x, size, ends, name)) if size else 0
    if not width:
        return 1
    if kind.kind in "iu" and width < 1:
        width = 1
    with np.errstate(all="ignore"):
        return int(np.ceil(_distance(*ends) / width))


def _distance(low: Any, high: Any) -> Any:
    """Return high - low; integers are subtracted as unsigned ones, which cannot overflow."""
    kind = np.result_type(low, high)
    if kind.kind == "i":
        unsigned = np.dtype(f"u{kind.itemsize}")
        ends = (np.asarray(one, kind) for one in (high, low))
        return np.subtract(*ends, casting="unsafe", dtype=unsigned)
    return np.subtract(high, low, dtype=kind)


class _Samples(NamedTuple):
    """Samples, and the statistics that rules use: each is computed on demand."""

    x: Any
    size: int
    ends: tuple[Any, Any]
    name: str

    def extent(self) -> Any:
        """Return the greatest sample minus the least: one reduction."""
        return _distance(*(host_of(one, self.name)[()] for one in minmax(self.x)))

    def deviation(self) -> Any:
        """Return the standard deviation: one reduction."""
        return host_of(np.std(lazy_of(self.x)), self.name)[()]

    def quartiles(self) -> tuple[Any, Any]:
        """Return the quartiles, interpolated between ranks found by one selection."""
        positions = [(self.size - 1) * q for q in (0.75, 0.25)]
        ranks = [min(int(at) + i, self.size - 1) for at in positions for i in (0, 1)]
        values = np.asarray(host_of(kth_value(self.x, ranks, axis=None), self.name))
        wide = values.astype(np.float64) if values.dtype.kind in "biu" else values
        return tuple(
            np.quantile(wide[i : i + 2], values.dtype.type(at % 1) if wide is values else at % 1)
            for i, at in zip((0, 2), positions, strict=True)
        )


def _stone(x: _Samples) -> Any:
    n, extent = x.size, x.extent()
    if n <= 1 or extent == 0:
        return 0

    def error(number: int) -> Any:
        counts = host_of(count_samples(x.x, number, x.ends), x.name)
        shares = counts / n
        return (2 - (n + 1) * shares.dot(shares)) / (extent / number)

    most = max(100, int(np.sqrt(n)))
    best = min(_range(1, most + 1), key=error)
    if best == most:
        _call.warn("The number of bins estimated may be suboptimal.")
    return extent / best


def _cube(a: Any, center: Any, scale: Any) -> Any:
    b = (a - center) / scale
    return b * b * b


def _doane(x: _Samples) -> Any:
    n = x.size
    if n <= 2:
        return 0.0
    expected = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    sigma = x.deviation()
    if not sigma > 0.0:
        return 0.0
    center = host_of(np.mean(lazy_of(x.x)), x.name)[()]
    cubes = applied(_cube, (x.x, center, sigma), x.name)
    skewness = host_of(np.mean(cubes), x.name)[()]
    return x.extent() / (1.0 + np.log2(n) + np.log2(1.0 + np.absolute(skewness) / expected))


RULES: dict[str, Callable[[_Samples], Any]] = {
    "stone": _stone,
    "auto": lambda x: min(max(RULES["fd"](x), RULES["sqrt"](x) / 2), RULES["sturges"](x)),
    "doane": _doane,
    "fd": lambda x: 2.0 * np.subtract(*x.quartiles()) * x.size ** (-1.0 / 3.0),
    "rice": lambda x: x.extent() / (2.0 * x.size ** (1.0 / 3)),
    "scott": lambda x: (24.0 * np.pi**0.5 / x.size) ** (1.0 / 3.0) * x.deviation(),
    "sqrt": lambda x: x.extent() / np.sqrt(x.size),
    "sturges": lambda x: x.extent() / (np.log2(x.size) + 1.0),
}


def sample_dtype(x: Any, name: str) -> np.dtype[Any]:
    """Return the dtype of samples; raise NotTaken if they have no order."""
    kind = _call.dtype_of(x, name)
    if dtypes.kind(kind) == "c":
        raise NotTaken(f"{name}: samples of dtype {kind} have no order; pass numpy.abs(x)")
    return np.dtype(np.uint8) if kind.kind == "b" else kind


# --- Histograms of one dimension, in one pass over the samples.

# NumPy's limit for calls that need preparation or several kernels.
_FEW = 1 << 14
_FEW_INTEGERS = 1 << 18  # that `bincount` counts: one core is no faster here, but for narrow ones
_COUNTED = frozenset(map(np.dtype, ("i4", "i8")))

FLOAT = np.dtype(np.float64)
COUNT = np.dtype(np.intp)


def are_few(arrays: tuple[Any, ...], few: int = _FEW) -> bool:
    """Return whether all given arrays are NumPy's and small enough for NumPy."""
    given = [one for one in arrays if one is not None]
    return all(map(is_host, given)) and _call.is_few(given[0].size, few)


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _weights_of(weights: Any, shape: tuple[int, ...], name: str) -> Any:
    if weights is None:
        return None
    weights = array_of(weights, f"{name}: weights")
    if shape_of(weights) != shape:
        raise ValueError(
            f"{name}: weights should have the same shape as a, {shape}, got {shape_of(weights)}"
        )
    return weights


def _warn_of_bool(a: Any) -> None:
    if _call.dtype_of(a, "histogram").kind == "b":
        _call.warn(f"Converting input from bool to {np.uint8} for compatibility.")


@numpy_function(
    "One histogram; without `range`, min and max first (the call waits)",
    few=_call.FEW_TO_SEARCH,
    orders=True,
    differs="counts follow the edges exactly (NumPy rounds 64-bit integers and short floats); "
    "sums of float weights may round otherwise; edges with NaN raise a ValueError",
)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return the number of samples in each bin, and the edges of the bins.

    >>> gnp.histogram([1, 2, 1, 4], bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    name = "histogram"
    weights = _weights_of(weights, shape_of(a), name)
    if (weights is not None or type(bins) is str) and are_few((a, weights)):
        return np.histogram(a, bins, range, density, weights)
    _warn_of_bool(a)
    resolved = bins_of(a, bins, range, weights is not None, name)
    counts = _count(a, resolved, weights, name)
    edges = _call.copy_to_device_of(counts, resolved[0], name)
    if density:
        return density_of(counts, (np.diff(resolved[0]),), name), edges
    return counts, edges


def _count(a: Any, resolved: ResolvedBins, weights: Any, name: str) -> Any:
    """Return the counts of samples, or the sums of their weights in the weights' dtype."""
    edges, bins, ends = resolved
    weights_dtype = None if weights is None else _call.dtype_of(weights, name)
    if edges.size < 2:
        empty = np.empty(0, COUNT if weights_dtype is None else weights_dtype)
        return _call.copy_to_device_of(a, empty, name)
    if weights_dtype is not None and weights_dtype.kind == "b":
        if ends is None and 0 not in shape_of(a):
            raise TypeError(f"{name}: bool weights cannot be summed between explicit edges")
        sums = count_samples(a, bins, ends, weights=weights)
        return transform(_call.is_true, sums, dtype=weights_dtype)
    return count_samples(a, bins, ends, weights=weights, dtype=weights_dtype)


def density_of(counts: Any, widths: tuple[np.ndarray[Any, Any], ...], name: str) -> Any:
    """Return counts divided by the sizes of their bins and by their sum."""
    size = functools.reduce(np.multiply.outer, [np.asarray(width, float) for width in widths])
    if isinstance(counts, np.ndarray):
        return counts / size / counts.sum()
    total = reduce(counts)
    kind = np.result_type(_call.dtype_of(counts, name), FLOAT)
    sizes = _call.copy_to_device_of(counts, size, name)
    return transform(lambda n, size, total: n / size / total, counts, sizes, total, dtype=kind)


@numpy_function(
    "None for given edges; min and max for a number of bins; a few reductions for a rule, and one "
    "histogram per candidate for 'stone'. The call waits",
    few=_call.FEW_TO_SEARCH,
    differs="edges with NaN raise a ValueError if samples are counted",
)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins that `histogram` uses.

    >>> gnp.histogram_bin_edges([0, 3, 1], bins=3)
    array([0., 1., 2., 3.])
    """
    name = "histogram_bin_edges"
    _warn_of_bool(a)
    weights = _weights_of(weights, shape_of(a), name)
    edges, _, _ = bins_of(a, bins, range, weights is not None, name)
    return _call.copy_to_device_of(a, edges, name)


# --- Histograms of several dimensions, in one pass over the samples.


@numpy_function(
    "One histogram; without `range`, min and max of each dimension first (the call waits)",
    arrays=0, few=0,
    differs="at most 8 dimensions; sums of float weights may round otherwise; edges with NaN "
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
        if dtypes.kind(_call.dtype_of(weights, name)) == "c":
            raise TypeError(f"{name}: weights are complex; pass the parts separately")
    edges, numbers, ends = _joint_bins(columns, bins, range, name)
    samples = tuple([_comparable(x, edge, name) for x, edge in zip(columns, edges, strict=True)])
    if any(one.size < 2 for one in edges):
        empty = np.zeros([max(one.size - 1, 0) for one in edges])
        counts = _call.copy_to_device_of(columns[0], empty, name)
    elif weights is not None:
        counts = count_samples(samples, numbers, ends, weights=weights, dtype=FLOAT)
    else:
        counts = transform(same, count_samples(samples, numbers, ends), dtype=FLOAT)
    if density:
        counts = density_of(counts, tuple(map(np.diff, edges)), name)
    return counts, [_call.copy_to_device_of(counts, one, name) for one in edges]


def _comparable(x: Any, edges: Any, name: str) -> Any:
    """Return samples as NumPy compares them with edges: 64-bit integers as floats with floats."""
    kind = _call.dtype_of(x, name)
    is_wide = kind.kind in "iu" and kind.itemsize == 8 and edges.dtype.kind == "f"
    return lazy_of(x).astype(FLOAT) if is_wide else x


def _columns(sample: Any, name: str) -> list[Any]:
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
    names = [str(dtypes.name_of(sample_dtype(one, name))) for one in columns]
    kind = dtypes.from_name(functools.reduce(dtypes.promote, names))  # as NumPy stacks them
    dimensions = [
        _dimension(x, one, span, kind, f"{name}: dimension {i}")
        for i, (x, one, span) in enumerate(zip(columns, per_dim, ranges, strict=True))
    ]
    return [one[0] for one in dimensions], *(tuple(one[i] for one in dimensions) for i in (1, 2))


def _has_length(bins: Any) -> bool:
    return bool(bins.shape) if hasattr(bins, "shape") else hasattr(bins, "__len__")


def _dimension(x: Any, bins: Any, range: Any, kind: Any, name: str) -> ResolvedBins:
    if is_edges(bins):
        return _given_bins(bins, name)
    if bins < 1:
        raise ValueError(f"{name}: bins is {bins}; pass one or more")
    low, high = ends_of(x, range, kind, name)
    try:
        number = operator.index(bins)
    except TypeError:
        raise TypeError(f"{name}: bins is {shown(bins)}; pass a number of bins, or edges") from None
    with np.errstate(all="ignore"):
        edges = np.linspace(low, high, number + 1)
    if edges.dtype.kind != "f" or not np.all(edges[:-1] < edges[1:]):
        return edges, edges, None
    return edges, number, (edges.dtype.type(low), edges.dtype.type(high))


@numpy_function(
    "One histogram; without `range`, min and max of each dimension first (the call waits)",
    arrays=2, few=0,
    differs="sums of float weights may round otherwise; edges with NaN raise a ValueError",
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
        edges = edges_of(bins, name)
        bins = [edges, edges]
    counts, edges = _count_joint([x, y], bins, range, density, weights, name)
    return counts, edges[0], edges[1]


@numpy_function(
    "Min and max first (the call waits), then one histogram; with weights one reduction by index",
    arrays=0, few=0,
    differs="16,384 samples and more must be integers (NumPy accepts lists of floats and warns)",
)  # fmt: skip
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Return how often each integer from 0 on occurs, or the sum of the weights of each.

    >>> gnp.bincount([1, 0, 1, 3])
    array([1, 2, 0, 1])
    """
    name = "bincount"
    if minlength is None or isinstance(minlength, (bool, np.bool_)):
        raise TypeError(f"{name}: minlength must be an int, got {shown(minlength)}")
    least = operator.index(minlength)
    original = x
    x = array_of(x, f"{name}: x")
    weights = None if weights is None else array_of(weights, f"{name}: weights")
    is_plain = is_host(x) and x.ndim == 1 and x.dtype in _COUNTED
    if are_few((x, weights), _FEW_INTEGERS if is_plain else _FEW):
        return np.bincount(original, weights, least)
    _check_bincount(x, weights, least, name, is_array=hasattr(original, "dtype"))
    if not shape_of(x)[0]:
        return _call.copy_to_device_of(x, np.zeros(least, COUNT), name)
    low, high = (int(host_of(one, name)) for one in minmax(x))
    if low < 0:
        raise ValueError(f"{name}: x holds {low}; pass integers from 0 on")
    size = max(high + 1, least)
    if weights is None:
        return count_samples(x, size, (0, size))  # each integer is a bin of its own
    if _call.dtype_of(x, name).kind == "b":
        x = lazy_of(x).astype(np.uint8)
    return reduce_by_index(x, weights, size, 0.0, dtype=FLOAT)


def _check_bincount(x: Any, weights: Any, least: int, name: str, *, is_array: bool) -> None:
    """Raise for arguments that NumPy rejects; an empty list has no dtype."""
    kind = _call.dtype_of(x, name)
    shape = shape_of(x)
    if len(shape) != 1:
        raise ValueError(f"{name}: x has shape {shape}; pass one axis")
    if kind.kind not in "biu" and (shape[0] or is_array):
        raise TypeError(f"{name}: x has dtype {kind}; pass integers")
    if least < 0:
        raise ValueError(f"{name}: minlength must not be negative, got {least}")
    if weights is not None and shape[0]:
        if shape_of(weights) != shape:
            raise ValueError(
                f"{name}: weights has shape {shape_of(weights)} and x {shape}; pass as many"
            )
        if dtypes.kind(_call.dtype_of(weights, name)) == "c":
            raise TypeError(f"{name}: weights are complex; pass the parts separately")
