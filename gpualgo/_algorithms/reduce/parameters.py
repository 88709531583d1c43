"""What the kernels of a reduction take (rows.cuh, small.cuh and columns.cuh of reduce/)."""

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
    """Return ReduceCommon<A, T>."""
    return Parameters(
        "ReduceCommon",
        init=init(acc.itemsize), input=POINTER[len(records.leaves(source))],
        output=POINTER[len(records.leaves(acc))], partials=POINTER, tickets=POINTER,
    )  # fmt: skip


@cache
def flat_rows(leaves: int) -> Parameters:
    """Return FlatRows of elements with so many leaves."""
    return Parameters("FlatRows", row_strides=I64[leaves])


@cache
def strided_rows(leaves: int, outputs: int, is_even: bool, is_nested: bool = False) -> Parameters:
    """Return StridedRows of elements with so many leaves, and results with so many.

    is_even: of one dimension of each; is_nested: of two dimensions of elements.
    """
    elements = nested_layout(leaves) if is_nested else layout_of(leaves, is_even)
    return Parameters("StridedRows", rows=layout_of(leaves + outputs, is_even), elements=elements)


@cache
def rows(source: Element, acc: Dtype, access: Parameters) -> Parameters:
    """Return RowsParams<A, T, Access>."""
    return Parameters(
        "RowsParams",
        common=_common(source, acc), num_rows=I64, num_items=I64, chunk_items=I64,
        blocks_per_row=DIVISOR, access=access,
    )  # fmt: skip


@cache
def small(source: Element, acc: Dtype, access: Parameters) -> Parameters:
    """Return SmallReduce<A, T, Access>."""
    return Parameters(
        "SmallReduce",
        init=init(acc.itemsize), input=POINTER[len(records.leaves(source))],
        output=POINTER[len(records.leaves(acc))], words=POINTER, num_items=U32,
        access=access,
    )  # fmt: skip


@cache
def columns(source: Element, acc: Dtype, is_even: bool) -> Parameters:
    """Return ColumnsParams<A, T, Rows>; is_even: rows lie in one dimension."""
    leaves, outputs = len(records.leaves(source)), len(records.leaves(acc))
    return Parameters(
        "ColumnsParams",
        common=_common(source, acc), num_rows=I64, rows_per_block=I64, num_columns=I64,
        num_blocks=DIVISOR, num_column_tiles=DIVISOR, column_strides=I64[leaves],
        output_column_strides=I64[outputs],
        rows=layout_of(leaves, is_even), batch=layout(leaves + outputs),
    )  # fmt: skip
