"""What the kernels of a scan take (scan/*.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, POINTER, U32, Parameters, init

_COMMON = Parameters(
    "ScanCommon", init=init(16), init_address=POINTER, input=POINTER, output=POINTER, states=POINTER
)
_SMALL_DIVISOR = Parameters(
    "SmallDivisor", lambda value: (value, -(-(1 << 31) // value)), value=U32, magic=U32
)
FLAT_LINES = Parameters("FlatLines", input_stride=I64, output_stride=I64, num_items=I64)
STRIDED_LINES = Parameters("StridedLines", lines=layout(2), elements=layout(2))
DENSE_ROWS = Parameters("DenseRows", strides=I64[2])
SPACED_ROWS = Parameters("SpacedRows", strides=I64[2], lines=layout(2))
WALKS = Parameters(
    "ScanWalksParams",
    common=_COMMON, num_rows=I64, num_walks=I64, row_strides=I64[2], walks=layout(2),
)  # fmt: skip
COLUMNS = Parameters(
    "ScanColumnsParams",
    common=_COMMON, num_rows=I64, num_tiles=I64, num_chunks=I64, num_words=I64, segments=I64,
    is_flipped=I64, row_strides=I64[2], column_strides=I64[2], num_columns=DIVISOR,
    tiles_per_chunk=DIVISOR, num_strips=DIVISOR, batches=layout(2),
)  # fmt: skip


@cache
def tiles(access: Parameters) -> Parameters:
    """Return ScanTilesParams<Access>."""
    return Parameters(
        "ScanTilesParams",
        common=_COMMON, num_tiles=I64, num_items=I64, num_words=I64, tiles_per_line=DIVISOR,
        access=access,
    )  # fmt: skip


@cache
def rows(access: Parameters) -> Parameters:
    """Return ScanRowsParams<Access>."""
    return Parameters(
        "ScanRowsParams",
        common=_COMMON, num_lines=I64, num_items=I64, in_units=_SMALL_DIVISOR,
        out_units=_SMALL_DIVISOR, access=access,
    )  # fmt: skip
