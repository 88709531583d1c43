"""Tuning of the GPU histogram: kernels, template arguments, tables, division into blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import parameters
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._base import dtypes
from gpualgo._cuda.build import Spec

VECTOR_BYTES = 16
MAX_CHANNELS = 4  # interleaved channels that a flat kernel supports
MAX_BLOCK_SAMPLES = 1 << 31  # a block's counters have 32 bits
SHARED_HEAD_BYTES = 16  # HistogramShared before its words


@dataclass(frozen=True)
class Policy:
    """Template arguments of a kernel (HistogramPolicy of histogram/kernel.cuh)."""

    block_threads: int
    loads: int  # vectors in flight per thread, one tile ahead
    min_blocks: int  # per multiprocessor

    def cpp(self, capability: tuple[int, int]) -> str:
        """Return the C++ type; GPUs of 7.5 hold 1024 threads per multiprocessor."""
        most = 2 if capability == (7, 5) else self.min_blocks
        arguments = (self.block_threads, self.loads, min(most, self.min_blocks))
        return f"gpualgo::HistogramPolicy<{', '.join(map(str, arguments))}>"


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
    """The device properties that determine the cut."""

    num_sms: int
    shared_bytes: int  # per block
    capability: tuple[int, int]

    @property
    def small_words(self) -> int:
        """32-bit words of a small table."""
        return SMALL_WORDS if self.shared_bytes >= ROOMY_SHARED_BYTES else SMALL_WORDS_ELSEWHERE


@dataclass(frozen=True)
class Cut:
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
        """Return the dynamic shared memory of a block."""
        return SHARED_HEAD_BYTES + 4 * self.words + bins.shared_bytes


def is_bytes(bins: DeviceBins) -> bool:
    """Return whether the kernel counts the values of 8-bit samples."""
    return bins.cpp in ("gpualgo::ByteBins", "gpualgo::UnitBins")


def _table(num_slots: int, num_samples: int, free_bytes: int) -> str:
    """Return the kind of table for `num_slots` slots of a row."""
    if num_slots > free_bytes // 2:
        return GLOBAL
    if num_slots > FEW_SLOTS and num_samples < SAMPLES_PER_SLOT * num_slots:
        return GLOBAL
    return PACKED if num_slots > free_bytes // 4 else REPLICATED


def _small(num_bytes: int) -> Policy:
    """Return the policy of small tables for `num_bytes` bytes of samples."""
    return next((policy for most, policy in SMALL.items() if num_bytes <= most), SMALL_OF_MANY)


def _words(table: str, num_slots: int, replicas: int) -> int:
    """Return the words of a table, a multiple of 4."""
    words = {GLOBAL: 0, PACKED: (num_slots + 1) // 2, REPLICATED: num_slots * replicas}[table]
    return whole_words(words)


def whole_words(words: int) -> int:
    """Round a number of words up to a multiple of 4."""
    return -(-words // 4) * 4


def cut(
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_items: int,
    itemsize: int = 0,
) -> Cut:  # fmt: skip
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
    else:
        policy = _small(num_rows * num_items * itemsize) if is_small else LARGE
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
    words = _words(table, num_slots, replicas)
    return Cut(policy, table, replicas, words, channels, parts, num_rows)


def channels_of_block(machine: Machine, bins: DeviceBins, num_places: int) -> int:
    """Return how many neighbouring histograms one block of the strided kernel counts."""
    most = machine.small_words // bins.table_bins
    return max(1, min(num_places, most, STRIDED.block_threads))


def sample(dtype: np.dtype[Any], bins: DeviceBins) -> str:
    """Return the C++ type that a kernel loads."""
    return "gpualgo::uint8" if is_bytes(bins) else dtypes.cpp_name(dtype)


def flat_spec(machine: Machine, dtype: np.dtype[Any], bins: DeviceBins, found: Cut) -> Spec:
    """Return the kernel for rows without gaps."""
    return Spec(
        "histogram/kernel.cuh",
        f"gpualgo::histogram_flat_kernel<{found.policy.cpp(machine.capability)}, "
        f"{sample(dtype, bins)}, {bins.cpp}, {found.table}, {found.channels}>",
        parameters.flat(bins.fields),
    )


def strided_spec(machine: Machine, dtype: np.dtype[Any], bins: DeviceBins, found: Cut) -> Spec:
    """Return the kernel for samples of any strides."""
    return Spec(
        "histogram/kernel.cuh",
        f"gpualgo::histogram_strided_kernel<{found.policy.cpp(machine.capability)}, "
        f"{sample(dtype, bins)}, {bins.cpp}, {found.table}>",
        parameters.strided(bins.fields),
    )
