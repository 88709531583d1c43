"""What the kernels of a selection by rank take (top_k/*.cuh)."""

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
BOUND_SAMPLE = Parameters(
    "BoundSampleParams",
    keys=POINTER, positions=POINTER, bounds=POINTER, num_samples=I64, first=I64, last=I64,
)  # fmt: skip
BOUNDS_BYTES = 48  # of SampleBounds
FILTER = Parameters(
    "FilterParams",
    row=POINTER, bounds=POINTER, keys=POINTER, positions=POINTER, row_items=I64, capacity=I64,
    flip=U64,
)  # fmt: skip
BOUND_KEPT = Parameters(
    "BoundKeptParams",
    kept_keys=POINTER, kept_positions=POINTER, bounds=POINTER, keys=POINTER, positions=POINTER,
    next=POINTER, capacity=I64, rank=I64, sample_bits=I64, deviations=I64, more=I64,
)  # fmt: skip
FILTER_KEPT = Parameters(
    "FilterKeptParams",
    kept_keys=POINTER, kept_positions=POINTER, bounds=POINTER, keys=POINTER, positions=POINTER,
    next=POINTER, kept_capacity=I64, rank=I64, capacity=I64,
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
