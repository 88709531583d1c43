"""Parameter structs of the adjacent difference kernel (adjacent_difference/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import DIVISOR, layout_of
from gpualgo._cuda.parameters import I64, POINTER, Parameters

DENSE_RESULTS = Parameters("DenseResults")


@cache
def spaced_results(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedResults of elements with `leaves` fields; is_even: one dimension."""
    return Parameters("SpacedResults", places=layout_of(leaves, is_even))


@cache
def adjacent(inputs: int, outputs: int, reads: Parameters, writes: Parameters) -> Parameters:
    """Return AdjacentParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "AdjacentParams",
        input=POINTER[inputs], output=POINTER[outputs], num_items=I64, inner=DIVISOR,
        length=DIVISOR, reads=reads, writes=writes,
    )  # fmt: skip
