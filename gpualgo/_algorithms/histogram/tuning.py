"""Tuning table of histograms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.templates import VECTOR_BYTES, kernel_spec

# --- Tuning of the GPU histogram: kernels, template arguments, tables, division into blocks.

MAX_CHANNELS = 4  # interleaved channels that a flat kernel supports
MAX_BLOCK_SAMPLES = 1 << 31  # a block's counters have 32 bits
SHARED_HEAD_BYTES = 16  # HistogramShared before its words


@dataclass(frozen=True)
class Policy:
    """Template arguments of a kernel (HistogramPolicy of histogram/kernel.cuh)."""

    block_threads: int
    loads: int  # vectors in flight per thread, one tile ahead
    min_blocks: int  # per multiprocessor

    def cpp(self, capability: tuple[int, int]) -> Cpp:
        """Return the C++ type; GPUs of 7.5 hold 1024 threads per multiprocessor."""
        most = 2 if capability == (7, 5) else self.min_blocks
        return cpp("HistogramPolicy", self.block_threads, self.loads, min(most, self.min_blocks))


# Small tables, by the maximum bytes of all samples. µs for 256 bins: 2^16 uint8 6.7 with the first,
# 7.2 with the second; 2^22 float32 9.3 with the third, 11.1 with the second; 2^27 125 with
# SMALL_OF_MANY, 129 with the third.
SMALL = {256 << 10: Policy(256, 1, 4), 2 << 20: Policy(512, 2, 3), 64 << 20: Policy(1024, 2, 1)}
SMALL_OF_MANY = Policy(512, 4, 2)
# For more registers per thread, and many more; for tables that fill a multiprocessor.
ROOMY = Policy(512, 2, 2)
ROOMIEST = Policy(512, 2, 1)
LARGE = Policy(1024, 2, 1)
STRIDED = Policy(512, 4, 2)

REPLICATED, PACKED, GLOBAL = (
    f"gpualgo::{name}Table" for name in ("Replicated", "Packed", "Global")
)
# 32-bit words of a small table with all replicas, so that three blocks fit: on GPUs with at least
# so much shared memory per block, and on others.
ROOMY_SHARED_BYTES = 160 << 10
SMALL_WORDS, SMALL_WORDS_ELSEWHERE = 1 << 14, 1 << 13
LARGE_WORDS = 1 << 15
MAX_REPLICAS = 32
# More slots than FEW_SLOTS pay only with SAMPLES_PER_SLOT samples for each; with fewer samples
# blocks count in global memory.
FEW_SLOTS = 1 << 12
SAMPLES_PER_SLOT = 32
# Least samples per slot of a block, which adds each slot to the joint counters.
BLOCK_SAMPLES_PER_SLOT = 2
# Shorter rows are counted side by side.
SHORT_ROW = 1 << 11


@dataclass(frozen=True)
class Machine:
    num_sms: int
    shared_bytes: int  # per block
    capability: tuple[int, int]

    @property
    def small_words(self) -> int:
        """32-bit words of a small table."""
        return SMALL_WORDS if self.shared_bytes >= ROOMY_SHARED_BYTES else SMALL_WORDS_ELSEWHERE


@dataclass(frozen=True)
class Tiling:
    """How blocks share rows, and each block's table."""

    policy: Policy
    table: str
    replicas: int
    words: int  # of shared memory for the table
    channels: int  # histograms of a row
    parts: int  # blocks of a row
    num_rows: int

    @property
    def num_blocks(self) -> int:
        return self.parts * self.num_rows

    def shared_bytes(self, bins: DeviceBins) -> int:
        return SHARED_HEAD_BYTES + 4 * self.words + bins.shared_bytes


def is_bytes(bins: DeviceBins) -> bool:
    """Return whether the kernel counts the values of 8-bit samples."""
    return bins.type.name in ("ByteBins", "UnitBins")


def _table(num_slots: int, num_samples: int, free_bytes: int) -> str:
    if num_slots > free_bytes // 2:
        return GLOBAL
    if num_slots > FEW_SLOTS and num_samples < SAMPLES_PER_SLOT * num_slots:
        return GLOBAL
    return PACKED if num_slots > free_bytes // 4 else REPLICATED


