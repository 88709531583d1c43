"""Parameter structs of the kernels of a reduction by index (by_index/tables.cuh)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Source
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init


@cache
def tables(source: Source, acc: np.dtype[Any], access: Parameters) -> Parameters:
    inputs, outputs = len(records.leaves(source)), len(records.leaves(acc))
    return Parameters(
        "ByIndexParams",
        init=init(acc.itemsize), input=POINTER[inputs], output=POINTER[outputs],
        starts=POINTER[outputs], values=POINTER, marks=POINTER, group_values=POINTER,
        group_marks=POINTER, num_items=I64, num_shares=I64, share_items=I64, group=I64,
        num_groups=I64, num_columns=I64, size=I64, is_start=I64, value_bytes=I64, table_bytes=I64,
        start_steps=I64[outputs], output_steps=I64[outputs], access=access,
    )  # fmt: skip
