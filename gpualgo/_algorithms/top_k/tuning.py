"""Tuning table of selections by rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.radix_sort.tuning import SMALL_ROW, order, power_of_two
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, kernel_spec

# --- Tuning of the GPU selection by rank: strategies, template arguments, sample sizes.

Dtype = np.dtype[Any]

SHORT, BLOCK, LONG, SORT = "rows in registers", "a block for each row", "a sample", "a sort"
PARTS, SHARED, SMALL = "parts in registers", "blocks for each row", "a sort in registers"
SMALL_FIRST = 64  # elements of a row that is sorted, however few are wanted
WARP_ROW = 1024  # elements that a warp holds, 32 per lane
SHORT_ROW = 1 << 14  # elements that the warps of a block hold
LEAST_PART, PART_BLOCKS = 1 << 11, 256  # length of a part of a row; parts of all rows
# Of longer rows, and for more elements of few rows, a sample is faster.
MOST_IN_PARTS, MOST_OF_PARTS = 1 << 23, 512
SHORT_THREADS, SHARED_THREADS = 128, 512  # of a block with a row for each warp; with one row
REGISTERS = 1 << 16  # of a multiprocessor
# Filtering a row takes at least four launches, whatever its length. For shorter rows, or more rows,
# one block per row is faster.
LONG_ROW = 1 << 15  # minimum length of a row, times the number of rows
MOST_SORTED = 2048  # elements that a block sorts in shared memory
FEW_SORTED = 64
# To select more than this part of a row, or of a shorter row, is not faster than to sort it.
LARGEST_SHARE, LEAST_SELECTED = 16, 1 << 21
MOST_RANKS = 8  # of one reading (most_ranks); for more ranks, rows are sorted
MOST_BOUNDS = 2 * MOST_RANKS
BOUNDS_BYTES, STATE_BYTES = 48, 16  # of SampleBounds and RankState
# Rows that several blocks share are read once for each 11 bits, mostly from the cache.
LEAST_SHARED, MOST_SHARED_BYTES, MOST_GROUPS = 1 << 13, 1 << 25, 64
MOST_SHARED_LAUNCHES = 4  # for several ranks
MOST_LISTED = 1 << 12  # elements of shared rows that are listed and sorted; of more, all are sorted


def strategy_of(num_rows: int, row_items: int, count: int, itemsize: int) -> str:
    if row_items <= SMALL_FIRST:
        return SMALL
    if row_items <= SHORT_ROW and count <= short_count(itemsize):
        return SHORT
    if parts_of(num_rows, row_items, count, itemsize):
        return PARTS
    if count <= MOST_LISTED and is_shared(num_rows, row_items, 2 * itemsize):
        return SHARED
    if row_items >= LONG_ROW * num_rows:
        is_few = row_items >= LEAST_SELECTED and count <= row_items // LARGEST_SHARE
        return LONG if is_few or count <= MOST_SORTED else SORT
    return BLOCK if count <= MOST_SORTED else SORT


def parts_of(num_rows: int, row_items: int, count: int, itemsize: int) -> tuple[int, int] | None:
    """Return how many parts a row has, and their length; None if another strategy is faster.

    The first elements of all parts of a row are again a row in registers. float32 on an H200, in
    us, against a sample or a block for each row: 10 of 2^20 11.0 and 20.7; 10 of each of 16 rows of
    128,256 12 and 132, 1000 46 and 183; 1000 of one such row 40.6 and 37.6.
    """
    if not SHORT_ROW < row_items <= MOST_IN_PARTS or count > short_count(itemsize):
        return None
    if count > MOST_OF_PARTS and row_items >= LONG_ROW * num_rows:
        return None
    wanted = max(LEAST_PART, num_rows * row_items // PART_BLOCKS, count * row_items // SHORT_ROW)
    parts = -(-row_items // min(SHORT_ROW, power_of_two(wanted)))
    part_items = -(-row_items // parts)
    last_items = row_items - (parts - 1) * part_items
    return (parts, part_items) if parts * count <= SHORT_ROW and last_items >= count else None


def short_count(itemsize: int) -> int:
    """Return how many elements of a row a warp sorts in registers."""
    return 1024 if itemsize < 8 else 512


def is_shared(num_rows: int, row_items: int, itemsize: int) -> bool:
    """Return whether the blocks of a GPU share rows, with a group of blocks for each result.

    Medians of float32 on an H200, in us, against a block or a sample for each row: of 2^14 10.8 and
    23.7, of 2^20 16 and 44, of 2^23 52 and 63, of each of 16 rows of 128,256 22 and 115.
    """
    row_bytes = row_items * itemsize
    is_cached = row_bytes <= MOST_SHARED_BYTES and num_rows * row_bytes <= 4 * MOST_SHARED_BYTES
    return is_cached and row_items > LEAST_SHARED and num_rows <= MOST_GROUPS


MANY_ROWS, MANY_ITEMS = 128, 1 << 22  # rows, or elements of LEAST_ROWS and more, that are sorted
LEAST_ROWS = 16
SORTED_AT_ONCE = 1 << 16  # bytes of the longest row that a block sorts
SHORT_SORTED = 1 << 12  # bytes of a row whose sort takes no longer than a search for one rank
FEW_BLOCKS = 110  # rows that leave most of a GPU idle if each has one block
MOST_COPIED = 1 << 34  # bytes: a sort takes as much temporary storage, or twice that


def strategy_of_ranks(num_rows: int, row_items: int, itemsize: int, ranks: Sequence[int]) -> str:
    """Return how the elements of some ranks are found: BLOCK and SHORT find one after another.

    Of 2^24 elements on an H200, in us: one and two ranks by a sort, one by BLOCK or, in 64 rows,
    SHARED. float32, rows of 1024 153, 156, 184; of 16,384 172, 174, 118; of 65,536 339, 344, 162;
    64 rows 327, 329, 196. float64, rows of 1024 302, 306, 230; float16 94, 99, 244.
    """
    count = len(ranks)
    is_copied = num_rows * row_items * itemsize <= MOST_COPIED
    if count > MOST_RANKS:
        return SORT
    if row_items <= SMALL_ROW:
        return SORT if count > 1 and is_copied else SMALL
    launches = -(-count // max(1, MOST_GROUPS // num_rows))
    shared = is_shared(num_rows, row_items, itemsize) and launches <= MOST_SHARED_LAUNCHES
    if not shared and row_items >= LONG_ROW * num_rows:
        return LONG
    if row_items <= WARP_ROW and all(rank < WARP for rank in ranks):
        return SHORT
    are_many = num_rows >= LEAST_ROWS and num_rows * row_items >= MANY_ITEMS
    if is_copied and (are_many or num_rows >= MANY_ROWS):
        row_bytes = row_items * itemsize
        if itemsize <= 2 or row_bytes <= SHORT_SORTED or (num_rows < FEW_BLOCKS and not shared):
            return SORT
        if count > 1 and (row_bytes <= SORTED_AT_ONCE or num_rows <= 2 * FEW_BLOCKS or count > 2):
            return SORT
    return SHARED if shared else BLOCK


def ordered_bytes(dtype: Dtype) -> int:
    """Return the size of a key in comparisons."""
    return max(4, dtype.itemsize)


def index_bytes(row_items: int) -> int:
    """Return the size of positions and counts within a row."""
    return 4 if row_items < 1 << 32 else 8


# --- samples ------------------------------------------------------------------------------------

MOST_SAMPLE_BITS = 20  # log2 of the size of a sample
DEVIATIONS, MORE = 6, 6  # distance of bounds from a rank: standard deviations, and a constant
RARE = 22  # their distance is less if a bound is still wrong in one of e ** RARE cases at most


@dataclass(frozen=True)
class Sample:
    """Size of a sample, and the ranks within it that are bounds."""

    bits: int  # log2 of the size
    first: int  # rank of the lower bound; -1: no bound
    last: int  # rank of the upper bound; the size: no bound
    capacity: int  # of the list of candidates

    def kept(self, row_items: int) -> int:
        return ((self.last - self.first) * row_items) >> self.bits


class Lists(NamedTuple):
    """Samples whose bounds do not overlap, and the index of the sample of each rank."""

    samples: tuple[Sample, ...]
    of_ranks: tuple[int, ...]


def lists_of(row_items: int, ranks: Sequence[int], is_one: bool) -> Lists:
    """Return the samples for the elements of some ranks, or (not is_one) up to one rank."""
    samples = [sample_of(row_items, rank, is_one) for rank in ranks]
    merged: list[Sample] = []
    of_ranks = [0] * len(ranks)
    for i in sorted(range(len(ranks)), key=lambda i: (samples[i].first, samples[i].last)):
        sample = samples[i]
        if merged and sample.first <= merged[-1].last:
            previous = merged.pop()
            last = max(previous.last, sample.last)
            capacity = min(row_items, previous.capacity + sample.capacity)
            sample = replace(previous, last=last, capacity=capacity)
        merged.append(sample)
        of_ranks[i] = len(merged) - 1
    return Lists(tuple(merged), tuple(of_ranks))


def sample_of(row_items: int, rank: int, is_one: bool, most_bits: int = MOST_SAMPLE_BITS) -> Sample:
    """Return the sample for the elements up to a rank, or (is_one) for the element of that rank.

    The number of samples before a rank is its share, give or take a few times the square root of
    that. Up to a rank, candidates and samples cost the same for about sqrt(8 n) samples; for a
    single rank in the middle, for about (3 n) ** (2 / 3).
    """
    log = row_items.bit_length() - 1
    bits = (2 * log + 3) // 3 if is_one else (log + 3) // 2
    bits = max(8, min(bits, most_bits, log - 2))
    size = 1 << bits
    expected = (rank + 1) * size / row_items
    margin = DEVIATIONS * math.sqrt(expected * max(0.0, 1 - expected / size)) + MORE
    first = max(-1, math.floor(expected - margin)) if is_one else -1
    last = min(size, math.ceil(expected + margin))
    while not is_one and last * math.log(last / expected) - last + expected > RARE:
        last -= 1  # Chernoff's bound, for elements of which few are in the sample
    between = last - first
    size_with_margin = between + 8 * math.sqrt(between) + 32  # with a margin for variance
    return Sample(bits, first, last, min(row_items, math.ceil(size_with_margin * row_items / size)))


# --- kernels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectPolicy:
    """Template arguments of select_rows_kernel (SelectRowsPolicy of top_k/select.cuh)."""

    block_threads: int
    capacity: int  # elements that are sorted

    def shared_bytes(self, dtype: Dtype, row_items: int) -> int:
        """Return the size of SelectRow::Shared with its padding, which the kernel checks."""
        index, warps = index_bytes(row_items), self.block_threads // WARP
        search = 2048 * index + (16 + index) * warps + 2 * index + 48
        return search + self.capacity * (ordered_bytes(dtype) + index) + 64


LARGE_BLOCK = 512  # threads of a block that has its own multiprocessor, with 128 registers


def select_policy(row_items: int, num_sorted: int) -> SelectPolicy:
    threads = LARGE_BLOCK
    if row_items <= 1 << 14:
        threads = 128 if row_items <= 1 << 11 else 256
    capacity = 1
    if num_sorted:
        capacity = FEW_SORTED if num_sorted <= FEW_SORTED else MOST_SORTED
    return SelectPolicy(threads, capacity)


SORTED, LISTED, ONE = "select_sorted", "select_listed", "select_one"
BOUND = "select_bound"  # an element of a sample


def _types(dtype: Dtype, descending: bool, row_items: int) -> tuple[str, str]:
    return order(dtype, descending), index_type(row_items)


def index_type(row_items: int) -> str:
    return f"gpualgo::uint{8 * index_bytes(row_items)}"


def select_spec(
    dtype: Dtype, descending: bool, row_items: int, policy: SelectPolicy, result: str
) -> Spec:
    """Return the kernel that finds elements of rows, one block per row."""
    shared = policy.shared_bytes(dtype, row_items)
    tuned = cpp("SelectRowsPolicy", policy.block_threads, policy.capacity, shared)
    types = tuned, f"gpualgo::{result}", *_types(dtype, descending, row_items)
    return kernel_spec("top_k/select.cuh", "select_rows_kernel", *types)


GATHER_THREADS = 256
FILTER_THREADS, FILTER_BLOCKS = 512, 2  # per multiprocessor, with 64 registers
FEW_LISTS = 4  # most lists for FILTER_BLOCKS, one less of 8-byte elements: more fill the registers
FILTER_LOADS, FILTER_ITEMS = 8, 32  # most vectors and elements that a thread holds
FILTER_STAGED = 2048  # bytes of kept elements that a warp gathers


def gather_spec(itemsize: int, row_items: int) -> Spec:
    """Return the kernel that takes a sample of a row."""
    types = GATHER_THREADS, f"gpualgo::uint{8 * itemsize}", index_type(row_items)
    return kernel_spec("top_k/sample.cuh", "gather_sample_kernel", *types)


def filter_spec(
    dtype: Dtype, descending: bool, row_items: int, num_lists: int, overlaps: bool
) -> Spec:
    """Return the kernel that stores the elements of a row between bounds."""
    staged = FILTER_STAGED // (ordered_bytes(dtype) + index_bytes(row_items))
    policy = cpp(
        "FilterPolicy", FILTER_THREADS, _filter_loads(dtype.itemsize), staged // WARP * WARP,
        FILTER_BLOCKS if num_lists <= FEW_LISTS - (dtype.itemsize > 4) else 1, overlaps,
    )  # fmt: skip
    types = _types(dtype, descending, row_items)
    return kernel_spec("top_k/filter.cuh", "filter_kernel", policy, num_lists, *types)


def filter_grid(num_items: int, itemsize: int, num_sms: int) -> int:
    tile = FILTER_THREADS * _filter_loads(itemsize) * VECTOR_BYTES // itemsize
    return max(1, min(-(-num_items // tile), num_sms * FILTER_BLOCKS))


def _filter_loads(itemsize: int) -> int:
    return min(FILTER_LOADS, FILTER_ITEMS * itemsize // VECTOR_BYTES)


RANKS_THREADS, RANKS_BLOCKS = 512, 2  # per multiprocessor, all of which run at the same time
RANKS_SHARE = 1 << 12  # least elements per block
COUNT_TABLES, DIGIT_BITS = 3, 11


def ranks_spec(dtype: Dtype, descending: bool, row_items: int, result: str, overlaps: bool) -> Spec:
    """Return the kernel that finds ranks of rows or candidates, or bounds in a sample."""
    policy = cpp("RanksPolicy", RANKS_THREADS, RANKS_BLOCKS, overlaps and result == BOUND)
    types = policy, f"gpualgo::{result}", *_types(dtype, descending, row_items)
    return kernel_spec("top_k/ranks.cuh", "ranks_kernel", *types)


def blocks_per_group(num_items: int, num_groups: int, num_sms: int) -> int:
    """Return the number of blocks per rank and row, a power of two, for `num_items` elements."""
    if num_items <= 2 * RANKS_SHARE:  # a block alone waits for no others
        return 1
    blocks = min(-(-num_items // RANKS_SHARE), num_sms * RANKS_BLOCKS // num_groups)
    return 1 << max(0, blocks.bit_length() - 1)


def control_bytes(num_groups: int, row_items: int) -> int:
    tables = COUNT_TABLES * index_bytes(row_items) << DIGIT_BITS
    return num_groups * (STATE_BYTES + tables)


def short_block(row_items: int) -> tuple[int, int]:
    """Return the threads of a block of short_rows_kernel, and how many rows it has."""
    if row_items <= WARP_ROW:
        return SHORT_THREADS, SHORT_THREADS // WARP
    return -(-row_items // WARP_ROW) * WARP, 1


def short_spec(
    dtype: Dtype, descending: bool, row_items: int, count: int, in_parts: bool = False
) -> Spec:
    """Return the kernel that holds rows in registers, one per warp or per block."""
    is_shared = row_items > WARP_ROW
    threads = SHARED_THREADS if is_shared else SHORT_THREADS
    items = power_of_two(-(-min(row_items, WARP_ROW) // WARP))
    num_sorted = power_of_two(-(-count // WARP))
    registers = 128 if ordered_bytes(dtype) == 8 else 64  # in which nothing spills
    if registers == 64 and num_sorted > (16 if is_shared else 8):
        registers = 48 + 2 * num_sorted
    blocks = REGISTERS // registers // threads
    sizes = threads, max(1, blocks), items, num_sorted
    tuned = cpp("ShortRowsPolicy", *sizes, is_shared, in_parts)
    return kernel_spec("top_k/rows.cuh", "short_rows_kernel", tuned, order(dtype, descending))


TAKE_THREADS = 256


def take_spec(itemsize: int) -> Spec:
    types = TAKE_THREADS, f"gpualgo::uint{8 * itemsize}"
    return kernel_spec("top_k/take.cuh", "take_kernel", *types)
