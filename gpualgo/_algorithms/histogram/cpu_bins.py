"""Bins on CPU cores: the stage that finds the slots of samples, and its lookup table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.bins import UNMADE, Bins
from gpualgo._algorithms.histogram.problem import UPPER
from gpualgo._base import dtypes
from gpualgo._cpu.kernels import get_entry, named
from gpualgo._cpu.memory import address
from gpualgo._pipeline.problem import Array, Problem

_FEW_PATTERNS = 1 << 14  # for fewer 16-bit samples, a table of all patterns takes longer
_MAX_CELLS = 1 << 20
_EXACT = 1 << 53  # float64 represents all integers below it


@dataclass
class Finder:
    """How slots are found: a stage and its table; the last slot is for samples of no bin."""

    dtype: np.dtype[Any]  # samples are converted to it first
    slots: int
    stage: int
    table: Array
    keep: tuple[Array, ...] = ()  # arrays that the table points to

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in (self.table, *self.keep))


def finder_for(problem: Problem, bins: Bins, num_samples: int) -> Finder | None:
    """Return the cached finder of a problem's bins; None if no sample can be in a bin."""
    if bins.finder is UNMADE:
        is_few = bins.sample_dtype.itemsize == 2 and num_samples < _FEW_PATTERNS
        bins.finder = finder = _finder(bins, is_few)
        problem.hold(0 if finder is None else finder.num_bytes)
    result: Finder | None = bins.finder
    return result


def _finder(bins: Bins, is_few: bool) -> Finder | None:
    dtype, slots = bins.sample_dtype, bins.num_bins + 1
    if dtype.itemsize == 1 or (dtype.itemsize == 2 and not is_few):
        found = stage("by_pattern", np.dtype(f"u{dtype.itemsize}"))
        patterns = bins.of_patterns()
        return Finder(dtype, slots, found, np.where(patterns < 0, np.int32(slots - 1), patterns))
    lower, upper = bins.thresholds()
    if not lower.size:
        return None
    if dtype.itemsize == 2:
        dtype = np.dtype(np.float32 if dtypes.kind(dtype) == "f" else np.int32)
        lower, upper = lower.astype(dtype), upper.astype(dtype)
    if bins.is_affine and _is_exact_in_float64(dtype, bins):
        origin, scale, slack = bins.slack()
        if slack < 1:
            narrow = bins.work_dtype == np.float32, bins.edge_dtype == np.float32
            found = stage("even", dtype, *map(bool, narrow))
            head = (origin, scale, bins.num_bins - 1, bins.num_bins)
            table = np.array([*head, bins.start, bins.step, lower[0], upper], np.float64)
            return Finder(dtype, slots, found, table)
    return _search(dtype, slots, lower, upper)


def stage(name: str, dtype: np.dtype[Any], *options: bool) -> int:
    return get_entry(*named("histogram", name, dtype, *options))


def _is_exact_in_float64(dtype: np.dtype[Any], bins: Bins) -> bool:
    if dtype.kind == "f" or dtype.itemsize < 8:
        return True
    return max(abs(int(bins.lo)), abs(int(bins.hi))) < _EXACT


def _search(dtype: np.dtype[Any], slots: int, lower: Array, upper: Any) -> Finder:
    """Return the finder that looks up a sample's cell and searches from its first bin."""
    values = lower.astype(np.float64) + 0.0
    num_cells = min(_MAX_CELLS, 1 << (4 * lower.size - 1).bit_length())
    by_value, by_bits = _cells_by_value(values, num_cells), _cells_by_bits(values, num_cells)
    levels = [int(np.bincount(cells).max()).bit_length() for *_, cells in (by_value, by_bits)]
    is_by_bits = levels[1] < levels[0]
    origin, scale, cells = by_bits if is_by_bits else by_value
    first = np.searchsorted(cells, np.arange(num_cells)) - 1
    start = np.maximum(first, 0).astype(np.int32)
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padding = np.full(1 << min(levels), greatest, dtype)
    stored = np.concatenate([lower, padding])
    table = np.zeros(9)
    table[:4] = origin, scale, num_cells - 1, slots - 1
    if is_by_bits:
        table[:2].view(np.int64)[:] = origin, scale
    table[4:8].view(np.int64)[:] = address(start), address(stored), lower.size, min(levels)
    table[UPPER:].view(dtype)[0] = upper
    found = stage("search", dtype, is_by_bits)
    return Finder(dtype, slots, found, table, keep=(start, stored))


def _cells_by_value(values: Array, num_cells: int) -> tuple[float, float, Array]:
    """Return origin, scale and the cell of each threshold, computed as the kernel does."""
    finite = values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        origin = float(finite[0]) if finite.size else 0.0
        scale = float(num_cells / (finite[-1] - origin)) if finite.size else 0.0
        scale = scale if np.isfinite(scale) else 0.0
        cells = (values - origin) * scale
    return origin, scale, np.where(cells > 0, np.minimum(cells, num_cells - 1), 0).astype(np.int64)


def _cells_by_bits(values: Array, num_cells: int) -> tuple[int, int, Array]:
    """Return the first cell, the shift and the cell of each threshold, as the kernel does."""
    bits = values.view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    span = int(ordered[-1]) - int(ordered[0])
    shift = max(1, span.bit_length() - num_cells.bit_length() + 1)
    cells = ordered >> shift
    first = int(cells[0])
    return first, shift, np.minimum(cells - first, num_cells - 1)
