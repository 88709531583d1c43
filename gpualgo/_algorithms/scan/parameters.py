"""Parameter structs of the scan kernels (scan/*.cuh)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, POINTER, U32, Parameters, init

Dtype = np.dtype[Any]

_SMALL_DIVISOR = Parameters(
    "SmallDivisor", lambda value: (value, -(-(1 << 31) // value)), value=U32, magic=U32
)
FLAT_LINES = Parameters("FlatLines", input_stride=I64, output_stride=I64, num_items=I64)
STRIDED_LINES = Parameters("StridedLines", lines=layout(2), elements=layout(2))
DENSE_ROWS = Parameters("DenseRows", strides=I64[2])


def both_leaves(acc: Dtype) -> int:
    """Return the number of fields of an element in input and output together."""
    return 2 * len(records.leaves(acc))


@cache
def stepped_lines(both: int) -> Parameters:
    """Return SteppedLines; `both` is the number of fields in input and output together."""
    return Parameters("SteppedLines", steps=I64[both], lines=layout(both))


@cache
def apart_lines(both: int) -> Parameters:
    """Return ApartLines; `both` is the number of fields in input and output together."""
    return Parameters("ApartLines", lines=layout(both))


@cache
def winding_line(both: int) -> Parameters:
    """Return WindingLine; `both` is the number of fields in input and output together."""
    return Parameters("WindingLine", elements=layout(both))


@cache
def spaced_rows(both: int) -> Parameters:
    """Return SpacedRows; `both` is the number of fields in input and output together."""
    return Parameters("SpacedRows", strides=I64[both], lines=layout(both))


@cache
def computed_lines(inputs: int, outputs: int) -> Parameters:
    """Return ComputedLines of elements with these numbers of input and output fields."""
    both = inputs + outputs
    return Parameters("ComputedLines", steps=I64[both], lines=layout(both))


@cache
def _common(acc: Dtype, source: Element | None = None) -> Parameters:
    """Return ScanCommon<A, T>; without `source`, inputs have as many fields as `acc`."""
    leaves = len(records.leaves(acc))
    inputs = leaves if source is None else len(records.leaves(source))
    return Parameters(
        "ScanCommon",
        init=init(acc.itemsize), init_address=POINTER, input=POINTER[inputs],
        output=POINTER[leaves], states=POINTER,
    )  # fmt: skip


@cache
def walks(acc: Dtype) -> Parameters:
    both = both_leaves(acc)
    return Parameters(
        "ScanWalksParams",
        common=_common(acc), num_rows=I64, num_walks=I64, row_strides=I64[both],
        walks=layout(both),
    )  # fmt: skip


@cache
def columns(acc: Dtype) -> Parameters:
    both = both_leaves(acc)
    return Parameters(
        "ScanColumnsParams",
        common=_common(acc), num_rows=I64, num_tiles=I64, num_chunks=I64, num_words=I64,
        segments=I64, is_flipped=I64, row_strides=I64[both], column_strides=I64[both],
        num_columns=DIVISOR, tiles_per_chunk=DIVISOR, num_strips=DIVISOR, batches=layout(both),
    )  # fmt: skip


@cache
def tiles(acc: Dtype, access: Parameters, source: Element) -> Parameters:
    return Parameters(
        "ScanTilesParams",
        common=_common(acc, source), num_tiles=I64, num_items=I64, num_words=I64,
        tiles_per_line=DIVISOR, access=access,
    )  # fmt: skip


@cache
def rows(acc: Dtype, access: Parameters) -> Parameters:
    return Parameters(
        "ScanRowsParams",
        common=_common(acc), num_lines=I64, num_items=I64, in_units=_SMALL_DIVISOR,
        out_units=_SMALL_DIVISOR, access=access,
    )  # fmt: skip
