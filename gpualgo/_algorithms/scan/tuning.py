"""Tuning table of scans."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._base.strides import Dims
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.templates import ROWS_PER_WARP, VECTOR_BYTES, WARP, fold_of, kernel_spec
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

# --- Tuning table of scans: kernels, template arguments, tile sizes.
#
# Tiles depend on lengths and dtypes only, never on the GPU, so that results have the same bits.


def vector_items(widest: int) -> int:
    """Return how many elements of `widest` bytes a vector has (Stretch of scan/stretch.cuh)."""
    return 1 << max(1, VECTOR_BYTES // widest).bit_length() - 1


WINDOW = 2 * WARP  # tile aggregates that a warp reads at once


def unused_result(acc: Dtype) -> int:
    """Return the shared memory for results when they share their elements' memory."""
    return acc.itemsize if records.is_record(acc) else 0  # for numbers the padding covers it


@dataclass(frozen=True)
class Policy:
    """Template arguments of scan_tiles_kernel (ScanPolicy of scan/tiles.cuh)."""

    block_threads: int
    vectors: int  # of 16 bytes per thread and tile; odd, to avoid bank conflicts
    blocks_per_sm: int
    stages: int = 3  # tiles in shared memory

    def lane_items(self, widest: int) -> int:
        """Return how many elements of a tile each thread scans."""
        return self.vectors * vector_items(widest)

    def tile_items(self, widest: int) -> int:
        return self.block_threads * self.lane_items(widest)

    def shared_bytes(self, source: Element, acc: np.dtype[Any]) -> int:
        """Return the size of ScanShared with padding; scan/tiles.cuh checks it."""
        items = self.tile_items(max(source.itemsize, acc.itemsize))
        results = 0 if source.itemsize == acc.itemsize else items * acc.itemsize
        warps = self.block_threads // WARP
        values = 2 * WINDOW + self.stages * self.block_threads + warps + self.stages + 1
        remaining = values * acc.itemsize + 8 * self.stages * warps + 112 + unused_result(acc)
        return int(self.stages * items * source.itemsize + results + remaining)

    def fitting(self, source: Element, acc: np.dtype[Any], limit: int) -> Policy:
        """Return this policy with as many stages as fit into `limit` bytes of shared memory."""
        policy = self
        while policy.stages > 1 and policy.shared_bytes(source, acc) > limit:
            policy = replace(policy, stages=policy.stages - 1)
        return policy


# GB/s at 2^28 on an H200. The stages of two blocks fill shared memory.
LARGE = Policy(256, 9, 2)  # 3870 (float32)
LARGE_WIDE = Policy(192, 11, 2)  # 8 bytes and more: 3740 (float64)


@dataclass(frozen=True)
class WavePolicy:
    """Template arguments of scan_wave_kernel (ScanWavePolicy of scan/wave.cuh)."""

    block_threads: int
    rows: int  # per warp: each 32 vectors of 16 bytes
    blocks_per_sm: int

    def tile_items(self, widest: int) -> int:
        return self.block_threads * self.rows * vector_items(widest)


# Upper bound on the bytes of all lines: these kernels keep all elements in registers.
# us of float32 on an H200, in this order and with (512, 4, 2) for 4 bytes: 4 MB 6.4, 6.8, 7.1; 6 MB
# 7.5, 7.3, 8.4; 12 MB 12.3, 10.8, 12.3; 16 MB 15.9, 13.6, 14.3. float64 of 6 MB 11.3, 9.3, 9.4; 8
# MB 12.6, 14.1, 9.7.
WAVES = {
    512 << 10: WavePolicy(256, 2, 1),
    4 << 20: WavePolicy(256, 4, 1),
    16 << 20: WavePolicy(256, 6, 2),
}
EIGHT_BYTES_WAVE = WavePolicy(512, 4, 2)  # used instead of the last
# And for dtypes of which two blocks do not fit in registers.
WIDE_WAVE, WIDE_WAVE_BYTES = WavePolicy(512, 4, 1), 8 << 20


def tiles_policy(num_bytes: int, widest: int) -> Policy | WavePolicy:
    """Return the policy for few long lines with `num_bytes` bytes in the wider dtype."""
    for limit, wave in WAVES.items():
        if num_bytes > limit:
            continue
        if widest == 4 or wave.blocks_per_sm == 1:
            return wave
        if widest == 8:
            return EIGHT_BYTES_WAVE
        if num_bytes <= WIDE_WAVE_BYTES:
            return WIDE_WAVE
    return LARGE if widest <= 4 else LARGE_WIDE


