"""What the kernels of a reduction take (reduce/rows.cuh, reduce/columns.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, INIT, POINTER, Parameters

_COMMON = Parameters(
    "ReduceCommon", init=INIT, input=POINTER, output=POINTER, partials=POINTER, tickets=POINTER
)
FLAT_ROWS = Parameters("FlatRows", row_stride=I64)
STRIDED_ROWS = Parameters("StridedRows", rows=layout(2), elements=layout(1))
COLUMNS = Parameters(
    "ColumnsParams",
    common=_COMMON, num_rows=I64, rows_per_block=I64, num_columns=I64, num_blocks=DIVISOR,
    num_column_tiles=DIVISOR, column_stride=I64, output_column_stride=I64, rows=layout(1),
    batch=layout(2),
)  # fmt: skip


@cache
def rows(access: Parameters) -> Parameters:
    """Return RowsParams<Access>."""
    return Parameters(
        "RowsParams",
        common=_COMMON, num_rows=I64, num_items=I64, chunk_items=I64, blocks_per_row=DIVISOR,
        access=access,
    )  # fmt: skip
