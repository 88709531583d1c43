"""Kernel parameters of joint and weighted histograms (histogram/joint.cuh and its users)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gpualgo._algorithms.histogram.parameters import TABLE_SIZE
from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init

ROUND = Parameters(
    "RoundSums",
    sums=POINTER, head=POINTER, output=POINTER, num_slots=I64, num_bins=I64, first_place=I64,
    number_bytes=I64, bins_per_place=DIVISOR, places=layout(1), cells=layout(1),
)  # fmt: skip
FLAT = Parameters("FlatItems")


@cache
def strided(leaves: int) -> Parameters:
    """Return StridedItems<leaves>."""
    return Parameters("StridedItems", items=layout(leaves))


def bins(each: Sequence[Parameters]) -> Parameters:
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


def counted(leaves: int, bins: Parameters, access: Parameters) -> Parameters:
    """Return JointHistogram<leaves, Bins, Access>."""
    return Parameters(
        "JointHistogram",
        input=POINTER[leaves], output=POINTER, counters=POINTER, tickets=POINTER,
        counter_bytes=I64, result=I64, num_bins=I64, output_bytes=I64, table=TABLE_SIZE,
        places=layout(1), cells=layout(1), rows=_rows(leaves, access), bins=bins,
    )  # fmt: skip


def weighted(leaves: int, num_bytes: int, bins: Parameters, access: Parameters) -> Parameters:
    """Return WeightedHistogram<leaves, A, Bins, Access>, for an A of `num_bytes` bytes."""
    return Parameters(
        "WeightedHistogram",
        weight=init(num_bytes), input=POINTER[leaves], sums=POINTER, head=POINTER, num_bins=I64,
        num_digits=I64, table=TABLE_SIZE, num_slots=I64,
        rows=_rows(leaves, access), bins=bins,
    )  # fmt: skip
