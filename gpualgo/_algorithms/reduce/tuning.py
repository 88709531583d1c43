"""Tuning table of reductions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp, layout_type
from gpualgo._cuda.templates import ROWS_PER_WARP, VECTOR_BYTES, WARP, fold_of, kernel_spec
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

# --- Tuning table of reductions: kernels, template arguments, tilings.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.


@dataclass(frozen=True)
class Policy:
    """Template arguments of a kernel (ReducePolicy of reduce/rows.cuh)."""

    block_threads: int
    loads: int  # vectors that a thread loads before it combines them
    max_tiles: int  # tiles per warp in a block's chunk; for grouped rows, rows per group

    def cpp(self, min_blocks: int = 0) -> Cpp:
        """Return the C++ type; with min_blocks 0 ptxas chooses the occupancy.

        ptxas's choice is 1 % faster than a bound of 1 if no registers spill.
        """
        return cpp("ReducePolicy", self.block_threads, self.loads, self.max_tiles, min_blocks)

    @property
    def warps(self) -> int:
        return self.block_threads // WARP


# Few long rows, for commutative and other operators: GB/s at 2^28 float32 on an H200.
COMMUTATIVE = Policy(512, 4, 16)  # 4375
ORDERED = Policy(512, 4, 8)  # 4330
# 8 bytes and more: with 4 loads so many bytes are in flight that DRAM pages thrash.
WIDE = Policy(512, 2, 64)  # float64: sum 4527, 4448 with 32 tiles; lambda 4480
# Up to SMALL_BYTES latency dominates: more blocks, smaller tiles. µs of 2^16 float32, sum and
# lambda: 4.5, 4.5 as SMALLEST; 4.8, 5.0 as SMALL. Of 2^22: 7.2, 7.4 as MIDDLE; 7.7, 7.7 as
# COMMUTATIVE and ORDERED. small_policy takes precedence for a single row.
SMALLEST, SMALLEST_BYTES = Policy(256, 1, 16), 256 << 10
SMALL = Policy(512, 2, 16)
SMALL_BYTES = 2 << 20
MIDDLE, MIDDLE_BYTES = Policy(256, 4, 16), 32 << 20  # for elements of less than 8 bytes
ROWS = Policy(256, 4, 1)
# A lane loads fewer vectors at once of rows of up to FEW_VECTORS. us of 2^27 float32 in rows of 12,
# 20, 28: with 2 loads 151, 180, 138, with 4 396, 244, 181; of 36, 100, 300: 205, 155, 173 and 149,
# 146, 146.
FEW_LOADS, FEW_VECTORS = 2, 8
WORD_BYTES = 4
SHORT_ROWS = 4  # rows per group of less than a warp
COLUMNS = Policy(256, 4, 1)
# Larger records do not fit in the registers of large blocks.
WIDE_RECORD, RECORD_THREADS = 32, 256
RECORD_SLOTS_BYTES = 16 << 10  # shared memory for a block's tiles
# Bytes of records that a lane loads at most if a warp joins its lanes' values after each tile, in
# order. µs of a variance by Welford, 2^28 float32: with one load 745, two 432, four 329, eight 345;
# of three arrays 832, 736, 771, 729.
ORDERED_RECORD_BYTES = 256
# Bytes of records that a thread of reduce_columns_kernel loads before it combines them; the
# elements computed from them may take twice as much.
PACKED_BYTES = 128
# Upper bound on blocks, two per multiprocessor: with a few more the last would run alone. A chunk
# gets as many tiles per warp as that requires. argmin of 2^24: 23.1 µs; 29.5 with MOST_BLOCKS as a
# lower bound.
MOST_BLOCKS = 264
TARGET_BLOCKS = 1056  # of many short rows, and of narrow columns
# Bytes of a row, from which on it has a block of its own where rows are many; shorter ones have a
# warp. µs by warps and by blocks, sum and max by a lambda: (4096, 65536) float32 263, 311 and 235,
# 236; (2200, 16384) 39, 67 and 37, 37. Of 32 KB float64 476 and 486; argmax of 128 KB float16 260
# and 360; of 64 KB int8 177 and 222.
LONG_BYTES, LONG_BYTES_OF_BYTES, LONG_RECORD_BYTES = 64 << 10, 128 << 10, 256 << 10
# Blocks of reduce_columns_kernel; the last block of each set of columns joins the partials. µs of
# float32, sum and std, (16384, 256), (16384, 1024), (262144, 1024): with 1056 blocks 16, 90, 26,
# 58, 251, 285; with 528 12, 33, 23, 37, 242, 256; with 264 10, 23, 22, 33, 249, 280. Narrow loads
# need more in flight: (67108864, 3) takes 217 with 1056, 276 with 528 (two runs).
COLUMN_BLOCKS, FEW_COLUMN_BLOCKS, FEW_COLUMN_BYTES = 528, 264, 64 << 20
FULL_THREADS = 1 << 17  # across columns: from here on no two share a column of records


def blocks_policy(op: Operator, num_bytes: int, dtype: Element) -> Policy:
    if num_bytes <= SMALL_BYTES:
        policy = SMALLEST if num_bytes <= SMALLEST_BYTES else SMALL
    elif num_bytes <= MIDDLE_BYTES and widest_read(dtype) < 8:
        policy = MIDDLE
    elif widest_read(dtype) < 8:
        policy = COMMUTATIVE if op.commutative else ORDERED
    else:
        policy = WIDE
    return for_records(policy, dtype, op)


@lru_cache(4096)
def row_items(dtype: Element) -> int:
    """Return the neighbours that a lane loads (`row_items` of reduce/rows.cuh)."""
    return max(1, VECTOR_BYTES // widest_read(dtype))


@lru_cache(4096)
def widest_read(dtype: Element) -> int:
    return max((leaf.itemsize for leaf in records.memory_fields(dtype)), default=1)


@lru_cache(4096)
def bytes_read(dtype: Element) -> int:
    """Return the bytes of memory read per element, including the gaps of a record."""
    fields = records.memory_fields(dtype)
    if isinstance(dtype, records.Computed) or len(fields) < len(records.field_dtypes(dtype)):
        return sum(leaf.itemsize for leaf in fields)
    return dtype.itemsize


def packed_size(dtype: Element) -> int:
    """Return the bytes of registers an element takes until it is combined.

    Neighbours may share an index, and computed elements are computed only then.
    """
    if isinstance(dtype, records.Computed) or records.SHARED_POSITION in records.field_dtypes(
        dtype
    ):
        return bytes_read(dtype)
    return dtype.itemsize


def for_records(policy: Policy, dtype: Element, op: Operator | None = None) -> Policy:
    """Return a policy whose threads have about as many bytes in flight if elements are records.

    A wide record takes many registers and much shared memory. A wide computed element is computed
    only when it is combined, and counts half. If `op` does not commute a tile has more loads: a
    warp joins its lanes' values after each tile, which takes fewer steps for each of more loads.
    """
    is_wide = isinstance(dtype, records.Computed) and dtype.itemsize > WIDE_RECORD
    lane_bytes = row_items(dtype) * max(bytes_read(dtype), dtype.itemsize // 2 if is_wide else 0)
    if lane_bytes <= VECTOR_BYTES:
        # Longer chunks if fields are indices or computed: argmax of 2^28 float32 4080 GB/s (3870).
        doubled = replace(policy, max_tiles=2 * policy.max_tiles)
        return doubled if records.is_record(dtype) and policy is COMMUTATIVE else policy
    loads = 1 << max(0, round(math.log2(policy.loads * VECTOR_BYTES / lane_bytes)))
    if op is not None and not op.commutative:
        fitting = 1 << max(1, ORDERED_RECORD_BYTES // lane_bytes).bit_length() - 1
        loads = max(loads, min(policy.loads, fitting))
    threads = policy.block_threads if dtype.itemsize <= WIDE_RECORD else RECORD_THREADS
    max_tiles = RECORD_SLOTS_BYTES // (threads // WARP * dtype.itemsize)
    return Policy(threads, loads, min(policy.max_tiles * policy.loads // loads, max_tiles))


@dataclass(frozen=True)
class RowsTiling:
    """Tiling of rows: one row per `width` lanes, or (width 0) rows cut into blocks' chunks."""

    policy: Policy
    width: int
    chunk_items: int
    blocks_per_row: int
    num_blocks: int


