"""Kernel parameters of the merge sort (merge_sort/*.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import DIVISOR
from gpualgo._cuda.parameters import I64, POINTER, Parameters

MAX_RANKS = 64  # cuts per launch (merge_sort/cuts.cuh)


@cache
def sort_tiles(leaves: int, values: int) -> Parameters:
    """Return SortTilesParams for `leaves` key fields and `values` value fields."""
    return Parameters(
        "SortTilesParams",
        keys=POINTER[leaves], values=POINTER[values], output_keys=POINTER[leaves],
        output_values=POINTER[values], num_tiles=I64, num_rows=I64, row_items=I64,
        tiles_per_row=DIVISOR, rows_per_tile=I64, threads_per_row=I64, row_magic=I64,
    )  # fmt: skip


@cache
def merge(leaves: int, values: int) -> Parameters:
    """Return MergeParams for `leaves` key fields and `values` value fields."""
    run = Parameters("MergeRun", keys=POINTER[leaves], values=POINTER[values])
    return Parameters(
        "MergeParams",
        first=run, second=run, output_keys=POINTER[leaves], output_values=POINTER[values],
        cuts=POINTER, num_tiles=I64, row_items=I64, first_items=I64, second_items=I64,
        second_begin=I64, tiles_per_row=DIVISOR, tiles_per_pair=DIVISOR,
    )  # fmt: skip


@cache
def run_cuts(leaves: int, runs: int) -> Parameters:
    """Return RunCutsParams for `runs` runs of keys with `leaves` fields."""
    return Parameters(
        "RunCutsParams",
        keys=POINTER[leaves][runs], cuts=POINTER, lengths=I64[runs], ranks=I64[MAX_RANKS],
    )  # fmt: skip
