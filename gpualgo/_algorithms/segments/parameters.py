"""Parameter structs of the kernels of segments (segments/reduce.cuh, starts.cuh and scan.cuh)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Source
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init

Dtype = np.dtype[Any]

HEADS = Parameters(
    "SegmentHeadsParams",
    offsets=POINTER, heads=POINTER, bounds=POINTER, num_items=I64, num_offsets=I64,
    offset_step=I64,
)  # fmt: skip


@cache
def reduce(source: Source, acc: Dtype, access: Parameters) -> Parameters:
    inputs, outputs = len(records.leaves(source)), len(records.leaves(acc))
    return Parameters(
        "SegmentsParams",
        init=init(acc.itemsize), input=POINTER[inputs], offsets=POINTER, output=POINTER[outputs],
        list=POINTER, chunks=POINTER, partials=POINTER, num_items=I64, num_segments=I64,
        offset_step=I64, per_warp=I64, long_items=I64, chunk_bits=I64, capacity=I64, is_start=I64,
        output_steps=I64[outputs], access=access,
    )  # fmt: skip


@cache
def starts(acc: Dtype) -> Parameters:
    count = len(records.leaves(acc))
    return Parameters(
        "SegmentStartsParams",
        starts=POINTER[count], offsets=POINTER, output=POINTER[count], num_items=I64,
        num_segments=I64, offset_step=I64, start_steps=I64[count], output_steps=I64[count],
    )  # fmt: skip


@cache
def scan(source: Source, acc: Dtype, access: Parameters) -> Parameters:
    inputs, outputs = len(records.leaves(source)), len(records.leaves(acc))
    return Parameters(
        "SegmentScanParams",
        init=init(acc.itemsize), input=POINTER[inputs], output=POINTER[outputs],
        starts=POINTER[outputs], offsets=POINTER, heads=POINTER, bounds=POINTER, states=POINTER,
        num_items=I64, num_tiles=I64, num_words=I64, num_segments=I64, offset_step=I64,
        start_steps=I64[outputs], output_steps=I64[outputs], access=access,
    )  # fmt: skip