def tile_rows(op: Operator, num_rows: int, num_items: int, dtype: Element) -> RowsTiling:
    items = row_items(dtype)
    vectors = -(-num_items // items)
    policy = for_records(ROWS, dtype, op)
    row_bytes = num_items * bytes_read(dtype)
    short = vectors <= WARP * policy.loads
    many = num_rows >= ROWS_PER_WARP and row_bytes < _long_bytes(dtype)
    if num_rows > 1 and (short or many):
        loads = _loads_of_row(vectors, policy.loads)
        width = 1 << (-(-vectors // loads) - 1).bit_length()
        width = min(WARP, max(loads, width))
        groups = policy.block_threads // width
        # If there are many short rows, a group takes several: each is one load of a lane.
        is_many = loads == 1 and num_rows >= groups * SHORT_ROWS * TARGET_BLOCKS
        several = min(SHORT_ROWS, policy.loads) if is_many else 1
        policy = Policy(policy.block_threads, loads, several)
        return RowsTiling(policy, width, num_items, 1, -(-num_rows // (groups * several)))
    policy = blocks_policy(op, num_rows * row_bytes, dtype)
    tiles = -(-vectors // (WARP * policy.loads))
    all_blocks = -(-tiles // policy.warps) * num_rows  # if each warp had one tile
    per_warp = max(1, min(policy.max_tiles, -(-all_blocks // MOST_BLOCKS)))
    chunk_tiles = per_warp * policy.warps
    blocks = -(-tiles // chunk_tiles)
    chunk_items = chunk_tiles * WARP * items * policy.loads
    return RowsTiling(policy, 0, chunk_items, blocks, blocks * num_rows)


def _loads_of_row(vectors: int, most: int) -> int:
    """Return how many vectors of a row a lane loads: one if all lanes of a group have one."""
    is_whole = vectors <= WARP and vectors & (vectors - 1) == 0
    if is_whole:
        return 1
    return min(most, FEW_LOADS) if vectors <= FEW_VECTORS else most


def _long_bytes(dtype: Element) -> int:
    if records.is_record(dtype):
        return LONG_RECORD_BYTES
    return LONG_BYTES_OF_BYTES if widest_read(dtype) == 1 else LONG_BYTES


def _min_blocks(op: Operator, source: Element, access: Cpp, tiling: RowsTiling) -> int:
    """Return 1 for kernels that would otherwise spill registers to fit more blocks, else 0."""
    if records.is_record(source):
        return 1
    size = source.itemsize
    # One for each of a lane's 8 or 16 items.
    many_addresses = access.name == "StridedRows" and size <= 2
    many_values = size == 1 and op.name is None
    return int(many_addresses or many_values)


def rows_spec(op: Operator, source: Element, acc: Dtype, access: Cpp, tiling: RowsTiling) -> Spec:
    """Return the kernel that reduces rows through `access`, a class of reduce/rows.cuh."""
    policy = tiling.policy.cpp(_min_blocks(op, source, access, tiling))
    name, width = ("rows", [tiling.width]) if tiling.width else ("blocks", [])
    return kernel_spec(
        "reduce/rows.cuh", f"reduce_{name}_kernel", policy, *width, fold_of(op, acc), acc, source,
        access,
    )  # fmt: skip


def flat(source: Element, fitting: int, repeated: int = 0) -> Cpp:
    """Return the access to contiguous rows, `fitting` elements of which may be loaded at once.

    `repeated` is a bit mask of constant fields.
    """
    items = row_items(source)
    if fitting < items:  # narrow numbers by words, others one by one
        is_number = not records.is_record(source) and isinstance(source, np.dtype)
        of_word = WORD_BYTES // source.itemsize if is_number else 1
        items = of_word if 1 < of_word <= fitting else 1
    return cpp("FlatRows", source, items, *([repeated] if repeated else []))


def strided(
    source: Element, outputs: int = 1, *, is_even: bool = False, is_nested: bool = False
) -> Cpp:
    """Return the access to rows of any strides; is_even: rows and elements have one dimension each.

    is_nested: elements have two dimensions, rows any number.
    """
    elements = ["gpualgo::NestedLayout"] if is_nested else []
    return cpp("StridedRows", source, outputs, layout_type(is_even), *elements)


@dataclass(frozen=True)
class ColumnsTiling:
    policy: Policy
    width: int  # threads across
    items: int  # neighbouring columns per thread
    rows_per_block: int
    num_blocks: int  # along the rows
    num_tiles: int  # of the columns of all batches
    spans_batches: bool
    num_columns: int  # of a batch, or of all if blocks span batches
    per_batch: int  # tiles, or columns if blocks span batches

    @property
    def columns(self) -> int:
        return self.width * self.items


def tile_columns(
    num_batches: int, num_rows: int, num_columns: int, widest: int, items: int, itemsize: int,
    bytes_read: int, of_records: bool = False,
) -> ColumnsTiling:  # fmt: skip
    """Return the tiling of num_batches × (num_rows, num_columns), reduced over rows.

    `widest` is the columns of one access if all were aligned, `items` those it has. The association
    depends on `widest` only, not on alignment. `itemsize` is an element's bytes in registers,
    `bytes_read` its bytes in memory.
    """
    loads = max(1, min(COLUMNS.loads, PACKED_BYTES // (widest * itemsize)))
    policy = replace(COLUMNS, loads=loads)

    def width_of(num_columns: int) -> int:
        threads = -(-num_columns // widest)
        if of_records and threads >= FULL_THREADS:
            return policy.block_threads
        # Rows per slot; if rows are few, threads spread across columns instead.
        slots = 1 << max(1, num_rows // loads).bit_length() - 1
        return min(max(WARP, policy.block_threads // slots), 1 << (threads - 1).bit_length())

    width, per_batch = width_of(num_columns), num_columns
    spans_batches = num_batches > 1 and num_rows < policy.block_threads // width * loads
    if spans_batches:
        num_batches, num_columns = 1, num_batches * num_columns
        width = width_of(num_columns)
    wide_tiles = -(-num_columns // (width * widest))
    least = policy.block_threads // width * loads  # rows that keep every thread's loads in flight
    is_few = num_batches * num_rows * num_columns * bytes_read <= FEW_COLUMN_BYTES
    many = TARGET_BLOCKS if widest * itemsize < VECTOR_BYTES else COLUMN_BLOCKS
    target = FEW_COLUMN_BLOCKS if is_few else many
    blocks = min(-(-num_rows // least), max(1, target // (wide_tiles * num_batches)))
    rows_per_block = -(-num_rows // blocks)
    tiles = -(-num_columns // (width * items))
    return ColumnsTiling(
        policy, width, items, rows_per_block, -(-num_rows // rows_per_block), tiles * num_batches,
        spans_batches, num_columns, per_batch if spans_batches else tiles,
    )  # fmt: skip


def column_items(
    source: Element, acc: np.dtype[Any], num_columns: int, fitting: int = VECTOR_BYTES
) -> int:
    """Return how many columns one access covers: a power of two, at most `fitting`."""
    limit = min(VECTOR_BYTES // widest_read(source), 64 // acc.itemsize)
    return math.gcd(1 << max(1, limit).bit_length() - 1, num_columns, max(1, fitting))


def columns_spec(
    op: Operator, source: Element, acc: np.dtype[Any], tiling: ColumnsTiling, is_even: bool
) -> Spec:
    # Records may spill registers, unless only one field is read from memory.
    is_one = not isinstance(source, records.Computed) and len(records.memory_fields(source)) == 1
    is_wide = records.is_record(source) and not is_one
    # So may bytes under a lambda or with columns apart next to an index field, and 8-byte elements
    # under a lambda on newer GPUs.
    is_alone = records.is_record(source) and tiling.items == 1
    size, is_lambda = widest_read(source), op.name is None
    is_tight = (size == 1 and (is_lambda or is_alone)) or (size == 8 and is_lambda)
    policy = tiling.policy.cpp(int(is_wide or is_tight))
    layout = "EvenLayout" if is_even else "Layout"
    return kernel_spec(
        "reduce/columns.cuh", "reduce_columns_kernel", policy, tiling.width, tiling.items,
        tiling.spans_batches, fold_of(op, acc), acc, source,
        cpp(layout, len(records.field_dtypes(source))),
    )  # fmt: skip


# --- Tuning table of short reductions: one wave of blocks (reduce/small.cuh).
#
# Tilings depend on length and dtypes only, never on the GPU, so that results have the same bits.

SMALL_MOST_BLOCKS = 256  # two for each multiprocessor; the last block joins the partials


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallReducePolicy)."""

    block_threads: int
    loads: int  # vectors per thread
    # Cycles the last block waits before it polls the others' values. Does not affect the bits.
    wait: int

    def cpp(self, min_blocks: int) -> Cpp:
        share = -(-(SMALL_MOST_BLOCKS - 1) // self.block_threads)
        arguments = self.block_threads, self.loads, share, self.wait, min_blocks
        return cpp("SmallReducePolicy", *arguments)


# By the upper bound on the bytes that are read. A policy serves as many blocks as its bytes fill in
# vectors of 16 bytes; the first three serve one block, which waits for nobody. Index inputs are not
# read and always use the first policy, with up to MOST_BLOCKS blocks. Records may need more blocks
# than their policy serves. Waits are tuned for float32; index inputs, and records in two blocks,
# take as long with 0, 300 and 600 cycles.
# µs of float32 on an H200 (general kernel):
#           2^12       2^16       2^18       2^20       2^22
#   sum     3.5 (4.2)  4.0 (4.3)  4.1 (4.8)  4.5 (5.4)  6.1 (7.1)
#   lambda  3.5 (4.3)  4.1 (4.5)  4.2 (4.9)  4.6 (5.5)  7.2 (7.4)
# µs by cycles of wait:
#           0    150  300  450  600
#   2^16    4.1  3.9  4.0  4.1  4.1
#   2^18    4.4  4.1  4.1  4.2  4.3
#   2^20    4.9  4.8  4.7  4.5  4.6
SMALL_POLICIES = {
    4 << 10: Small(128, 2, 0),
    16 << 10: Small(512, 2, 0),
    32 << 10: Small(512, 4, 0),
    256 << 10: Small(256, 1, 300),
    1 << 20: Small(256, 2, 300),
    4 << 20: Small(256, 4, 450),
    16 << 20: Small(512, 8, 600),
}
# With narrower elements so many vectors do not fit in registers.
MANY_LOADS, MANY_LOADS_BYTES = 8, 4
SM_BLOCKS = 2  # blocks per multiprocessor at most, since MOST_BLOCKS is two each


@dataclass(frozen=True)
class SmallTiling:
    policy: Small
    num_blocks: int


def small_tiling(num_items: int, source: Element) -> SmallTiling | None:
    items = row_items(source)
    num_bytes = num_items * bytes_read(source)
    small = next((one for limit, one in SMALL_POLICIES.items() if num_bytes <= limit), None)
    if small is None or num_items < items:
        return None
    if small.loads >= MANY_LOADS and widest_read(source) < MANY_LOADS_BYTES:
        return None
    small = _fitted(small, source)
    blocks = -(-(num_items // items) // (small.block_threads * small.loads))
    if blocks > SMALL_MOST_BLOCKS:
        return None
    return SmallTiling(small, blocks)


@lru_cache(4096)
def _fitted(small: Small, source: Element) -> Small:
    """Return the policy whose threads have as many bytes in flight if elements are records."""
    fitted = for_records(Policy(small.block_threads, small.loads, 1), source)
    return replace(small, block_threads=fitted.block_threads, loads=fitted.loads)


def small_spec(op: Operator, source: Element, acc: Dtype, access: Cpp, found: Small) -> Spec:
    # How many blocks a multiprocessor must hold; 1 if registers would spill.
    is_flat = access.name == "FlatRows" and access.args[1] == row_items(source)
    is_tight = found.wait and is_flat and not records.is_record(source)
    policy = found.cpp(SM_BLOCKS if is_tight else 1)
    return kernel_spec(
        "reduce/small.cuh", "reduce_small_kernel", policy, fold_of(op, acc), acc, source, access
    )
