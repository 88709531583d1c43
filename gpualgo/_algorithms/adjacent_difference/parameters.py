"""What the kernel of adjacent differences takes (adjacent_difference/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import DIVISOR, layout_of
from gpualgo._cuda.parameters import I64, POINTER, Parameters

DENSE_RESULTS = Parameters("DenseResults")


@cache
def spaced_results(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedResults of so many leaves; is_even: in one dimension."""
    return Parameters("SpacedResults", places=layout_of(leaves, is_even))


@cache
def adjacent(inputs: int, outputs: int, reads: Parameters, writes: Parameters) -> Parameters:
    """Return AdjacentParams of elements of so many leaves, read and written."""
    return Parameters(
        "AdjacentParams",
        input=POINTER[inputs], output=POINTER[outputs], num_items=I64, inner=DIVISOR,
        length=DIVISOR, reads=reads, writes=writes,
    )  # fmt: skip
