"""Kernel parameters of the histogram (kernel.cuh, small.cuh and bins.cuh of histogram/)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import F64, I32, I64, POINTER, U32, U64, Parameters, scalar

TABLE_SIZE = Parameters("TableSize", num_slots=I64, replicas=I64, words=I64)
_COMMON = Parameters(
    "HistogramCommon",
    input=POINTER, output=POINTER, counters=POINTER, tickets=POINTER, counter_bytes=I64,
    result=I64, num_bins=I64, output_bytes=I64, bin_stride=I64, table=TABLE_SIZE,
    blocks_per_row=DIVISOR, kept=layout(2),
)  # fmt: skip
BYTE_BINS = Parameters("ByteBins", bins=I32[256], flip=U64)
UNIT_BINS = Parameters("UnitBins", first=U32, flip=U32)


@cache
def even_bins(position: np.dtype[Any]) -> Parameters:
    """Return EvenBins with positions of a dtype."""
    real, fixed = scalar(position), U32 if position.itemsize == 4 else U64
    return Parameters(
        "EvenBins",
        first=U64, span=U64, start=F64, step=F64, stop=F64, origin=real, scale=real, bias=real,
        base=fixed, mask=fixed, near_width=fixed, shift=U32, num_bins=U32,
    )  # fmt: skip


@cache
def search_bins(key: np.dtype[Any]) -> Parameters:
    """Return SearchBins with thresholds of a dtype."""
    padded = scalar(key, alignment=8)
    return Parameters(
        "SearchBins",
        thresholds=POINTER, cells=POINTER, first=padded, last=padded, base=padded,
        scale=scalar(np.dtype(np.float32), alignment=8), first_step=U32, num_thresholds=U32,
        num_cells=U32,
    )  # fmt: skip


@cache
def flat(bins: Parameters) -> Parameters:
    """Return FlatHistogram<Bins>."""
    return Parameters("FlatHistogram", common=_COMMON, num_items=I64, bins=bins)


@cache
def strided(bins: Parameters) -> Parameters:
    """Return StridedHistogram<Bins>."""
    return Parameters(
        "StridedHistogram",
        common=_COMMON, num_items=I64, num_places=I64, channels=I64, samples=layout(1), bins=bins,
    )  # fmt: skip


@cache
def small(bins: Parameters) -> Parameters:
    """Return SmallHistogram<Bins>."""
    return Parameters(
        "SmallHistogram",
        input=POINTER, output=POINTER, words=POINTER, bin_stride=I64, num_items=U32, num_slots=U32,
        num_bins=U32, output_bytes=U32, bins=bins,
    )  # fmt: skip
