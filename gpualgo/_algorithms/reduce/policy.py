"""Tuning table of reductions: kernels, template arguments, tilings.

Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import parameters
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.layout import layout_type
from gpualgo._cuda.templates import (
    ROWS_PER_WARP,
    VECTOR_BYTES,
    WARP,
    Access,
    functor,
    spec_of,
)
from gpualgo._operators.operator import Operator


@dataclass(frozen=True)
class Policy:
    """Template arguments of a kernel (ReducePolicy of reduce/rows.cuh)."""

    block_threads: int
    loads: int  # vectors that a thread loads before it combines them
    max_tiles: int  # tiles per warp in a block's chunk; for grouped rows, rows per group

    def cpp(self, min_blocks: int = 0) -> str:
        """Return the C++ type; with min_blocks 0 ptxas chooses the occupancy.

        ptxas's choice is 1 % faster than a bound of 1 if no registers spill.
        """
        arguments = (self.block_threads, self.loads, self.max_tiles, min_blocks)
        return f"gpualgo::ReducePolicy<{', '.join(map(str, arguments))}>"

    @property
    def warps(self) -> int:
        return self.block_threads // WARP


# Few long rows, for commutative and other operators: GB/s at 2^28 float32 on an H200.
COMMUTATIVE = Policy(512, 4, 16)  # 4375
ORDERED = Policy(512, 4, 8)  # 4330
# 8 bytes and more: with 4 loads so many bytes are in flight that DRAM pages thrash.
WIDE_COMMUTATIVE = Policy(512, 2, 32)  # 4440 (float64)
WIDE_ORDERED = Policy(512, 2, 64)  # 4466 (float64), 4291 as ORDERED
# Up to SMALL_BYTES latency dominates: more blocks, smaller tiles. µs of 2^16 float32, sum and
# lambda: 4.5, 4.5 as SMALLEST; 4.8, 5.0 as SMALL. Of 2^22: 7.2, 7.4 as MIDDLE; 7.7, 7.7 as
# COMMUTATIVE and ORDERED. small_policy takes precedence for a single row.
SMALLEST, SMALLEST_BYTES = Policy(256, 1, 16), 256 << 10
SMALL = Policy(512, 2, 16)
SMALL_BYTES = 2 << 20
MIDDLE, MIDDLE_BYTES = Policy(256, 4, 16), 32 << 20  # for elements of less than 8 bytes
ROWS = Policy(256, 4, 1)
SHORT_ROWS = 4  # rows per group of less than a warp
COLUMNS = Policy(256, 4, 1)
# Larger records do not fit in the registers of large blocks.
WIDE_RECORD, RECORD_THREADS = 32, 256
RECORD_SLOTS_BYTES = 16 << 10  # shared memory for a block's tiles
# Bytes of records that a thread of reduce_columns_kernel loads before it combines them; the
# elements computed from them may take twice as much.
PACKED_BYTES = 128
# Upper bound on blocks, two per multiprocessor: with a few more the last would run alone. A chunk
# gets as many tiles per warp as that requires. argmin of 2^24: 23.1 µs; 29.5 with MOST_BLOCKS as a
# lower bound.
MOST_BLOCKS = 264
TARGET_BLOCKS = 1056  # from here on each row has a warp of its own
# Blocks of reduce_columns_kernel; the last block of each set of columns joins the partials. µs of
# float32, sum and std, (16384, 256), (16384, 1024), (262144, 1024): with 1056 blocks 16, 90, 26,
# 58, 251, 285; with 528 12, 33, 23, 37, 242, 256; with 264 10, 23, 22, 33, 249, 280. Narrow loads
# need more in flight: (67108864, 3) takes 217 with 1056, 276 with 528 (two runs).
COLUMN_BLOCKS, FEW_COLUMN_BLOCKS, FEW_COLUMN_BYTES = 528, 264, 64 << 20


def blocks_policy(op: Operator, num_bytes: int, dtype: Element) -> Policy:
    if num_bytes <= SMALL_BYTES:
        policy = SMALLEST if num_bytes <= SMALLEST_BYTES else SMALL
    elif num_bytes <= MIDDLE_BYTES and widest_read(dtype) < 8:
        policy = MIDDLE
    elif widest_read(dtype) < 8:
        policy = COMMUTATIVE if op.commutative else ORDERED
    else:
        policy = WIDE_COMMUTATIVE if op.commutative else WIDE_ORDERED
    return for_records(policy, dtype)


def row_items(dtype: Element) -> int:
    """Return the neighbours that a lane loads (`row_items` of reduce/rows.cuh)."""
    return max(1, VECTOR_BYTES // widest_read(dtype))


def widest_read(dtype: Element) -> int:
    """Return the bytes of the widest field that is read from memory."""
    return max((leaf.itemsize for leaf in records.memory_leaves(dtype)), default=1)


def bytes_read(dtype: Element) -> int:
    """Return the bytes of memory read per element, including the gaps of a record."""
    fields = records.memory_leaves(dtype)
    if isinstance(dtype, records.Computed) or len(fields) < len(records.leaves(dtype)):
        return sum(leaf.itemsize for leaf in fields)
    return dtype.itemsize


def packed_size(dtype: Element) -> int:
    """Return the bytes of registers an element takes until it is combined.

    Neighbours may share an index, and computed elements are computed only then.
    """
    if isinstance(dtype, records.Computed) or records.SHARED_POSITION in records.leaves(dtype):
        return bytes_read(dtype)
    return dtype.itemsize


def for_records(policy: Policy, dtype: Element) -> Policy:
    """Return a policy whose threads have about as many bytes in flight if elements are records.

    A wide record takes many registers and much shared memory. A wide computed element is computed
    only when it is combined, and counts half.
    """
    is_wide = isinstance(dtype, records.Computed) and dtype.itemsize > WIDE_RECORD
    lane_bytes = row_items(dtype) * max(bytes_read(dtype), dtype.itemsize // 2 if is_wide else 0)
    if lane_bytes <= VECTOR_BYTES:
        # Longer chunks if fields are indices or computed: argmax of 2^28 float32 4080 GB/s (3870).
        doubled = replace(policy, max_tiles=2 * policy.max_tiles)
        return doubled if records.is_record(dtype) and policy is COMMUTATIVE else policy
    loads = 1 << max(0, round(math.log2(policy.loads * VECTOR_BYTES / lane_bytes)))
    threads = policy.block_threads if dtype.itemsize <= WIDE_RECORD else RECORD_THREADS
    max_tiles = RECORD_SLOTS_BYTES // (threads // WARP * dtype.itemsize)
    return Policy(threads, loads, min(policy.max_tiles * policy.loads // loads, max_tiles))


@dataclass(frozen=True)
class RowsCut:
    """Tiling of rows: one row per `width` lanes, or (width 0) rows cut into blocks' chunks."""

    policy: Policy
    width: int
    chunk_items: int
    blocks_per_row: int
    num_blocks: int


