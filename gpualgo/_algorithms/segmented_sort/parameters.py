"""Kernel parameters of the segmented sort (segmented_sort/*.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._algorithms.merge_sort import parameters as merge_sort
from gpualgo._cuda.parameters import I64, POINTER, Parameters

SPANS = Parameters(
    "SegmentSpansParams",
    heads=POINTER, bounds=POINTER, edges=POINTER, spans=POINTER, num_items=I64, num_tiles=I64,
)  # fmt: skip


@cache
def tiles(leaves: int, values: int) -> Parameters:
    """Return SegmentTilesParams for `leaves` key fields and `values` value fields."""
    buffer = Parameters("SegmentBuffer", keys=POINTER[leaves], values=POINTER[values])
    return Parameters(
        "SegmentTilesParams",
        keys=POINTER[leaves], values=POINTER[values], home=buffer, side=buffer, heads=POINTER,
        bounds=POINTER, spans=POINTER, has_odd=POINTER, num_items=I64, num_tiles=I64,
    )  # fmt: skip


@cache
def merge(leaves: int, values: int) -> Parameters:
    """Return SegmentMergeParams for `leaves` key fields and `values` value fields."""
    return Parameters(
        "SegmentMergeParams",
        spans=POINTER, count=POINTER, has_odd=POINTER, merge=merge_sort.merge(leaves, values),
        num_tiles=I64, rounds_left=I64,
    )  # fmt: skip
