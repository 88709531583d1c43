"""Bins of a histogram: NumPy's edges, and the rule that assigns samples to bins.

**The rule.** With edges e[0] ≤ … ≤ e[n], real numbers, a sample x counts if e[0] ≤ x ≤ e[n], and
its bin is the last i < n with e[i] ≤ x. NaN is never counted. Comparisons are exact: no sample is
rounded. A backend may compare within the samples' dtype S (bool: uint8). Let

    lower[i] = the least value of S that is ≥ e[i],   upper = the greatest one that is ≤ e[n];

then x counts if lower[0] ≤ x ≤ upper, and its bin is the last i with lower[i] ≤ x: comparisons
within S, whatever the edges' dtype. `Bins.thresholds` gives both. For integers they are ceil(e[i])
and floor(e[n]); an edge above the greatest value of S has no lower[i]: `lower` may be shorter
than n.

**Edges.** With integer samples explicit edges are used unchanged. With float samples they are first
converted to the common dtype of x and edges, as in NumPy (which changes integers beyond 2^53).
n even bins of [lo, hi] have NumPy's edges: in W, the dtype of ``numpy.linspace(lo, hi)`` (float64
for Python numbers and integers; x's own if the range was detected from a float x),

    step = W(hi − lo) / n,   e[i] = E(W(W(i · step) + lo)) for i < n,   e[n] = E(hi),

each operation rounded (no fused multiply-add), where E is ``numpy.result_type(lo, hi, x)``, float64
if that is an integer. `Bins` rejects edges that do not strictly increase in E (NumPy: "too many
bins"), so step is never zero, and each e[i] is finite. By class of samples:

- float32, float64 given a range of Python numbers: E is x's dtype and W float64, so lower[i] = e[i]
  and upper = e[n]: a float32 edge is a float64 value, rounded once.
- float32 without a range, or with one of numpy.float32: E and W are float32. Computing the product
  and the sum in float64, each rounded to float32, gives the same bits, as i < 2^24.
- integers: E and W are float64, but for the two ends, which are lo and hi themselves where those
  are integers (that matters beyond 2^53). Up to 32 bits, and where |lo| and |hi| are below 2^53,
  comparing float64(x) with e[i] is exact; else compare with `thresholds`.
- float16, bfloat16, and W or E narrower than float32: `Bins.is_affine` may be False; compare with
  `thresholds`, or look up the bin of each of the 65536 patterns (`Bins.of_patterns`).

**From an approximate bin to the exact one.** In a float dtype F let p(x) = (F(x) − origin) · scale,
each operation rounded. It is monotone, so for x in bin b (`Bins.slack` measures d over all bins)

    b − d ≤ p(lower[b]) ≤ p(x) ≤ p(last x of bin b) ≤ b + 1 + d.

Hence, if d < 1, i = floor(p(x)), clamped to [0, n), is at most one off: where x < e[i], i − 1 is
right; where i + 1 < n and x ≥ e[i + 1], i + 1 is; else i. Neither happens unless the fraction of
p(x) is ≤ d or ≥ 1 − d. That e[0] ≤ x ≤ e[n] is tested by itself, before or after.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from gpualgo._base import dtypes

Array = np.ndarray[Any, Any]

UNMADE = object()
_INTEGER = (int, np.integer)
_KEEP_BINS = 1 << 10  # more edges are recomputed on each use


class Bins:
    """The bins of samples of one dtype; immutable, shared by equal calls."""

    __slots__ = (
        "_edges", "edge_dtype", "edges", "finder", "hi", "lo", "num_bins", "on_gpu",
        "sample_dtype", "work_dtype",
    )  # fmt: skip

    def __init__(
        self, sample_dtype: np.dtype[Any], num_bins: int, edges: Array | None, lo: Any, hi: Any
    ) -> None:
        self.sample_dtype = np.dtype(np.uint8) if sample_dtype.kind == "b" else sample_dtype
        self.num_bins = num_bins
        self.edges = edges  # explicit ones
        self.lo, self.hi = lo, hi  # of even bins, after widening
        self._edges: Array | None = None
        self.finder: Any = UNMADE  # the CPU's finder of bins; None: no sample can be in a bin
        self.on_gpu: dict[tuple[int, int], Any] = {}  # `cuda_bins.DeviceBins` without a table
        if edges is not None:
            self.work_dtype = self.edge_dtype = self._common(edges.dtype)
            return
        with np.errstate(all="ignore"):
            self.work_dtype = np.linspace(lo, hi, 1).dtype
        self.edge_dtype = _even_dtype(lo, hi, self.sample_dtype)
        even = self._even_edges()
        if not np.isfinite(even[[0, -1]]).all() or not (even[:-1] < even[1:]).all():
            raise ValueError(
                f"histogram: {num_bins} bins in the range [{lo}, {hi}] have edges that "
                f"{self.edge_dtype} cannot tell apart; use fewer bins or another range"
            )
        if num_bins <= _KEEP_BINS:
            self._edges = even

    def without_finder(self) -> Bins:
        """Return the same bins without the CPU's finder, which suits a number of samples."""
        bins = copy.copy(self)
        bins.finder = UNMADE
        return bins

    def _common(self, edges: np.dtype[Any]) -> np.dtype[Any]:
        if self.sample_dtype.kind in "iu":
            return edges
        names = str(dtypes.name_of(self.sample_dtype)), str(dtypes.name_of(edges))
        return dtypes.from_name(dtypes.promote(*names))

    def _even_edges(self) -> Array:
        with np.errstate(all="ignore"):  # overflow is rejected by its result
            return np.linspace(self.lo, self.hi, self.num_bins + 1, dtype=self.edge_dtype)

    @property
    def num_bytes(self) -> int:
        """Memory of the edges; explicit ones are stored in a key as well."""
        if self.edges is not None:
            return 2 * self.edges.nbytes
        return 0 if self._edges is None else self._edges.nbytes

    def all_edges(self) -> Array:
        """Return the num_bins + 1 edges: NumPy's for even bins, else the explicit ones."""
        if self.edges is not None:
            return self.edges
        return self._even_edges() if self._edges is None else self._edges

    @property
    def is_affine(self) -> bool:
        """Whether kernels can compute an edge: even bins whose W and E are float32 or float64."""
        wide = (np.dtype(np.float32), np.dtype(np.float64))
        return self.edges is None and self.work_dtype in wide and self.edge_dtype in wide

    @property
    def start(self) -> Any:
        """The first of even edges, as a scalar of W."""
        return np.asarray(self.lo).astype(self.work_dtype)[()]

    @property
    def stop(self) -> Any:
        """The last of even edges, as a scalar of W."""
        return np.asarray(self.hi).astype(self.work_dtype)[()]

    @property
    def step(self) -> Any:
        """The distance of even edges, as a scalar of W."""
        return np.asarray((self.stop - self.start) / self.num_bins).astype(self.work_dtype)[()]

    def thresholds(self) -> tuple[Array, Any]:
        """Return `lower` and `upper` in the samples' dtype; lower is empty if no sample counts."""
        edges = self.all_edges()
        if self.sample_dtype.kind in "iu":
            exact = tuple(int(v) if isinstance(v, _INTEGER) else None for v in (self.lo, self.hi))
            return _integer_thresholds(edges, self.sample_dtype, *exact)
        edges = edges.astype(self.edge_dtype, copy=False)
        if self.edge_dtype == self.sample_dtype:
            return edges[:-1], edges[-1]
        with np.errstate(all="ignore"):
            near = edges.astype(self.sample_dtype)
            up = np.where(near < edges, _next(near, 1), near)
            down = np.where(near > edges, _next(near, -1), near)
        lower, upper = up[:-1], down[-1]
        return (lower, upper) if lower[0] <= upper else (lower[:0], upper)

    def of_patterns(self) -> Array:
        """Return the bin (int32) of each bit pattern of an 8- or 16-bit dtype, -1 for none."""
        bits = 8 * self.sample_dtype.itemsize
        patterns = np.arange(1 << bits, dtype=f"u{bits // 8}").view(self.sample_dtype)
        return self.of_values(patterns)

    def of_values(self, x: Array) -> Array:
        """Return the bin (int32) of each sample, -1 for none: the rule in NumPy."""
        lower, upper = self.thresholds()
        if dtypes.kind(x.dtype) == "f" and x.dtype.itemsize == 2:  # NumPy searches these slowly
            x, lower, upper = x.astype("f4"), lower.astype("f4"), np.float32(upper)
        bins = np.searchsorted(lower, x, "right").astype(np.int32) - np.int32(1)
        bins[~(x <= upper)] = -1
        return bins

    def filled(self) -> tuple[Array, Array, Array]:
        """Return the indices of bins that samples may be in, and their least and last samples."""
        lower, upper = self.thresholds()
        ends = np.append(_before(lower[1:]), upper)
        ends = np.where(ends <= upper, ends, upper)
        index = np.flatnonzero((lower <= ends) & np.append(lower[:-1] < lower[1:], True))
        return index, lower[index], ends[index]

    def slack(self) -> tuple[Any, Any, float]:
        """Return origin, scale and d for F = float64; d is inf if p is useless."""
        index, least, most = self.filled()
        origin, last = (np.float64(edge) for edge in self.all_edges()[[0, -1]])
        with np.errstate(all="ignore"):
            scale = np.float64(self.num_bins / (last - origin))
            low, high = ((x.astype(np.float64) - origin) * scale for x in (least, most))
            d = np.maximum(index - low, high - (index + 1)).max(initial=0.0)
        return origin, scale, float(d) if np.isfinite((d, scale, origin)).all() else np.inf


