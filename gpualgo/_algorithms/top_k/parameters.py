"""Kernel parameters of the selection by rank (top_k/*.cuh)."""

from __future__ import annotations

from gpualgo._cuda.layout import DIVISOR
from gpualgo._cuda.parameters import I64, POINTER, U32, U64, Parameters

SELECT_ROWS = Parameters(
    "SelectRowsParams",
    rows=POINTER, kept_keys=POINTER, kept_positions=POINTER, bounds=POINTER, values=POINTER,
    positions=POINTER, row_items=I64, rank=I64, capacity=I64, flip=U64,
)  # fmt: skip
GATHER_SAMPLE = Parameters(
    "GatherSampleParams",
    row=POINTER, keys=POINTER, positions=POINTER, row_items=I64, flip=U64, sample_bits=U32,
)  # fmt: skip
RANKS = 8  # most ranks per launch (most_ranks)
BOUND_SAMPLE = Parameters(
    "BoundSampleParams",
    keys=POINTER, positions=POINTER, bounds=POINTER, control=POINTER, num_samples=I64,
    control_words=I64, first=I64[RANKS], last=I64[RANKS],
)  # fmt: skip
BOUNDS_BYTES = 48  # of SampleBounds
FILTER = Parameters(
    "FilterParams",
    row=POINTER, bounds=POINTER, keys=POINTER, positions=POINTER, row_items=I64, flip=U64,
    begin=I64[RANKS], capacity=I64[RANKS],
)  # fmt: skip
STATE_BYTES = 72  # of RankState
NARROW = Parameters(
    "NarrowParams",
    row=POINTER, kept_keys=POINTER, kept_positions=POINTER, bounds=POINTER, states=POINTER,
    counts=POINTER, result=POINTER, row_items=I64, result_step=I64, is_first=I64,
    num_ranks=I64, flip=U64, ranks=I64[RANKS], lists=I64[RANKS], begin=I64[RANKS],
    capacity=I64[RANKS],
)  # fmt: skip
SHORT_ROWS = Parameters(
    "ShortRowsParams",
    rows=POINTER, values=POINTER, positions=POINTER, num_rows=I64, row_items=I64, count=I64,
    flip=U64,
)  # fmt: skip
TAKE = Parameters(
    "TakeParams",
    rows=POINTER, order=POINTER, values=POINTER, positions=POINTER, row_items=I64, order_items=I64,
    first=I64, num_items=I64, count=DIVISOR,
)  # fmt: skip
