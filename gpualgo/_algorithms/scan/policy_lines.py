"""Scan of many lines: which kernel, which template arguments, how the work is cut. One table.

What a cut says of lanes, segments and tiles depends on shapes and types alone, never on alignment
or on the GPU, so that neither do the bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.scan import parameters
from gpualgo._algorithms.scan.policy import unused_result, vector_items
from gpualgo._base import records
from gpualgo._base.extents import Dims
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import Parameters
from gpualgo._cuda.templates import (
    ROWS_PER_WARP,
    VECTOR_BYTES,
    WARP,
    Access,
    functor,
    spec_of,
)
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

ROWS_THREADS, ROWS_BLOCKS = 128, 8  # of a block; blocks per multiprocessor
ROWS_VECTORS = 9  # of a lane at most
ROWS_SHARED = 47 << 10  # 48 KB, less what is there besides lines
WALKS_THREADS, WALKS_LOADS, WALKS_BYTES = 128, 8, 128  # loaded at once: rows at most, bytes
WALKS_BLOCKS, PACKED_WALKS_BLOCKS = 8, 4  # of a thread's few or many columns: more would spill
MANY_WALKS = 1 << 16  # keep a GPU busy
FEW_ROWS = 16  # a tile would be short
SECTOR_BYTES = 32
COLUMNS_THREADS, COLUMNS_BLOCKS = 256, 4
COLUMNS_SHARED = 64 << 10  # of an sm_75
COLUMNS_GRID = 6  # blocks per multiprocessor, where shared memory has room
ROW_BYTES = 256  # of a tile of columns, in the wider of both types
# The same of few columns. 64 tiles of a strip pass in about 2 µs, whatever they hold: 2^28 float32
# take 732 µs as one strip of 32 columns. Narrower strips have higher tiles, and wait apart.
FEW_ROW_BYTES = 128
# Of a thread's rows. The same strip takes 1117 µs with 128; 256 would not fit a block of sm_75.
SEGMENT_BYTES = 192
FOUR_BLOCKS_SHARED = 56 << 10  # of each of an sm_90's blocks
NARROW = 32  # columns of less than 4 bytes; a thread takes several of more
MANY_CHAINS = 16  # columns' tiles that are waited for side by side
WINDOW, LONG_WINDOW = 16, 64  # tiles that a look-back reads at once, as far as there is room
LOOK_BYTES = 32  # of the values that one of its threads reads


def kernel_of(elements: Dims, lines: Dims, source: Dtype, acc: Dtype) -> str:
    """Return which kernel scans: tiles, rows, columns or walks."""
    num_items = math.prod(extent for extent, _ in elements)
    num_lines = math.prod(extent for extent, _ in lines)
    widest = max(source.itemsize, acc.itemsize)
    if num_lines == 1:
        return "tiles"
    if not _is_columns(elements, lines):
        is_short = not rows_cut(num_items, source, acc).is_long
        return "rows" if is_short or num_lines >= ROWS_PER_WARP else "tiles"
    if num_items <= FEW_ROWS:
        return "walks"
    inner_bytes = lines[-1][0] * min(source.itemsize, acc.itemsize)
    is_many = num_lines * widest >= MANY_WALKS * VECTOR_BYTES
    return "walks" if is_many and inner_bytes >= SECTOR_BYTES else "columns"


def _is_columns(elements: Dims, lines: Dims) -> bool:
    """Return whether neighbouring lines lie closer than the elements of one."""
    if not elements or not lines:
        return False
    across, along = lines[-1][1], elements[-1][1]
    return sum(map(abs, across)) < sum(map(abs, along))


def _kernel(
    name: str, takes: Parameters, arguments: tuple[Any, ...], op: Operator, source: Dtype,
    acc: Dtype, is_exclusive: bool, *more: str,
) -> Spec:  # fmt: skip
    values = ", ".join(str(int(value)) for value in arguments)
    policy = f"Scan{name.capitalize()}Policy"
    types = [functor(op, (acc, acc), acc), records.cpp_name(acc), records.cpp_name(source), *more]
    expression = (
        f"gpualgo::scan_{name}_kernel<gpualgo::{policy}<{values}>, {str(is_exclusive).lower()}, "
        f"{', '.join(types)}>"
    )
    return spec_of(f"scan/{name}.cuh", expression, takes, op, acc)


def _blocks(usual: int, source: Dtype, acc: Dtype) -> int:
    """Return how many blocks a multiprocessor should have room for; records take more registers."""
    if not records.is_record(acc):
        return usual
    return max(1, usual // (2 if max(source.itemsize, acc.itemsize) <= VECTOR_BYTES else 4))


# --- rows ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowsCut:
    """How a warp takes lines of neighbours (ScanRowsPolicy of scan/rows.cuh)."""

    vectors: int  # of 16 bytes to a lane; odd
    width: int  # lanes to a line
    rounds: int
    is_long: bool  # more than one chunk to a line

    @property
    def block_lines(self) -> int:
        """Return how many lines a block takes."""
        return ROWS_THREADS // self.width * self.rounds

    def pitch(self, widest: int) -> int:
        """Return how many elements lie from line to line in shared memory."""
        return self.width * self.vectors * vector_items(widest)


def cut_rows(num_items: int, widest: int, most: int = ROWS_VECTORS) -> RowsCut:
    """Return the cut of lines of num_items elements, of which a lane takes so many vectors."""
    vectors = -(-num_items // vector_items(widest))
    if vectors <= most:
        own = vectors | 1
        return RowsCut(own, 1, most // own, False)
    owns = range(max(1, most - 4), most + 1, 2)
    cuts = [(width * own, own, width) for width in (2, 4, 8, 16, 32) for own in owns]
    fitting = [cut for cut in cuts if cut[0] >= vectors]
    if not fitting:
        return RowsCut(most, WARP, 1, True)
    _, own, width = min(fitting)
    return RowsCut(own, width, 1, False)


def rows_cut(num_items: int, source: Dtype, acc: Dtype) -> RowsCut:
    """Return the cut of lines whose two stages and results fit in a block's shared memory."""
    widest = max(source.itemsize, acc.itemsize)
    results = 0 if source.itemsize == acc.itemsize else acc.itemsize
    vector = vector_items(widest) * (2 * source.itemsize + results)
    room = ROWS_SHARED // ROWS_THREADS // vector
    return cut_rows(num_items, widest, min(ROWS_VECTORS, room - 1 | 1))