# Wide records: fewer threads per block, with about as many bytes per stage. The stages of narrow
# records are those of numbers. Prefixes are computed serially, so few tiles are faster.
WIDE_RECORD, STAGE_BYTES, SHARED_BYTES = 32, 27 << 10, 113 << 10
NARROW_STAGE_BYTES = 36 << 10
WAVE_BYTES = 2 << 20  # limit for records of more than a vector
WAVE_REGISTERS = 64  # bytes of a thread's elements


def records_policy(num_bytes: int, source: Element, acc: Dtype) -> Policy | WavePolicy:
    """Return the policy for few long lines of records with `num_bytes` bytes in the wider dtype."""
    widest = max(source.itemsize, acc.itemsize)
    if widest <= VECTOR_BYTES:
        policy = tiles_policy(num_bytes, widest)
        if isinstance(policy, WavePolicy):
            return WIDE_WAVE if policy.blocks_per_sm > 1 else policy
        warps = NARROW_STAGE_BYTES // (policy.lane_items(widest) * widest * WARP)
        policy = replace(policy, block_threads=min(LARGE.block_threads, warps * WARP))
    elif num_bytes <= WAVE_BYTES:
        return WavePolicy(256, min(2, max(1, WAVE_REGISTERS // widest)), 1)
    else:
        threads = 128 if widest <= WIDE_RECORD else 64
        policy = Policy(threads, (STAGE_BYTES // (threads * widest) - 1) | 1, 2)
    fits = policy.shared_bytes(source, acc) <= SHARED_BYTES
    return policy if fits else replace(policy, blocks_per_sm=1)


def policy_of(num_bytes: int, source: Element, acc: Dtype) -> Policy | WavePolicy:
    """Return the policy for few long lines with `num_bytes` bytes in the wider dtype."""
    if records.is_record(acc):
        return records_policy(num_bytes, source, acc)
    return tiles_policy(num_bytes, max(source.itemsize, acc.itemsize))


def transfer(capability: tuple[int, int], source: Element, acc: Dtype, access: Cpp) -> str:
    """Return how elements are copied to shared memory (Transfer of scan/lines.cuh)."""
    if capability < (8, 0) or isinstance(source, records.Computed):
        return "direct"
    reads_whole = access.name == "SteppedLines" and access.args[2:3] == (True,)
    is_whole = reads_whole or access.name == "FlatLines"
    by_numbers = records.is_record(acc) and not is_whole
    return "asynchronous" if capability < (9, 0) or by_numbers else "bulk"


def flat(source: Dtype, acc: Dtype, units: tuple[int, int], is_reversed: bool) -> Cpp:
    """Return the access to contiguous lines; `units` divide their addresses, in bytes."""
    widths = [
        VECTOR_BYTES if unit % VECTOR_BYTES == 0 else dtype.itemsize
        for unit, dtype in zip(units, (source, acc), strict=True)
    ]
    return cpp("FlatLines", acc, source, *widths, is_reversed)


def tiles_spec(
    op: Operator, source: Element, acc: Dtype, access: Cpp, policy: Policy, is_exclusive: bool,
    capability: tuple[int, int],
) -> Spec:  # fmt: skip
    copy_mode = f"gpualgo::Transfer::{transfer(capability, source, acc, access)}"
    arguments = (
        policy.block_threads, policy.vectors, copy_mode, policy.stages, policy.blocks_per_sm,
        policy.shared_bytes(source, acc),
    )  # fmt: skip
    return _spec("tiles", cpp("ScanPolicy", *arguments), op, source, acc, is_exclusive, access)


def wave_spec(
    op: Operator, source: Element, acc: Dtype, access: Cpp, policy: WavePolicy, is_exclusive: bool
) -> Spec:
    """Return scan_wave_kernel, which scans few long lines that fit in registers."""
    arguments = cpp("ScanWavePolicy", policy.block_threads, policy.rows, policy.blocks_per_sm)
    return _spec("wave", arguments, op, source, acc, is_exclusive, access)


def _spec(
    name: str, policy: Cpp, op: Operator, source: Element, acc: Dtype, is_exclusive: bool,
    *access: Cpp,
) -> Spec:  # fmt: skip
    types = policy, is_exclusive, fold_of(op, acc), acc, source, *access
    return kernel_spec(f"scan/{name}.cuh", f"scan_{name}_kernel", *types)


# --- Scans of many lines. Tilings depend on shapes and dtypes only, never on alignment or on the
# GPU, so that results have the same bits.

# Tiles: longer lines of whole vectors are walked by blocks, never by warps.
ROWS_TILES = 1
# Blocks of scan_tiles_kernel walk lines of their own from so many lines per resident block on, if
# the lines have few tiles or most blocks have one in the last round, too; with the same bits.
MANY_LINES, FEW_TILES, FULL_ROUNDS = 1, 8, 0.75
ROWS_THREADS, ROWS_BLOCKS = 128, 8  # threads per block; blocks per multiprocessor
ROWS_VECTORS = 9  # maximum per lane
ROWS_SHARED = 47 << 10  # 48 KB, less what is there besides lines
WALKS_THREADS, WALKS_LOADS, WALKS_BYTES = 128, 8, 128  # rows loaded at once: maximum, bytes
# for few or many columns per thread: more blocks would spill registers
WALKS_BLOCKS, PACKED_WALKS_BLOCKS = 8, 4
MANY_WALKS = 1 << 16  # enough to keep a GPU busy
FEW_ROWS = 16  # too few for a tile
SECTOR_BYTES = 32
COLUMNS_THREADS, COLUMNS_BLOCKS = 256, 4
COLUMNS_SHARED = 64 << 10  # shared memory of a block on an sm_75
COLUMNS_GRID = 6  # blocks per multiprocessor, if shared memory allows
ROW_BYTES = 256  # per row of a tile of columns, in the wider dtype
# The same for few columns. 64 tiles of one strip take about 2 µs, whatever their width: 2^28
# float32 take 732 µs as one strip of 32 columns. Narrower strips have taller tiles and wait
# independently.
FEW_ROW_BYTES = 128
# Bytes of a thread's rows. The same strip takes 1117 µs with 128; 256 exceed a block of sm_75.
SEGMENT_BYTES = 192
FOUR_BLOCKS_SHARED = 56 << 10  # per block, for four blocks on an sm_90
NARROW = 32  # columns of less than 4 bytes; otherwise a thread takes several
MANY_CHAINS = 16  # enough independent chains of column tiles to hide their waits
SHORT_WINDOW, LONG_WINDOW = 16, 64  # tiles that a look-back reads at once, as far as memory allows
LOOK_BYTES = 32  # bytes of values that one look-back thread reads


def kernel_of(elements: Dims, lines: Dims, source: Dtype, acc: Dtype) -> str:
    """Return the kernel that scans these lines: tiles, rows, columns or walks."""
    num_items = math.prod(extent for extent, _ in elements)
    num_lines = math.prod(extent for extent, _ in lines)
    widest = max(source.itemsize, acc.itemsize)
    if num_lines == 1:
        return "tiles"
    if not _is_columns(elements, lines):
        is_short = not rows_tiling(num_items, source, acc).is_long
        tile = policy_of(num_lines * num_items * widest, source, acc).tile_items(widest)
        is_walked = num_items > ROWS_TILES * tile and num_items % VECTOR_BYTES == 0
        return "rows" if is_short or (num_lines >= ROWS_PER_WARP and not is_walked) else "tiles"
    if num_items <= FEW_ROWS:
        return "walks"
    inner_bytes = lines[-1][0] * min(source.itemsize, acc.itemsize)
    is_many = num_lines * widest >= MANY_WALKS * VECTOR_BYTES
    return "walks" if is_many and inner_bytes >= SECTOR_BYTES else "columns"


def _is_columns(elements: Dims, lines: Dims) -> bool:
    """Return whether neighbouring lines are closer than the elements of a line."""
    if not elements or not lines:
        return False
    across, along = lines[-1][1], elements[-1][1]
    return sum(map(abs, across)) < sum(map(abs, along))


def _blocks(usual: int, source: Dtype, acc: Dtype) -> int:
    """Return the blocks wanted per multiprocessor; records take more registers."""
    if not records.is_record(acc):
        return usual
    return max(1, usual // (2 if max(source.itemsize, acc.itemsize) <= VECTOR_BYTES else 4))


# --- rows ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowsTiling:
    """Tiling of contiguous lines over a warp (ScanRowsPolicy of scan/rows.cuh)."""

    vectors: int  # of 16 bytes per lane; odd
    width: int  # lanes per line
    rounds: int
    is_long: bool  # more than one chunk per line

    @property
    def block_lines(self) -> int:
        return ROWS_THREADS // self.width * self.rounds

    def pitch(self, widest: int) -> int:
        """Return the distance of lines in shared memory, in elements."""
        return self.width * self.vectors * vector_items(widest)


def tile_rows(num_items: int, widest: int, most: int = ROWS_VECTORS) -> RowsTiling:
    """Return the tiling of lines of num_items elements; a lane takes at most `most` vectors."""
    vectors = -(-num_items // vector_items(widest))
    if vectors <= most:
        own = vectors | 1
        return RowsTiling(own, 1, most // own, False)
    owns = range(max(1, most - 4), most + 1, 2)
    cuts = [(width * own, own, width) for width in (2, 4, 8, 16, 32) for own in owns]
    fitting = [tiling for tiling in cuts if tiling[0] >= vectors]
    if not fitting:
        return RowsTiling(most, WARP, 1, True)
    _, own, width = min(fitting)
    return RowsTiling(own, width, 1, False)


def rows_tiling(num_items: int, source: Dtype, acc: Dtype) -> RowsTiling:
    """Return the tiling of lines whose two stages and results fit in a block's shared memory."""
    widest = max(source.itemsize, acc.itemsize)
    results = 0 if source.itemsize == acc.itemsize else acc.itemsize
    lane_bytes = vector_items(widest) * (2 * source.itemsize + results)
    most_vectors = ROWS_SHARED // ROWS_THREADS // lane_bytes
    return tile_rows(num_items, widest, min(ROWS_VECTORS, most_vectors - 1 | 1))


def rows_spec(
    op: Operator, source: Dtype, acc: Dtype, access: Cpp, tiling: RowsTiling, is_exclusive: bool,
    is_async: bool,
) -> Spec:  # fmt: skip
    policy = cpp(
        "ScanRowsPolicy", ROWS_THREADS, tiling.vectors, tiling.width, tiling.rounds,
        int(tiling.is_long), int(is_async), _blocks(ROWS_BLOCKS, source, acc),
    )  # fmt: skip
    return _spec("rows", policy, op, source, acc, is_exclusive, access)


# --- columns ------------------------------------------------------------------------------


def walk_items(num_lines: int, num_columns: int, widest: int, fitting: int) -> int:
    """Return how many columns a thread scans: up to `fitting`, if enough threads remain."""
    items = math.gcd(vector_items(widest), num_columns, fitting)
    while items > 1 and num_lines // items < MANY_WALKS:
        items //= 2
    return items


def walks_spec(op: Operator, source: Dtype, acc: Dtype, items: int, is_exclusive: bool) -> Spec:
    blocks = _blocks(WALKS_BLOCKS if items <= 4 else PACKED_WALKS_BLOCKS, source, acc)
    widest = items * max(source.itemsize, acc.itemsize)
    loads = max(1, min(WALKS_LOADS, WALKS_BYTES // widest))
    policy = cpp("ScanWalksPolicy", WALKS_THREADS, items, loads, blocks)
    return _spec("walks", policy, op, source, acc, is_exclusive)


@dataclass(frozen=True)
class ColumnsTiling:
    """Tiling of columns (ScanColumnsPolicy of scan/columns.cuh)."""

    threads: int
    is_narrow: bool  # a tile has all columns, a thread one
    width: int  # threads across
    items: int  # columns per thread
    segments: int  # threads down
    segment_rows: int  # rows per thread
    strips: int
    chunks: int
    looks: int  # states that a thread reads at once

    @property
    def rows(self) -> int:
        return self.segments * self.segment_rows

    def covering(self, num_columns: int) -> ColumnsTiling:
        """Return the same tiling for a part of the columns; narrow tiles always have all."""
        return replace(self, strips=-(-num_columns // (self.width * self.items)))

    def shared_bytes(self, source: Dtype, acc: Dtype) -> int:
        tile = self.threads * self.segment_rows * self.items
        results = 0 if source.itemsize == acc.itemsize else tile * acc.itemsize
        values = max(self.looks, 2) * self.threads + 64
        remaining = values * self.items * acc.itemsize + 4 * 4 * 64 + 64 + unused_result(acc)
        return int(-(-tile * source.itemsize // 16) * 16 + results + remaining)


def tile_columns(
    num_rows: int, num_columns: int, num_batches: int, source: Dtype, acc: Dtype
) -> ColumnsTiling:
    threads = COLUMNS_THREADS
    while True:
        tiling = _cut_columns(num_columns, num_batches, source, acc, threads)
        if tiling.shared_bytes(source, acc) <= COLUMNS_SHARED:
            return replace(tiling, chunks=-(-num_rows // tiling.rows))
        threads //= 2  # wide records


def _cut_columns(
    num_columns: int, num_batches: int, source: Dtype, acc: Dtype, threads: int
) -> ColumnsTiling:
    narrowest, widest = sorted((source.itemsize, acc.itemsize))
    items = max(1, 4 // widest)
    size = widest * items  # bytes of a thread's part of a row
    width = 1 << (ROW_BYTES // size).bit_length() - 1
    is_few = -(-num_columns // (width * items)) * num_batches < MANY_CHAINS
    step = VECTOR_BYTES // math.gcd(VECTOR_BYTES, num_columns * narrowest)
    if is_few and step == 1:  # strips allow copies as wide as whole rows
        width = min(width, max(1, FEW_ROW_BYTES // size))
    is_narrow = num_columns < (width if items == 1 else NARROW)
    if is_narrow:
        width, items, is_odd = num_columns, 1, True  # odd as below
        segments, segment_rows = threads // width, SEGMENT_BYTES // widest + 1
        segments = segments // step * step or segments  # tiles begin at multiples of 16 bytes
    else:
        width = _across(num_columns, items, size, is_few)
        is_odd = width * size < WARP * 4  # neighbouring rows start in different banks
        segments, segment_rows = threads // width, SEGMENT_BYTES // size | is_odd
    strips = -(-num_columns // (width * items))
    window = SHORT_WINDOW if strips * num_batches >= MANY_CHAINS else LONG_WINDOW
    looks = max(1, min(-(-window // segments), LOOK_BYTES // (items * acc.itemsize)))
    tiling = ColumnsTiling(
        threads, is_narrow, width, items, segments, segment_rows, strips, 0, looks
    )
    if is_few and strips > 1 and source.itemsize == acc.itemsize:
        least = max(1, segment_rows * 7 // 8)  # drop rows if four blocks fit then
        while tiling.shared_bytes(source, acc) > FOUR_BLOCKS_SHARED and tiling.segment_rows > least:
            tiling = replace(tiling, segment_rows=tiling.segment_rows - 1 - is_odd)
    return tiling


def _across(num_columns: int, items: int, size: int, is_few: bool) -> int:
    """Return the width in threads of a tile that has a part of the columns, `items` per thread."""
    threads = -(-num_columns // items)
    few_bytes = min(ROW_BYTES, FEW_ROW_BYTES)
    width = 1 << max(1, (few_bytes if is_few else ROW_BYTES) // size).bit_length() - 1
    width = min(width, 1 << (threads - 1).bit_length())
    half = max(1, width // 2)
    if width == num_columns:  # two strips, which wait independently
        return half
    # Few columns too, unless strips get narrower than two sectors or leave more threads idle.
    padded_widths = [-(-threads // candidate) * candidate for candidate in (half, width)]
    is_better = width == threads or 8 * padded_widths[0] <= 7 * padded_widths[1]
    return half if is_few and is_better and 2 * half * size >= few_bytes else width


def columns_spec(
    op: Operator, source: Dtype, acc: Dtype, tiling: ColumnsTiling, units: tuple[int, int],
    is_exclusive: bool, is_async: bool,
) -> Spec:  # fmt: skip
    """Return scan_columns_kernel; rows are copied in `units` of bytes."""
    policy = cpp(
        "ScanColumnsPolicy", tiling.threads, 0 if tiling.is_narrow else tiling.width, tiling.items,
        tiling.segment_rows, tiling.looks, *units, int(is_async),
        _blocks(COLUMNS_BLOCKS, source, acc), tiling.shared_bytes(source, acc),
    )  # fmt: skip
    return _spec("columns", policy, op, source, acc, is_exclusive)
