"""Parameter structs of the selection kernels (select/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import layout_of
from gpualgo._cuda.parameters import I64, POINTER, Parameters

DENSE_ITEMS = Parameters("DenseItems")


@cache
def spaced_items(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedItems of elements with `leaves` fields; is_even: one dimension."""
    return Parameters("SpacedItems", places=layout_of(leaves, is_even))


@cache
def select(inputs: int, outputs: int, access: Parameters) -> Parameters:
    """Return SelectParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "SelectParams",
        input=POINTER[inputs], output=POINTER[outputs], num_kept=POINTER, states=POINTER,
        num_items=I64, num_tiles=I64, num_words=I64, capacity=I64, output_steps=I64[outputs],
        access=access,
    )  # fmt: skip
