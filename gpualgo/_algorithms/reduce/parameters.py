"""Parameter structs of the reduction kernels (rows.cuh, small.cuh and columns.cuh of reduce/)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.layout import DIVISOR, layout, layout_of, nested_layout
from gpualgo._cuda.parameters import I64, POINTER, U32, Parameters, init

Dtype = np.dtype[Any]


@cache
def _common(source: Element, acc: Dtype) -> Parameters:
    return Parameters(
        "ReduceCommon",
        init=init(acc.itemsize), input=POINTER[len(records.leaves(source))],
        output=POINTER[len(records.leaves(acc))], partials=POINTER, tickets=POINTER,
    )  # fmt: skip


@cache
def flat_rows(leaves: int) -> Parameters:
    """Return FlatRows of elements with `leaves` fields."""
    return Parameters("FlatRows", row_strides=I64[leaves])


@cache
def strided_rows(leaves: int, outputs: int, is_even: bool, is_nested: bool = False) -> Parameters:
    """Return StridedRows of elements with `leaves` fields and results with `outputs`.

    is_even: one dimension of rows and one of elements; is_nested: two dimensions of elements.
    """
    elements = nested_layout(leaves) if is_nested else layout_of(leaves, is_even)
    return Parameters("StridedRows", rows=layout_of(leaves + outputs, is_even), elements=elements)


@cache
def rows(source: Element, acc: Dtype, access: Parameters) -> Parameters:
    return Parameters(
        "RowsParams",
        common=_common(source, acc), num_rows=I64, num_items=I64, chunk_items=I64,
        blocks_per_row=DIVISOR, access=access,
    )  # fmt: skip


@cache
def small(source: Element, acc: Dtype, access: Parameters) -> Parameters:
    return Parameters(
        "SmallReduce",
        init=init(acc.itemsize), input=POINTER[len(records.leaves(source))],
        output=POINTER[len(records.leaves(acc))], words=POINTER, num_items=U32,
        access=access,
    )  # fmt: skip


@cache
def columns(source: Element, acc: Dtype, is_even: bool) -> Parameters:
    """Return ColumnsParams<A, T, Rows>; is_even: rows have one dimension."""
    leaves, outputs = len(records.leaves(source)), len(records.leaves(acc))
    return Parameters(
        "ColumnsParams",
        common=_common(source, acc), num_rows=I64, rows_per_block=I64, num_columns=I64,
        num_blocks=DIVISOR, num_column_tiles=DIVISOR, column_strides=I64[leaves],
        output_column_strides=I64[outputs],
        rows=layout_of(leaves, is_even), batch=layout(leaves + outputs),
    )  # fmt: skip
