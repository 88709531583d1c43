"""Kernel bins (histogram/bins.cuh): their C++ types, fields and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.bins import Bins, _next
from gpualgo._cuda.headers import Cpp, cpp

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# Largest shares of samples that may be too near an edge for a float32 or float64 position to give
# the bin. Each costs about as much as three others; these GPUs compute float64 fast.
FAST_DOUBLE = ((8, 0), (9, 0), (10, 0))
NEAR_IF_FAST_DOUBLE = 1 / 64
MOST_NEAR = 1 / 4
MAX_CELLS = 1 << 13  # cells of a search in shared memory, next to its thresholds
MAX_CELLS_IN_GLOBAL = 1 << 16
SEARCH_SHARED_BYTES = 48 << 10


@dataclass(frozen=True)
class DeviceBins:
    """A type of histogram/bins.cuh and the values of its fields."""

    type: Cpp
    values: Callable[[int], dict[str, Any]]  # of the fields, given the address of `table`
    table: bytes = b""  # in global memory
    shared_bytes: int = 0  # per block
    table_bins: int = 0  # counters of a histogram in a block's table
    is_search: bool = False
    shares_bins: bool = False  # several counters of a table may belong to one bin


def device_bins(bins: Bins, capability: tuple[int, int]) -> DeviceBins:
    known: DeviceBins | None = bins.on_gpu.get(capability)
    if known is None:
        is_byte = bins.sample_dtype.itemsize == 1
        known = _byte_bins(bins) if is_byte else number_bins(bins, capability)
        if not known.table:
            bins.on_gpu[capability] = known
    return known


def number_bins(
    bins: Bins, capability: tuple[int, int], most_shared: int = SEARCH_SHARED_BYTES
) -> DeviceBins:
    """Return the fastest exact kind of bins whose kernels compute the bin of each sample."""
    even = fit_even(bins, capability)
    return search_bins(bins, most_shared) if even is None else _even_bins(bins, even)


def _byte_bins(bins: Bins) -> DeviceBins:
    flip = 0x80 if bins.sample_dtype.kind == "i" else 0
    by_value = bins.of_patterns()[np.arange(256) ^ flip].astype("<i4")
    first, num_bins = int(np.argmax(by_value == 0)), bins.num_bins
    expected = np.arange(-first, 256 - first)
    expected[(expected < 0) | (expected >= num_bins)] = -1
    if num_bins <= 256 - first and np.array_equal(by_value, expected):
        fields = {"first": first, "flip": flip}
        return DeviceBins(cpp("UnitBins"), lambda _: fields, table_bins=256)
    values = {"bins": by_value.tolist(), "flip": flip}
    return DeviceBins(cpp("ByteBins"), lambda _: values, table_bins=256, shares_bins=True)


# --- even bins ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """The positions of EvenBins: v = floor(F(x - origin) * scale * 2^bits) + shift."""

    dtype: Dtype  # F
    bits: int  # of a position's fraction
    origin: Any
    scale: Any
    shift: int
    near_width: int

    @property
    def near(self) -> float:
        """The share of positions that are near an edge."""
        return math.ldexp(self.near_width, -self.bits)


def fit_even(bins: Bins, capability: tuple[int, int]) -> Fit | None:
    """Return positions that give the bin of most samples; None if edges must be searched."""
    if not bins.is_affine or (bins.work_dtype == FLOAT32 and bins.num_bins >= 1 << 24):
        return None
    is_fast = capability in FAST_DOUBLE
    if bins.sample_dtype.itemsize <= 4:
        narrow = fit(bins, FLOAT32)
        if narrow is not None and narrow.near <= (NEAR_IF_FAST_DOUBLE if is_fast else MOST_NEAR):
            return narrow
    wide = fit(bins, FLOAT64)
    return wide if wide is not None and wide.near <= MOST_NEAR else None


def fraction_bits(dtype: Dtype, num_bins: int) -> int:
    """Return k of EvenBins: positions below num_bins * 2^k fit the mantissa."""
    if dtype == FLOAT32:
        return 23 - (num_bins - 1).bit_length()
    return 32 if num_bins <= 1 << 20 else 20


def fit(bins: Bins, dtype: Dtype) -> Fit | None:
    """Return positions in dtype, with the uncertain width near edges; None if they are unusable.

    The least and the greatest sample of every bin b (and the nearest ones outside) pass through the
    kernel's arithmetic. Then v >= b * 2^k and v < (b + 1) * 2^k + near_width hold for them and, as
    v is monotone, for all samples (see histogram/bins.cuh).
    """
    bits = fraction_bits(dtype, bins.num_bins)
    lower, upper = bins.thresholds()
    if bits < 1 or not lower.size:
        return None
    is_integer = bins.sample_dtype.kind in "iu"
    index, least_of_bins, last_of_bins = bins.filled()
    # The last bin is closed: the kernel also handles samples just beyond it.
    limits = np.where(index + 1 < bins.num_bins, index + 1, bins.num_bins + 1)
    first, last = (float(edge) for edge in bins.all_edges()[[0, -1]])
    with np.errstate(all="ignore"):
        origin = np.float64(first).astype(dtype)
        scale = np.float64(bins.num_bins / (last - first)).astype(dtype)
        low = _positions(least_of_bins, lower[0], origin, scale, bits) - np.ldexp(1.0 * index, bits)
        high = _positions(last_of_bins, lower[0], origin, scale, bits) - np.ldexp(
            1.0 * limits, bits
        )
        if not is_integer:
            outside = _next(lower[:1], -1), _next(np.asarray([upper]), 1)
            below, above = (_positions(x, lower[0], origin, scale, bits) for x in outside)
            low = np.append(low, above - math.ldexp(bins.num_bins, bits))
            high = np.append(high, below)
    # Beyond the mantissa the last bit of float64 products is uncertain.
    margin = 0 if dtype == FLOAT32 else 1
    least, most = float(low.min()) - margin, float(high.max()) + margin
    mantissa = 23 if dtype == FLOAT32 else 52
    if not (np.isfinite(scale) and np.isfinite(most) and abs(least) < math.ldexp(1.0, mantissa)):
        return None
    return Fit(dtype, bits, origin, scale, int(-least), max(0, int(most - least) + 1))


def _positions(x: Array, first: Any, origin: Any, scale: Any, bits: int) -> Array:
    """Return floor(F(x - origin) * scale * 2^bits) as the kernel computes it."""
    dtype = scale.dtype
    if x.dtype.kind not in "iu":
        distance = x.astype(dtype) - origin
    elif x.dtype.itemsize == 8:
        distance = (x.view(np.uint64) - first.view(np.uint64)).astype(dtype)
    else:
        distance = (x.astype(np.int64) - int(first)).astype(dtype)
    # A product of two float32 values is exact in float64.
    result: Array = np.floor(np.ldexp(distance.astype(np.float64) * np.float64(scale), bits))
    return result


def _even_bins(bins: Bins, even: Fit) -> DeviceBins:
    is_narrow = even.dtype == FLOAT32
    mantissa = 23 if is_narrow else 52
    bias = math.ldexp((1 << mantissa) + even.shift, -even.bits)
    base = even.dtype.type(math.ldexp(1.0, mantissa - even.bits))
    fixed = np.dtype(np.uint32 if is_narrow else np.uint64)
    first = span = 0
    if bins.sample_dtype.kind in "iu":
        lower, upper = bins.thresholds()
        first, span = int(lower[0]) % (1 << 64), int(upper) - int(lower[0])
    values = {
        "first": first, "span": span, "start": bins.start, "step": bins.step, "stop": bins.stop,
        "origin": even.origin, "scale": even.scale, "bias": bias,
        "base": int(base.view(fixed)),
        "mask": (1 << even.bits) - 1, "near_width": even.near_width, "shift": even.bits,
        "num_bins": bins.num_bins,
    }  # fmt: skip
    types = bins.sample_dtype, even.dtype, bins.work_dtype, bins.edge_dtype
    kind = Cpp("EvenBins", (*types, 0 if is_narrow else even.bits), (("Fixed", fixed),))
    return DeviceBins(kind, lambda _: values, table_bins=bins.num_bins)


# --- searched bins ------------------------------------------------------------------------


def search_bins(bins: Bins, most_shared: int = SEARCH_SHARED_BYTES) -> DeviceBins:
    lower, upper = bins.thresholds()
    if not lower.size:  # no sample counts
        lower, upper = np.ones(1, bins.sample_dtype), bins.sample_dtype.type(0)
    key = bins.sample_dtype
    if key.kind not in "iu" and key.itemsize == 2:
        key = FLOAT32
    elif key.itemsize == 1:
        key = np.dtype(np.int16)
    keys = lower.astype(key)
    num_keys = keys.size
    num_cells = 2 << (num_keys - 1).bit_length()
    cells_bytes = 4 * min(num_cells, MAX_CELLS)
    shared_bytes = (num_keys + 1) // 2 * 2 * key.itemsize + cells_bytes
    in_shared = shared_bytes <= most_shared
    num_cells = min(num_cells, MAX_CELLS if in_shared else MAX_CELLS_IN_GLOBAL)
    base, scale = _cell_scale(keys, num_cells)
    starts = np.searchsorted(_cells(keys, base, scale, num_cells), np.arange(num_cells + 1))
    most = int(np.diff(starts).max())
    first_step = 1 << (most.bit_length() - 1)
    table = keys.tobytes() + bytes(-keys.nbytes % 16)

    def values(address: int) -> dict[str, Any]:
        return {
            "thresholds": address, "cells": address + len(table), "first": keys[0],
            "last": np.asarray(upper).astype(key)[()], "base": base, "scale": scale,
            "first_step": first_step, "num_thresholds": num_keys, "num_cells": num_cells,
        }  # fmt: skip

    return DeviceBins(
        Cpp("SearchBins", (bins.sample_dtype, in_shared), (("Key", key),)), values,
        table + starts.astype("<u4").tobytes(), shared_bytes if in_shared else 0, bins.num_bins,
        True,
    )  # fmt: skip


def _cell_scale(keys: Array, num_cells: int) -> tuple[Any, np.float32]:
    """Return the start of cells, and cells per unit; any values give correct bins."""
    finite = keys if keys.dtype.kind in "iu" else keys[np.isfinite(keys)]
    if not finite.size:
        return keys.dtype.type(0), np.float32(0)
    with np.errstate(all="ignore"):
        extent = float(finite[-1]) - float(finite[0])
        scale = np.float32(num_cells / extent) if extent > 0 else np.float32(0)
    return finite[0], scale if np.isfinite(scale) else np.float32(0)


def _cells(keys: Array, base: Any, scale: np.float32, num_cells: int) -> Array:
    """Return the cells of keys as SearchBins computes them."""
    with np.errstate(all="ignore"):
        if keys.dtype.kind in "iu":
            unsigned = np.dtype(np.uint64 if keys.dtype.itemsize == 8 else np.uint32)
            distance = (keys.astype(unsigned) - base.astype(unsigned)).astype(FLOAT32)
        else:
            distance = (keys - base).astype(FLOAT32)
        cell: Array = np.fmin(np.fmax(distance * scale, np.float32(0)), np.float32(num_cells - 1))
    return cell.astype(np.uint32)
