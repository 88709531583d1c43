"""Parameter structs of the search kernels (searchsorted/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import layout_of
from gpualgo._cuda.parameters import I64, POINTER, Parameters

MOST_SAMPLES = 16  # most_samples of searchsorted/samples.cuh


@cache
def samples() -> Parameters:
    return Parameters(
        "SampleParams",
        sorted=POINTER[1], samples=POINTER, num_sorted=I64, num_samples=I64, step=I64,
        sample_begins=I64[MOST_SAMPLES + 1], num_items=I64,
    )  # fmt: skip


@cache
def search(leaves: int, is_even: bool) -> Parameters:
    """Return SearchParams of elements with `leaves` fields; is_even: queries have one dimension."""
    return Parameters(
        "SearchParams",
        sorted=POINTER[leaves], queries=POINTER[leaves], output=POINTER,
        samples=POINTER, num_sorted=I64,
        num_queries=I64, num_tiles=I64, steps=I64[leaves], num_levels=I64, stretch_bits=I64,
        num_samples=I64, sample_begins=I64[MOST_SAMPLES + 1],
        places=layout_of(1 + leaves, is_even),
    )  # fmt: skip
