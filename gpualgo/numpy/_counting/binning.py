"""Bins of histograms: NumPy's ranges, edges and rules, from a few passes over the samples."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.extremes import minmax
from gpualgo._algorithms.histogram import histogram
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._algorithms.select import select
from gpualgo._algorithms.top_k import kth_value
from gpualgo._arrays.view import view_of
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy._call.arguments import NotTaken, host_of

_range = range


class Found(NamedTuple):
    """Edges in host memory, and the range of even bins (None for edges given by the caller)."""

    edges: np.ndarray[Any, Any]
    ends: tuple[Any, Any] | None


def bins_of(x: Any, kind: Any, bins: Any, range: Any, has_weights: bool, name: str) -> Found:
    """Return the bins of samples of a dtype, as NumPy defines them."""
    if isinstance(bins, str):
        rule = RULES.get(bins)
        if rule is None:
            raise ValueError(f"{name}: bins={bins!r} is not a rule; pass one of {', '.join(RULES)}")
        if has_weights:
            raise TypeError(f"{name}: rules for bins do not support weights; pass a number of bins")
        ends = ends_of(x, range, name)
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
        return _even_bins(kind, number, ends_of(x, range, name))
    return Found(edges_of(bins, name), None)


def is_edges(bins: Any) -> bool:
    """Return whether bins are edges rather than a number of bins."""
    ndim = getattr(bins, "ndim", None)
    return bool(np.ndim(bins) if ndim is None else ndim)


def edges_of(bins: Any, name: str) -> np.ndarray[Any, Any]:
    """Return the given edges in host memory."""
    is_foreign = hasattr(bins, "dtype") and not isinstance(bins, (np.ndarray, np.generic))
    edges = host_of(bins, f"{name}: bins") if is_foreign else np.asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"{name}: an array of bins must be 1d, got shape {edges.shape}")
    _check_kernel(edges.dtype, f"{name}: bins")
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError(f"{name}: bins decreases; pass edges in ascending order")
    return edges


def _even_bins(kind: Any, number: int, ends: tuple[Any, Any]) -> Found:
    try:
        return Found(Bins(kind, number, None, *ends).all_edges(), ends)
    except ValueError:
        raise ValueError(
            f"Too many bins for data range: {number} from {ends[0]} to {ends[1]} have edges that "
            f"their dtype cannot tell apart"
        ) from None


def ends_of(x: Any, range: Any, name: str) -> tuple[Any, Any]:
    """Return the range of even bins: the given one, or the extreme samples."""
    if range is not None:
        low, high = (_range_end(end, name) for end in range)
        if low > high:
            raise ValueError(f"{name}: max must be larger than min in range, got ({low}, {high})")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name}: range ({low}, {high}) is not finite")
    elif not x.size if is_lazy(x) else 0 in x.shape:
        low, high = 0, 1
    else:
        low, high = (host_of(end, name)[()] for end in minmax(x))
        if isinstance(low, np.bool_):
            low, high = np.uint8(low), np.uint8(high)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(
                f"{name}: the range [{low}, {high}] of the samples is not finite; pass range=, "
                "outside of which they are not counted"
            )
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


def native(edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return edges in native byte order."""
    return edges.astype(edges.dtype.newbyteorder("="), copy=False)


def _check_kernel(kind: np.dtype[Any], where: str) -> None:
    """Raise NotTaken for dtypes that only NumPy supports, such as long double."""
    if dtypes.name_of(kind) is None and dtypes.name_of(kind.newbyteorder("=")) is None:
        raise NotTaken(f"{where} has dtype {kind}, which has no kernel")


# --- rules ------------------------------------------------------------------------------------


def _bins_by_rule(
    x: Any, kind: Any, rule: Callable[..., Any], ends: tuple[Any, Any], has_range: bool, name: str
) -> int:
    """Return the number of bins by a rule."""
    lazy = lazy_of(x)
    if lazy.dtype.kind == "b":
        x = lazy = lazy.astype(kind)
    size = lazy.size
    if has_range:
        low, high = ends
        x = select(x, (lazy >= low) & (lazy <= high))
        (size,) = x.shape
    if not size:
        return 1
    width = rule(_Samples(x, size, name), ends)
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


class _Samples:
    """Statistics of the samples that rules use, each computed on demand."""

    def __init__(self, x: Any, size: int, name: str) -> None:
        self.x, self.size, self.name = x, size, name

    def extent(self) -> Any:
        """Return the greatest sample minus the least: one reduction."""
        return _distance(*(host_of(one, self.name)[()] for one in minmax(self.x)))

    def deviation(self) -> Any:
        """Return the standard deviation: one reduction."""
        return host_of(reductions.std(lazy_of(self.x)), self.name)[()]

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


def _sqrt(x: _Samples, ends: Any) -> Any:
    return x.extent() / np.sqrt(x.size)


def _sturges(x: _Samples, ends: Any) -> Any:
    return x.extent() / (np.log2(x.size) + 1.0)


def _rice(x: _Samples, ends: Any) -> Any:
    return x.extent() / (2.0 * x.size ** (1.0 / 3))


def _scott(x: _Samples, ends: Any) -> Any:
    return (24.0 * np.pi**0.5 / x.size) ** (1.0 / 3.0) * x.deviation()


def _stone(x: _Samples, ends: Any) -> Any:
    n, extent = x.size, x.extent()
    if n <= 1 or extent == 0:
        return 0

    def error(number: int) -> Any:
        counts = host_of(histogram(x.x, number, ends), x.name)
        shares = counts / n
        return (2 - (n + 1) * shares.dot(shares)) / (extent / number)

    most = max(100, int(np.sqrt(n)))
    best = min(_range(1, most + 1), key=error)
    if best == most:
        warnings.warn(
            "The number of bins estimated may be suboptimal.", RuntimeWarning, stacklevel=6
        )
    return extent / best


def _cube(a: Any, center: Any, scale: Any) -> Any:
    b = (a - center) / scale
    return b * b * b


def _doane(x: _Samples, ends: Any) -> Any:
    n = x.size
    if n <= 2:
        return 0.0
    expected = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    sigma = x.deviation()
    if not sigma > 0.0:
        return 0.0
    center = host_of(reductions.mean(lazy_of(x.x)), x.name)[()]
    cubes = applied(_cube, (x.x, center, sigma), x.name)
    skewness = host_of(reductions.mean(cubes), x.name)[()]
    return x.extent() / (1.0 + np.log2(n) + np.log2(1.0 + np.absolute(skewness) / expected))


def _fd(x: _Samples, ends: Any) -> Any:
    upper, lower = x.quartiles()
    return 2.0 * np.subtract(upper, lower) * x.size ** (-1.0 / 3.0)


def _auto(x: _Samples, ends: Any) -> Any:
    return min(max(_fd(x, ends), _sqrt(x, ends) / 2), _sturges(x, ends))


RULES: dict[str, Callable[[_Samples, Any], Any]] = {
    "stone": _stone, "auto": _auto, "doane": _doane, "fd": _fd, "rice": _rice, "scott": _scott,
    "sqrt": _sqrt, "sturges": _sturges,
}  # fmt: skip


def dtype_of(x: Any, name: str) -> np.dtype[Any]:
    """Return the dtype of samples; raise NotTaken if they have no order."""
    kind = x.dtype if is_lazy(x) else view_of(x, name).dtype
    if dtypes.kind(kind) == "c":
        raise NotTaken(f"{name}: samples of dtype {kind} have no order; pass numpy.abs(x)")
    return np.dtype(np.uint8) if kind.kind == "b" else kind