def dense_rows(in_bytes: int, out_bytes: int, is_reversed: bool) -> Access:
    """Return the access to lines without gaps, that travel in units of so many bytes."""
    cpp = f"gpualgo::DenseRows<{in_bytes}, {out_bytes}, {str(is_reversed).lower()}>"
    return Access(cpp, parameters.DENSE_ROWS)


def spaced_rows(source: Dtype, acc: Dtype) -> Access:
    """Return the access to lines of any strides."""
    both = parameters.both_leaves(acc)
    leaves = f", {both // 2}" if records.is_record(acc) else ""
    cpp = f"gpualgo::SpacedRows<{source.itemsize}, {acc.itemsize}{leaves}>"
    return Access(cpp, parameters.spaced_rows(both))


def rows_spec(
    op: Operator, source: Dtype, acc: Dtype, access: Access, cut: RowsCut, is_exclusive: bool,
    is_async: bool,
) -> Spec:  # fmt: skip
    """Return the kernel that scans lines of neighbours."""
    arguments = (
        ROWS_THREADS, cut.vectors, cut.width, cut.rounds, cut.is_long, is_async,
        _blocks(ROWS_BLOCKS, source, acc),
    )  # fmt: skip
    takes = parameters.rows(acc, access.fields)
    return _kernel("rows", takes, arguments, op, source, acc, is_exclusive, access.cpp)


# --- columns ------------------------------------------------------------------------------


def walk_items(num_lines: int, num_columns: int, widest: int, fitting: int) -> int:
    """Return how many columns a thread walks down; as many as fit, if threads stay enough."""
    items = math.gcd(vector_items(widest), num_columns, fitting)
    while items > 1 and num_lines // items < MANY_WALKS:
        items //= 2
    return items


