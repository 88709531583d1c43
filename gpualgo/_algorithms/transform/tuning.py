"""Tuning table of transformations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp, layout_type
from gpualgo._cuda.templates import VECTOR_BYTES, Applied, is_aligned, kernel_spec

# --- Tuning table of transformations: kernels and template arguments.

BLOCK_THREADS = 256
# Bytes that a thread loads before it stores, over all inputs.
BYTES_IN_FLIGHT = 16
# Upper bounds on the bytes of the widest input and output in a pack; narrower ones then have fewer.
# A thread stores vectors of 16 bytes, and two in a row would each fill half a sector. us of 2^28
# int8 to float32 with 32 bytes of output 475, with 16 341; int8 to float64 1204, 631; float32 to
# float64 924, 782.
MAX_PACK_BYTES, MAX_OUTPUT_BYTES = 32, VECTOR_BYTES
# Of a pack of records, which a block collects in shared memory before it writes them.
MAX_RECORD_PACK_BYTES = 128
# Elements per pack if inputs are misaligned: single loads touch as many cache lines.
LOOSE_ITEMS = 4


@lru_cache(4096)
def pack_items(operands: tuple[Element, ...], alignment: int, num_outputs: int = 1) -> int:
    """Return how many elements of every operand, outputs first, one aligned pack holds."""
    sizes = [field.itemsize for operand in operands for field in records.memory_fields(operand)]
    limit = max(1, min(VECTOR_BYTES // min(sizes), MAX_PACK_BYTES // max(sizes)))
    for output in operands[:num_outputs]:
        if not isinstance(output, records.Interleaved):  # they are stored past shared memory
            widest = max(field.itemsize for field in records.memory_fields(output))
            limit = min(limit, max(1, MAX_OUTPUT_BYTES // widest))
    for operand in operands:
        if isinstance(operand, records.Interleaved):
            # One vector, if records fill it; else limited by a block's shared memory.
            fills = VECTOR_BYTES % operand.size == 0
            room = (VECTOR_BYTES if fills else MAX_RECORD_PACK_BYTES) // operand.size
            limit = min(limit, 1 << max(1, room).bit_length() - 1)
    while limit > 1 and not is_aligned(operands, limit, alignment):
        limit //= 2
    return limit


def loads_in_flight(inputs: Sequence[np.dtype[Any]], items: int) -> int:
    """Return how many packs of each input a thread loads before it stores."""
    sizes = [dtype.itemsize for dtype in inputs if not records.is_position(dtype)]
    bytes_per_load = items * sum(sizes or [8])
    loads = max(1, BYTES_IN_FLIGHT // bytes_per_load)
    return min(8, 1 << int(math.log2(loads)))


# Where elements are loaded one by one: those of a thread, all of one row, and the fewest threads
# that take neighbours then, so that most of what they read and write lies together. The last number
# is for elements of one or two bytes.
ROW_LANES = {8: (24, 8), 4: (15, 8)}


class RowTiles(NamedTuple):
    """How blocks take single elements of rows."""

    loads: int  # elements of a thread, at most
    lanes: int  # threads of a row's tile
    tiles: int  # of a row

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return BLOCK_THREADS // self.lanes


def row_tiles(extent: int, itemsize: int) -> RowTiles | None:
    """Return how blocks take rows of `extent` elements, or None if these are too short."""
    ways = []
    for loads, (least, least_narrow) in ROW_LANES.items():
        lanes = min(BLOCK_THREADS, -(-extent // loads))
        if lanes >= (least_narrow if itemsize <= 2 else least):
            ways.append(RowTiles(loads, lanes, -(-extent // (loads * lanes))))
    # As a thread finds its row once, the more elements it has, the better.
    return max(ways, key=lambda way: extent * way.rows / way.tiles, default=None)


class OperandMasks(NamedTuple):
    """Bit masks of operands: contiguous in a row, or constant in a row."""

    dense: int
    repeated: int


# A tile of transposed inputs has SQUARES squares along each side. SQUARE_ITEMS: elements along the
# side of a square, by the bytes of the widest operand that is transposed or written.
# TRANSPOSED_BYTES: shared memory for tiles.
SQUARES, SQUARE_ITEMS = 32, {1: 4, 2: 4, 4: 2, 8: 1, 16: 1}
TRANSPOSED_BYTES, SQUARES_IN_FLIGHT = 48 << 10, 2


def flat_spec(
    applied: Applied, items: int, loads: int, operands: Sequence[Element] | None = None,
    loose: int = 0,
) -> Spec:  # fmt: skip
    """Return the kernel for contiguous operands; `operands` are given if some are interleaved.

    `loose` is a bit mask of inputs that are loaded number by number.
    """
    policy = cpp("TransformPolicy", BLOCK_THREADS, loads, items, *([loose] if loose else []))
    return _spec("kernel.cuh", "flat", [policy], applied, operands)


def rows_spec(
    applied: Applied, items: int, loads: int, kinds: OperandMasks, is_even: bool,
    in_rows: bool = False,
) -> Spec:  # fmt: skip
    """Return the kernel for operands in rows; is_even: rows have one dimension.

    in_rows: a thread's packs lie in one row.
    """
    policy = cpp("RowsPolicy", BLOCK_THREADS, loads, items, in_rows)
    shape = [policy, cpp("RowKinds", *kinds), layout_type(is_even)]
    return _spec("rows.cuh", "rows", shape, applied)


def transposed_spec(applied: Applied, items: int, turned: int, packed: int, is_even: bool) -> Spec:
    """Return the kernel for transposed inputs, given as bit mask `turned`.

    `packed` is a bit mask of the other inputs that are loaded in packs; is_even: the batch has one
    dimension.
    """
    policy = cpp("TurnedPolicy", BLOCK_THREADS, items, SQUARES_IN_FLIGHT)
    shape = [policy, cpp("TurnedKinds", turned, packed), layout_type(is_even)]
    return _spec("turned.cuh", "turned", shape, applied)


def _spec(
    header: str, name: str, shape: Sequence[Any], applied: Applied,
    operands: Sequence[Element] | None = None,
) -> Spec:  # fmt: skip
    types = operands or (applied.result, *applied.inputs)
    return kernel_spec(f"transform/{header}", f"transform_{name}_kernel", *shape, applied, *types)
