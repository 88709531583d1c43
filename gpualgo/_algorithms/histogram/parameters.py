"""Kernel parameters of the histogram (kernel.cuh, small.cuh and bins.cuh of histogram/)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gpualgo._cuda.parameters import F64, I32, I64, POINTER, U32, U64, Parameters, init, scalar
from gpualgo._cuda.templates import DIVISOR, layout

TABLE_SIZE_PARAMS = Parameters("TableSize", num_slots=I64, replicas=I64, words=I64)
_COMMON = Parameters(
    "HistogramCommon",
    input=POINTER, output=POINTER, counters=POINTER, tickets=POINTER, counter_bytes=I64,
    result=I64, num_bins=I64, output_bytes=I64, bin_stride=I64, table=TABLE_SIZE_PARAMS,
    blocks_per_row=DIVISOR, kept=layout(2),
)  # fmt: skip
BYTE_BINS_PARAMS = Parameters("ByteBins", bins=I32[256], flip=U64)
UNIT_BINS_PARAMS = Parameters("UnitBins", first=U32, flip=U32)


@cache
def even_bins_params(position: np.dtype[Any]) -> Parameters:
    """Return EvenBins with positions of a dtype."""
    real, fixed = scalar(position), U32 if position.itemsize == 4 else U64
    return Parameters(
        "EvenBins",
        first=U64, span=U64, start=F64, step=F64, stop=F64, origin=real, scale=real, bias=real,
        base=fixed, mask=fixed, near_width=fixed, shift=U32, num_bins=U32,
    )  # fmt: skip


@cache
def search_bins_params(key: np.dtype[Any]) -> Parameters:
    """Return SearchBins with thresholds of a dtype."""
    padded = scalar(key, alignment=8)
    return Parameters(
        "SearchBins",
        thresholds=POINTER, cells=POINTER, first=padded, last=padded, base=padded,
        scale=scalar(np.dtype(np.float32), alignment=8), first_step=U32, num_thresholds=U32,
        num_cells=U32,
    )  # fmt: skip


@cache
def flat_params(bins: Parameters) -> Parameters:
    """Return FlatHistogram<Bins>."""
    return Parameters("FlatHistogram", common=_COMMON, num_items=I64, bins=bins)


@cache
def strided_params(bins: Parameters) -> Parameters:
    """Return StridedHistogram<Bins>."""
    return Parameters(
        "StridedHistogram",
        common=_COMMON, num_items=I64, num_places=I64, channels=I64, samples=layout(1), bins=bins,
    )  # fmt: skip


@cache
def small_params(bins: Parameters) -> Parameters:
    """Return SmallHistogram<Bins>."""
    return Parameters(
        "SmallHistogram",
        input=POINTER, output=POINTER, words=POINTER, bin_stride=I64, num_items=U32, num_slots=U32,
        num_bins=U32, output_bytes=U32, bins=bins,
    )  # fmt: skip


# --- Kernel parameters of joint and weighted histograms (histogram/joint.cuh and its users).

ROUND_PARAMS = Parameters(
    "RoundSums",
    sums=POINTER, head=POINTER, output=POINTER, num_slots=I64, num_bins=I64, first_place=I64,
    number_bytes=I64, bins_per_place=DIVISOR, places=layout(1), cells=layout(1),
)  # fmt: skip
FLAT_PARAMS = Parameters("FlatItems")


@cache
def joint_strided_params(leaves: int) -> Parameters:
    """Return StridedItems<leaves>."""
    return Parameters("StridedItems", items=layout(leaves))


def bins_params(each: Sequence[Parameters]) -> Parameters:
    """Return JointBins of these kinds of bins."""
    kinds = Parameters("Tuple", **{f"v{i}": kind for i, kind in enumerate(each)})
    count = I64[len(each)]
    return Parameters("JointBins", each=kinds, num_bins=count, shared_words=count)


def _rows(leaves: int, access: Parameters) -> Parameters:
    return Parameters(
        "JointRows",
        num_items=I64, first=I64, end=I64, channels=I64, blocks_per_row=DIVISOR,
        kept=layout(leaves), access=access,
    )  # fmt: skip


def counted_params(leaves: int, bins: Parameters, access: Parameters) -> Parameters:
    """Return JointHistogram<leaves, Bins, Access>."""
    return Parameters(
        "JointHistogram",
        input=POINTER[leaves], output=POINTER, counters=POINTER, tickets=POINTER,
        counter_bytes=I64, result=I64, num_bins=I64, output_bytes=I64, table=TABLE_SIZE_PARAMS,
        places=layout(1), cells=layout(1), rows=_rows(leaves, access), bins=bins,
    )  # fmt: skip


def weighted_params(
    leaves: int, num_bytes: int, bins: Parameters, access: Parameters
) -> Parameters:
    """Return WeightedHistogram<leaves, A, Bins, Access>, for an A of `num_bytes` bytes."""
    return Parameters(
        "WeightedHistogram",
        weight=init(num_bytes), input=POINTER[leaves], sums=POINTER, head=POINTER, num_bins=I64,
        num_digits=I64, table=TABLE_SIZE_PARAMS, num_slots=I64,
        rows=_rows(leaves, access), bins=bins,
    )  # fmt: skip
