"""Parameter structs of the kernel by key (by_key/kernel.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.parameters import I64, POINTER, Parameters, init


@cache
def by_key(item_bytes: int, inputs: int, outputs: int, access: Parameters) -> Parameters:
    """Return ByKeyParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "ByKeyParams",
        init=init(item_bytes), input=POINTER[inputs], output=POINTER[outputs], num_runs=POINTER,
        states=POINTER, num_items=I64, num_tiles=I64, num_words=I64, capacity=I64,
        output_steps=I64[outputs], access=access,
    )  # fmt: skip