def cut_rows(op: Operator, num_rows: int, num_items: int, dtype: Element) -> RowsCut:
    """Return the tiling of num_rows rows of num_items elements."""
    items = row_items(dtype)
    vectors = -(-num_items // items)
    policy = for_records(ROWS, dtype)
    short = vectors <= WARP * policy.loads
    if num_rows > 1 and (short or num_rows >= ROWS_PER_WARP):
        width = min(WARP, 1 << (vectors - 1).bit_length())
        groups = policy.block_threads // width
        # If there are many short rows, a group takes several: each is one load of a lane.
        is_many = width < WARP and num_rows >= groups * SHORT_ROWS * TARGET_BLOCKS
        policy = replace(policy, max_tiles=min(SHORT_ROWS, policy.loads) if is_many else 1)
        return RowsCut(policy, width, num_items, 1, -(-num_rows // (groups * policy.max_tiles)))
    policy = blocks_policy(op, num_rows * num_items * bytes_read(dtype), dtype)
    tiles = -(-vectors // (WARP * policy.loads))
    all_blocks = -(-tiles // policy.warps) * num_rows  # if each warp had one tile
    per_warp = max(1, min(policy.max_tiles, -(-all_blocks // MOST_BLOCKS)))
    chunk_tiles = per_warp * policy.warps
    blocks = -(-tiles // chunk_tiles)
    chunk_items = chunk_tiles * WARP * items * policy.loads
    return RowsCut(policy, 0, chunk_items, blocks, blocks * num_rows)


def _min_blocks(op: Operator, source: Element, access: Access, cut: RowsCut) -> int:
    """Return 1 for kernels that would otherwise spill registers to fit more blocks, else 0."""
    if records.is_record(source):
        return 1
    size = source.itemsize
    is_strided = access in (strided(), strided(is_even=True), strided(is_nested=True))
    many_addresses = is_strided and size <= 2  # one for each of a lane's 8 or 16 items
    many_values = (size == 1 and op.name is None) or (size == 8 and 0 < cut.width < WARP)
    return int(many_addresses or many_values)


def rows_spec(
    op: Operator, source: Element, acc: np.dtype[Any], access: Access, cut: RowsCut
) -> Spec:
    """Return the kernel that reduces rows through `access`, a template of reduce/rows.cuh."""
    element = records.cpp_name(source)
    policy = cut.policy.cpp(_min_blocks(op, source, access, cut))
    kernel = (
        f"reduce_rows_kernel<{policy}, {cut.width}"
        if cut.width
        else f"reduce_blocks_kernel<{policy}"
    )
    expression = (
        f"gpualgo::{kernel}, {functor(op, (acc, acc), acc)}, {records.cpp_name(acc)}, {element}, "
        f"gpualgo::{access.cpp.replace('T', element, 1)}>"
    )
    params = parameters.rows(source, acc, access.fields)
    return spec_of("reduce/rows.cuh", expression, params, op, acc, source)


def flat(aligned: bool, leaves: int = 1, repeated: int = 0) -> Access:
    """Return the access to contiguous rows; `repeated` is a bit mask of constant fields."""
    mask = f", {repeated}" if repeated else ""
    return Access(f"FlatRows<T, {str(aligned).lower()}{mask}>", parameters.flat_rows(leaves))


def strided(
    leaves: int = 1, outputs: int = 1, *, is_even: bool = False, is_nested: bool = False
) -> Access:
    """Return the access to rows of any strides; is_even: rows and elements have one dimension each.

    is_nested: elements have two dimensions, rows any number.
    """
    params = parameters.strided_rows(leaves, outputs, is_even, is_nested)
    elements = ", gpualgo::NestedLayout" if is_nested else ""
    return Access(f"StridedRows<T, {outputs}, gpualgo::{layout_type(is_even)}{elements}>", params)


@dataclass(frozen=True)
class ColumnsCut:
    """Tiling of columns and rows over blocks."""

    policy: Policy
    width: int  # threads across
    items: int  # neighbouring columns per thread
    rows_per_block: int
    num_blocks: int  # along the rows
    num_column_tiles: int

    @property
    def columns(self) -> int:
        """Columns per block."""
        return self.width * self.items


def cut_columns(
    num_batches: int, num_rows: int, num_columns: int, widest: int, items: int, itemsize: int,
    bytes_read: int,
) -> ColumnsCut:  # fmt: skip
    """Return the tiling of num_batches × (num_rows, num_columns), reduced over rows.

    `widest` is the columns of one access if all were aligned, `items` those it has. The association
    depends on `widest` only, not on alignment. `itemsize` is an element's bytes in registers,
    `bytes_read` its bytes in memory.
    """
    loads = max(1, min(COLUMNS.loads, PACKED_BYTES // (widest * itemsize)))
    policy = replace(COLUMNS, loads=loads)
    threads = -(-num_columns // widest)
    # Rows per slot; if rows are few, threads spread across columns instead.
    slots = 1 << max(1, num_rows // loads).bit_length() - 1
    width = max(WARP, policy.block_threads // slots)
    width = min(width, 1 << (threads - 1).bit_length())
    wide_tiles = -(-num_columns // (width * widest))
    slots = policy.block_threads // width
    least = slots * loads  # rows that keep every thread's loads in flight
    is_few = num_batches * num_rows * num_columns * bytes_read <= FEW_COLUMN_BYTES
    many = TARGET_BLOCKS if widest * itemsize < VECTOR_BYTES else COLUMN_BLOCKS
    target = FEW_COLUMN_BLOCKS if is_few else many
    blocks = min(-(-num_rows // least), max(1, target // (wide_tiles * num_batches)))
    rows_per_block = -(-num_rows // blocks)
    tiles = -(-num_columns // (width * items))
    return ColumnsCut(policy, width, items, rows_per_block, -(-num_rows // rows_per_block), tiles)


def column_items(
    source: Element, acc: np.dtype[Any], num_columns: int, fitting: int = VECTOR_BYTES
) -> int:
    """Return how many columns one access covers: a power of two, at most `fitting`."""
    limit = min(VECTOR_BYTES // widest_read(source), 64 // acc.itemsize)
    return math.gcd(1 << max(1, limit).bit_length() - 1, num_columns, max(1, fitting))


def columns_spec(
    op: Operator, source: Element, acc: np.dtype[Any], cut: ColumnsCut, is_even: bool
) -> Spec:
    """Return the kernel that reduces columns; is_even: rows have one dimension."""
    # Records may spill registers, unless only one field is read from memory.
    is_one = not isinstance(source, records.Computed) and len(records.memory_leaves(source)) == 1
    is_wide = records.is_record(source) and not is_one
    # So may bytes under a lambda or with columns apart next to an index field, and 8-byte elements
    # under a lambda on newer GPUs.
    is_alone = records.is_record(source) and cut.items == 1
    size, is_lambda = widest_read(source), op.name is None
    is_tight = (size == 1 and (is_lambda or is_alone)) or (size == 8 and is_lambda)
    policy = cut.policy.cpp(int(is_wide or is_tight))
    rows = f"gpualgo::{layout_type(is_even)}<{len(records.leaves(source))}>"
    expression = (
        f"gpualgo::reduce_columns_kernel<{policy}, {cut.width}, {cut.items}, "
        f"{functor(op, (acc, acc), acc)}, "
        f"{records.cpp_name(acc)}, {records.cpp_name(source)}, {rows}>"
    )
    params = parameters.columns(source, acc, is_even)
    return spec_of("reduce/columns.cuh", expression, params, op, acc, source)
