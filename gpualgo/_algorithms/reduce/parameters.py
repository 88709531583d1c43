"""What the kernels of a reduction take (reduce/rows.cuh, reduce/columns.cuh)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init


@cache
def _common(acc: np.dtype[Any]) -> Parameters:
    """Return ReduceCommon<A, T>."""
    leaves = len(records.leaves(acc))
    return Parameters(
        "ReduceCommon",
        init=init(acc.itemsize), input=POINTER[leaves], output=POINTER[leaves], partials=POINTER,
        tickets=POINTER,
    )  # fmt: skip


@cache
def flat_rows(leaves: int) -> Parameters:
    """Return FlatRows of elements with so many leaves."""
    return Parameters("FlatRows", row_strides=I64[leaves])


@cache
def strided_rows(leaves: int) -> Parameters:
    """Return StridedRows of elements with so many leaves."""
    return Parameters("StridedRows", rows=layout(2 * leaves), elements=layout(leaves))


@cache
def rows(acc: np.dtype[Any], access: Parameters) -> Parameters:
    """Return RowsParams<A, T, Access>."""
    return Parameters(
        "RowsParams",
        common=_common(acc), num_rows=I64, num_items=I64, chunk_items=I64, blocks_per_row=DIVISOR,
        access=access,
    )  # fmt: skip


@cache
def columns(acc: np.dtype[Any]) -> Parameters:
    """Return ColumnsParams<A, T>."""
    leaves = len(records.leaves(acc))
    return Parameters(
        "ColumnsParams",
        common=_common(acc), num_rows=I64, rows_per_block=I64, num_columns=I64, num_blocks=DIVISOR,
        num_column_tiles=DIVISOR, column_strides=I64[leaves], output_column_strides=I64[leaves],
        rows=layout(leaves), batch=layout(2 * leaves),
    )  # fmt: skip
