"""What the kernel of a search takes (searchsorted/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import layout_of
from gpualgo._cuda.parameters import I64, POINTER, Parameters


@cache
def search(leaves: int, is_even: bool) -> Parameters:
    """Return SearchParams of elements of so many leaves; is_even: queries lie in one dimension."""
    return Parameters(
        "SearchParams",
        sorted=POINTER[leaves], queries=POINTER[leaves], output=POINTER, num_sorted=I64,
        num_queries=I64, num_tiles=I64, steps=I64[leaves], num_levels=I64, stretch_bits=I64,
        places=layout_of(1 + leaves, is_even),
    )  # fmt: skip