def _even_dtype(lo: Any, hi: Any, sample: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of even edges: NumPy's, or if it has none the library's promotion."""
    like = np.empty(0, sample)
    try:
        joint: np.dtype[Any] = np.result_type(lo, hi, like)
    except TypeError:  # bfloat16 with a NumPy dtype
        name = str(dtypes.name_of(sample))
        for value in (lo, hi):
            if isinstance(value, np.generic):
                name = dtypes.promote(name, str(dtypes.name_of(value.dtype)))
        joint = dtypes.from_name(name)
    return np.dtype(np.float64) if joint.kind in "iu" else joint


def _integer_thresholds(
    edges: Array, sample: np.dtype[Any], lo: int | None, hi: int | None
) -> tuple[Array, Any]:
    """Return the least sample of each bin and the greatest of all; lo and hi are exact ends."""
    least, greatest = int(np.iinfo(sample).min), int(np.iinfo(sample).max)
    if edges.dtype.kind in "biu":
        edges = edges.view(np.uint8) if edges.dtype.kind == "b" else edges
        ups, last = edges[:-1], edges[-1]
        is_reached = ups <= greatest
    else:
        wide = edges.astype(np.float64)
        ups, last = np.ceil(wide[:-1]), np.floor(wide[-1])
        is_reached = ups < float(greatest + 1)  # a power of two is exact, the maximum may not be
    ups = ups[is_reached]
    is_below = ups < least
    lower = np.where(is_below, ups.dtype.type(0), ups).astype(sample)
    lower[is_below] = least
    if lo is not None and lower.size:
        lower[0] = min(max(lo, least), greatest)
    end = hi if hi is not None else greatest if last > greatest else int(max(last, least - 1.0))
    upper = sample.type(min(max(end, least), greatest))
    can_count = lower.size and end >= least and lower[0] <= upper
    return (lower if can_count else lower[:0]), upper


def _next(x: Array, direction: int) -> Array:
    neighbours: Array = np.nextafter(x, np.asarray(direction * np.inf).astype(x.dtype))
    return neighbours


def _before(x: Array) -> Array:
    """Return the greatest value below each; the least integer is returned unchanged."""
    if x.dtype.kind in "iu":
        return np.where(x > np.iinfo(x.dtype).min, x - x.dtype.type(1), x)
    return _next(x, -1)
