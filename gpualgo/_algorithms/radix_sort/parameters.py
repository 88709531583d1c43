"""Kernel parameters of the radix sort (radix_sort/*.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._algorithms.histogram.parameters import TABLE_SIZE
from gpualgo._cuda.layout import DIVISOR, layout
from gpualgo._cuda.parameters import I64, POINTER, U32, U64, Parameters

MAX_PASSES = 12
MAX_ROW_PASSES = 8
_DIGIT = Parameters("Digit", shift=U32, mask=U32, flip=U32)
_TABLES = Parameters(
    "RadixTables", control=POINTER, counts=POINTER, starts=POINTER, schedule=POINTER
)
_BUFFER = Parameters("RadixBuffer", keys=POINTER, values=POINTER)
HISTOGRAM = Parameters(
    "RadixHistogramParams",
    keys=POINTER, tables=_TABLES, row_items=I64, chunk_items=I64, num_rows=I64,
    blocks_per_row=DIVISOR, digits=_DIGIT[MAX_PASSES], is_in_place=U32, has_to_write=U32,
)  # fmt: skip
PASS = Parameters(
    "RadixPassParams",
    input=_BUFFER, output=_BUFFER, sides=_BUFFER[2], states=POINTER, tables=_TABLES,
    num_tiles=I64, row_items=I64, tiles_per_row=DIVISOR, num_words=I64, ring=U32,
    makes_values=U32, pass_index=U32, num_passes=U32, digit=_DIGIT, padding=U64,
)  # fmt: skip
ROWS = Parameters(
    "SortRowsParams",
    keys=POINTER, values=POINTER, output_keys=POINTER, output_values=POINTER, num_rows=I64,
    row_items=I64, padding=U64, is_padding_highest=U32, num_passes=U32,
    digits=_DIGIT[MAX_ROW_PASSES],
)  # fmt: skip
SMALL_ROWS = Parameters(
    "SortSmallRowsParams",
    keys=POINTER, values=POINTER, output_keys=POINTER, output_values=POINTER, num_rows=I64,
    row_items=I64, mask=U64, flip=U64, shift=I64,
)  # fmt: skip
KEY_BINS = Parameters("KeyBins")
COUNT = Parameters(
    "CountingSortCount",
    input=POINTER, counters=POINTER, offsets=POINTER, ticket=POINTER, num_items=I64, flip=I64,
    table=TABLE_SIZE, num_blocks=DIVISOR,
)  # fmt: skip
FILL = Parameters("CountingSortFill", output=POINTER, offsets=POINTER, num_items=I64, flip=I64)


@cache
def pack_words(count: int) -> Parameters:
    return Parameters(
        "PackParams",
        numbers=POINTER[count], indices=POINTER, words=POINTER, num_items=I64, row_items=DIVISOR,
        layout=layout(count),
    )  # fmt: skip


@cache
def unpack_words(count: int) -> Parameters:
    return Parameters(
        "UnpackParams",
        words=POINTER, numbers=POINTER[count], num_items=I64, layout=layout(count),
    )  # fmt: skip