def walks_spec(op: Operator, source: Dtype, acc: Dtype, items: int, is_exclusive: bool) -> Spec:
    """Return the kernel whose threads walk down columns."""
    blocks = _blocks(WALKS_BLOCKS if items <= 4 else PACKED_WALKS_BLOCKS, source, acc)
    widest = items * max(source.itemsize, acc.itemsize)
    arguments = (WALKS_THREADS, items, max(1, min(WALKS_LOADS, WALKS_BYTES // widest)), blocks)
    return _kernel("walks", parameters.walks(acc), arguments, op, source, acc, is_exclusive)


@dataclass(frozen=True)
class ColumnsCut:
    """How columns are cut into tiles (ScanColumnsPolicy of scan/columns.cuh)."""

    threads: int
    is_narrow: bool  # a tile has all columns, and a thread one
    width: int  # threads across
    items: int  # columns of a thread
    segments: int  # threads down
    segment_rows: int  # rows of a thread
    strips: int
    chunks: int
    looks: int  # states that a thread reads at once

    @property
    def rows(self) -> int:
        """Return how many rows a tile has."""
        return self.segments * self.segment_rows

    def covering(self, num_columns: int) -> ColumnsCut:
        """Return the same tiles for some of the columns; narrow ones have all."""
        return replace(self, strips=-(-num_columns // (self.width * self.items)))

    def shared_bytes(self, source: Dtype, acc: Dtype) -> int:
        """Return the size of ScanColumnsShared, which the kernel checks, with its padding."""
        tile = self.threads * self.segment_rows * self.items
        results = 0 if source.itemsize == acc.itemsize else tile * acc.itemsize
        values = max(self.looks, 2) * self.threads + 64
        others = values * self.items * acc.itemsize + 4 * 4 * 64 + 64 + unused_result(acc)
        return int(-(-tile * source.itemsize // 16) * 16 + results + others)


def cut_columns(
    num_rows: int, num_columns: int, num_batches: int, source: Dtype, acc: Dtype
) -> ColumnsCut:
    """Return the cut of num_batches arrays of so many rows (elements) and columns (lines)."""
    threads = COLUMNS_THREADS
    while True:
        cut = _cut_columns(num_columns, num_batches, source, acc, threads)
        if cut.shared_bytes(source, acc) <= COLUMNS_SHARED:
            return replace(cut, chunks=-(-num_rows // cut.rows))
        threads //= 2  # of wide records


def _cut_columns(
    num_columns: int, num_batches: int, source: Dtype, acc: Dtype, threads: int
) -> ColumnsCut:
    narrowest, widest = sorted((source.itemsize, acc.itemsize))
    items = max(1, 4 // widest)
    size = widest * items  # of what a thread has of a row
    width = 1 << (ROW_BYTES // size).bit_length() - 1
    is_few = -(-num_columns // (width * items)) * num_batches < MANY_CHAINS
    step = VECTOR_BYTES // math.gcd(VECTOR_BYTES, num_columns * narrowest)
    if is_few and step == 1:  # in strips rows travel as well as in one piece
        width = min(width, max(1, FEW_ROW_BYTES // size))
    is_narrow = num_columns < (width if items == 1 else NARROW)
    if is_narrow:
        width, items, is_odd = num_columns, 1, True  # as below
        segments, segment_rows = threads // width, SEGMENT_BYTES // widest + 1
        segments = segments // step * step or segments  # tiles begin at multiples of 16 bytes
    else:
        width = _across(num_columns, items, size, is_few)
        is_odd = width * size < WARP * 4  # so that neighbours' rows begin in different banks
        segments, segment_rows = threads // width, SEGMENT_BYTES // size | is_odd
    strips = -(-num_columns // (width * items))
    window = WINDOW if strips * num_batches >= MANY_CHAINS else LONG_WINDOW
    looks = max(1, min(-(-window // segments), LOOK_BYTES // (items * acc.itemsize)))
    cut = ColumnsCut(threads, is_narrow, width, items, segments, segment_rows, strips, 0, looks)
    if is_few and strips > 1 and source.itemsize == acc.itemsize:
        least = max(1, segment_rows * 7 // 8)  # fewer rows, if four blocks have room then
        while cut.shared_bytes(source, acc) > FOUR_BLOCKS_SHARED and cut.segment_rows > least:
            cut = replace(cut, segment_rows=cut.segment_rows - 1 - is_odd)
    return cut


def _across(num_columns: int, items: int, size: int, is_few: bool) -> int:
    """Return how many threads stand across a tile that has not all columns, `items` of each."""
    threads = -(-num_columns // items)
    few_bytes = min(ROW_BYTES, FEW_ROW_BYTES)
    width = 1 << max(1, (few_bytes if is_few else ROW_BYTES) // size).bit_length() - 1
    width = min(width, 1 << (threads - 1).bit_length())
    half = max(1, width // 2)
    if width == num_columns:  # two strips, which wait apart from each other
        return half
    # So of few, but not of less than two sectors, and where less room is empty.
    rooms = [-(-threads // wide) * wide for wide in (half, width)]
    is_better = width == threads or 8 * rooms[0] <= 7 * rooms[1]
    return half if is_few and is_better and 2 * half * size >= few_bytes else width


def columns_spec(
    op: Operator, source: Dtype, acc: Dtype, cut: ColumnsCut, units: tuple[int, int],
    is_exclusive: bool, is_async: bool,
) -> Spec:  # fmt: skip
    """Return the kernel that scans tiles of columns; rows travel in `units` of bytes."""
    arguments = (
        cut.threads, 0 if cut.is_narrow else cut.width, cut.items, cut.segment_rows, cut.looks,
        *units, is_async, _blocks(COLUMNS_BLOCKS, source, acc), cut.shared_bytes(source, acc),
    )  # fmt: skip
    return _kernel("columns", parameters.columns(acc), arguments, op, source, acc, is_exclusive)