def whole_words(words: int) -> int:
    return -(-words // 4) * 4


def tiling(
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_items: int,
    itemsize: int = 0,
) -> Tiling:  # fmt: skip
    """Return how blocks share num_rows rows of num_items samples, of all channels together.

    itemsize is given for rows without gaps.
    """
    num_slots = channels * bins.table_bins
    free_bytes = machine.shared_bytes - SHARED_HEAD_BYTES - bins.shared_bytes
    table = REPLICATED if is_bytes(bins) else _table(num_slots, num_items, free_bytes)
    is_small = table == REPLICATED and num_slots <= machine.small_words // 4
    if not itemsize:
        policy = STRIDED
    elif channels > 1 and (bins.is_search or table == GLOBAL):
        policy = ROOMIEST
    elif table == GLOBAL or (is_small and (channels > 1 or bins.is_search)):
        policy = ROOMY
    elif is_small:
        num_bytes = num_rows * num_items * itemsize
        policies = (policy for most, policy in SMALL.items() if num_bytes <= most)
        policy = next(policies, SMALL_OF_MANY)
    else:
        policy = LARGE
    if itemsize:
        groups = policy.block_threads * max(1, policy.loads // channels)
        tile = groups * channels * (VECTOR_BYTES // itemsize)
    else:
        tile = policy.block_threads // channels * channels * policy.loads
    parts = min(-(-num_items // tile), max(1, machine.num_sms * policy.min_blocks // num_rows))
    if table != GLOBAL:
        parts = min(parts, max(1, num_items // (BLOCK_SAMPLES_PER_SLOT * num_slots)))
    parts = max(parts, -(-num_items // MAX_BLOCK_SAMPLES))
    replicas = 1
    if table == REPLICATED:
        budget = min(machine.small_words if policy is not LARGE else LARGE_WORDS, free_bytes // 4)
        max_replicas = min(MAX_REPLICAS, budget // num_slots, num_items // parts // num_slots)
        replicas = 1 << max(1, max_replicas).bit_length() - 1
    words = {GLOBAL: 0, PACKED: (num_slots + 1) // 2, REPLICATED: num_slots * replicas}[table]
    return Tiling(policy, table, replicas, whole_words(words), channels, parts, num_rows)


def channels_of_block(machine: Machine, bins: DeviceBins, num_places: int) -> int:
    """Return how many neighbouring histograms one block of the strided kernel counts."""
    most = machine.small_words // bins.table_bins
    return max(1, min(num_places, most, STRIDED.block_threads))


def sample(dtype: np.dtype[Any], bins: DeviceBins) -> np.dtype[Any]:
    """Return the dtype that a kernel loads."""
    return np.dtype(np.uint8) if is_bytes(bins) else dtype


def spec_of(
    kind: str, machine: Machine, dtype: np.dtype[Any], bins: DeviceBins, found: Tiling, *types: Any
) -> Spec:
    """Return the kernel for rows without gaps ("flat"), or for samples of any strides."""
    policy = found.policy.cpp(machine.capability)
    types = policy, sample(dtype, bins), bins.type, found.table, *types
    return kernel_spec("histogram/kernel.cuh", f"histogram_{kind}_kernel", *types)


# --- Tuning of GPU histograms of few samples: one wave of blocks (histogram/small.cuh).

SMALL_MOST_BYTES = 8 << 20  # of all samples
MOST_SLOTS = 1 << 10  # a block adds to each of them
MOST_REPLICAS = 32
MOST_ROUNDS = 2  # of tiles per block, without prefetching in between
SM_THREADS = 1024  # resident on the smallest multiprocessor
COUNT_BITS = 24  # joint_count_bits
MOST_ARRIVALS = (1 << (32 - COUNT_BITS)) - 1  # of a joint word


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallPolicy)."""

    block_threads: int
    loads: int  # vectors in flight per thread
    copies: int  # of the joint words
    replicas: int = 1  # of a block's table

    def cpp(self) -> Cpp:
        return cpp("SmallPolicy", self.block_threads, self.loads, self.replicas, self.copies)


# By the maximum bytes of all samples; the first is one block, which combines nothing. µs for 256
# bins on an H200; with half the copies; with half or twice the threads; by the general kernel: 2^16
# uint8 4.1, 4.3, 4.3, 5.3; 2^16 float32 4.0, 4.3, 4.3, 5.7; 2^20 uint8 4.7, 4.9, 5.1, 6.2; 2^20
# float32 5.2, 5.4, 5.4, 7.7. 2^21 float32 in two rounds 6.1, in one 6.4.
SMALL_SHAPES = {
    8 << 10: Small(512, 1, 1),
    64 << 10: Small(256, 1, 4),
    256 << 10: Small(512, 1, 2),
    1 << 20: Small(512, 1, 4),
    SMALL_MOST_BYTES: Small(1024, 2, 4),
}
# 32-bit words of a block's table with all replicas, if they fit. With more samples tables have
# twice as many: 2^22 uint8 5.9 instead of 6.3 µs.
SMALL_TABLE, MANY_SAMPLES = 1 << 11, 1 << 21
# For more counters, blocks have as many threads, up to SLOT_THREADS, and copies pay only for more
# blocks than FEW_BLOCKS: 2^16 float32 in 1024 bins 4.5 µs, with 256 threads 5.3, with two copies
# 4.9.
SMALL_FEW_SLOTS, FEW_BLOCKS, SLOT_THREADS = 256, 64, 512
SEARCH_THREADS = 512  # more would have too few registers


@dataclass(frozen=True)
class SmallTiling:
    policy: Small
    num_blocks: int
    num_slots: int
    words: int  # of shared memory

    def shared_bytes(self, bins: DeviceBins) -> int:
        return 4 * self.words + bins.shared_bytes

    @property
    def joint_bytes(self) -> int:
        return 4 * self.policy.copies * self.num_slots if self.num_blocks > 1 else 0


def small_tiling(
    machine: Machine, bins: DeviceBins, num_bins: int, num_items: int, itemsize: int
) -> SmallTiling | None:
    """Return how blocks share one dense row; None if it is too large."""
    num_bytes, num_slots = num_items * itemsize, bins.table_bins
    if num_bytes > SMALL_MOST_BYTES or num_items >= 1 << COUNT_BITS:
        return None
    if max(num_slots, num_bins) > MOST_SLOTS:
        return None
    shape = next(shape for most, shape in SMALL_SHAPES.items() if num_bytes <= most)
    threads = max(
        shape.block_threads, min(SLOT_THREADS, num_slots // SMALL_FEW_SLOTS * SMALL_FEW_SLOTS)
    )
    if bins.is_search:
        threads = min(threads, SEARCH_THREADS)
    tile = threads * shape.loads * VECTOR_BYTES // itemsize
    tiles, max_blocks = -(-num_items // tile), machine.num_sms * max(1, SM_THREADS // threads)
    if tiles > MOST_ROUNDS * max_blocks:
        return None
    blocks = min(tiles, max_blocks, MOST_ARRIVALS * shape.copies)
    blocks = min(blocks, max(1, num_items // (BLOCK_SAMPLES_PER_SLOT * num_slots)))
    copies = shape.copies if num_slots <= SMALL_FEW_SLOTS or blocks > FEW_BLOCKS else 1
    max_words = SMALL_TABLE << (num_items > MANY_SAMPLES)
    replicas = 1 << min(MOST_REPLICAS, max(1, max_words // num_slots)).bit_length() - 1
    words = whole_words(num_slots * replicas)
    if bins.shares_bins:
        words += num_slots + whole_words(num_bins)
    policy = Small(threads, shape.loads, copies, replicas)
    return SmallTiling(policy, blocks, num_slots, words)


def small_spec(dtype: np.dtype[Any], bins: DeviceBins, found: SmallTiling) -> Spec:
    types = found.policy.cpp(), sample(dtype, bins), bins.type
    return kernel_spec("histogram/small.cuh", "histogram_small_kernel", *types)


# --- Tuning of joint and weighted GPU histograms: kernels, tables, division into blocks.

# Shared memory of the captured numbers of an input's function, with padding.
NUMBERS_BYTES = 1024


def tile_counts(
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_samples: int, items: int
) -> Tiling:
    """Return how blocks share num_rows rows of num_samples samples of `channels` kept indices.

    `items`: samples per load of dense rows; 0: rows have gaps.
    """
    itemsize = VECTOR_BYTES // items if items else 0
    shares = tiling(machine, bins, channels, num_rows, num_samples * channels, itemsize)
    # Samples take several loads, so fewer vectors are in flight than for one dimension.
    return replace(shares, policy=ROOMY) if items and shares.policy is not LARGE else shares
