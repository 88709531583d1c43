"""Tuning of GPU histograms of few samples: one wave of blocks (histogram/small.cuh)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import parameters, policy
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._cuda.build import Spec

MOST_BYTES = 8 << 20  # of all samples
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
    replicas: int  # of a block's table
    copies: int  # of the joint words

    def cpp(self) -> str:
        arguments = (self.block_threads, self.loads, self.replicas, self.copies)
        return f"gpualgo::SmallPolicy<{', '.join(map(str, arguments))}>"


@dataclass(frozen=True)
class Shape:
    """Sizes from which the template arguments are computed."""

    block_threads: int
    loads: int
    words: int  # of a block's table with all replicas, if they fit
    copies: int


# By the maximum bytes of all samples; the first is one block, which combines nothing. µs for 256
# bins on an H200; with half the copies; with half or twice the threads; by the general kernel: 2^16
# uint8 4.1, 4.3, 4.3, 5.3; 2^16 float32 4.0, 4.3, 4.3, 5.7; 2^20 uint8 4.7, 4.9, 5.1, 6.2; 2^20
# float32 5.2, 5.4, 5.4, 7.7. 2^21 float32 in two rounds 6.1, in one 6.4.
SMALL = {
    8 << 10: Shape(512, 1, 1 << 11, 1),
    64 << 10: Shape(256, 1, 1 << 11, 4),
    256 << 10: Shape(512, 1, 1 << 11, 2),
    1 << 20: Shape(512, 1, 1 << 11, 4),
    MOST_BYTES: Shape(1024, 2, 1 << 11, 4),
}
# For more samples, tables have twice as many words: 2^22 uint8 5.9 instead of 6.3 µs.
MANY_SAMPLES = 1 << 21
# For more counters, blocks have as many threads, up to SLOT_THREADS, and copies pay only for more
# blocks than FEW_BLOCKS: 2^16 float32 in 1024 bins 4.5 µs, with 256 threads 5.3, with two copies
# 4.9.
FEW_SLOTS, FEW_BLOCKS, SLOT_THREADS = 256, 64, 512
SEARCH_THREADS = 512  # more would have too few registers


@dataclass(frozen=True)
class SmallCut:
    """How many blocks there are, and the table of each."""

    policy: Small
    num_blocks: int
    num_slots: int
    words: int  # of shared memory

    def shared_bytes(self, bins: DeviceBins) -> int:
        """Return the dynamic shared memory of a block."""
        return 4 * self.words + bins.shared_bytes

    @property
    def joint_bytes(self) -> int:
        """Return the bytes of the joint words."""
        return 4 * self.policy.copies * self.num_slots if self.num_blocks > 1 else 0


def cut(
    machine: policy.Machine, bins: DeviceBins, num_bins: int, num_items: int, itemsize: int
) -> SmallCut | None:
    """Return how blocks share one dense row; None if it is too large."""
    num_bytes, num_slots = num_items * itemsize, bins.table_bins
    if num_bytes > MOST_BYTES or num_items >= 1 << COUNT_BITS:
        return None
    if max(num_slots, num_bins) > MOST_SLOTS:
        return None
    shape = next(shape for max_words, shape in SMALL.items() if num_bytes <= max_words)
    threads = max(shape.block_threads, min(SLOT_THREADS, num_slots // FEW_SLOTS * FEW_SLOTS))
    if bins.is_search:
        threads = min(threads, SEARCH_THREADS)
    tile = threads * shape.loads * policy.VECTOR_BYTES // itemsize
    tiles, max_blocks = -(-num_items // tile), machine.num_sms * max(1, SM_THREADS // threads)
    if tiles > MOST_ROUNDS * max_blocks:
        return None
    blocks = min(tiles, max_blocks, MOST_ARRIVALS * shape.copies)
    blocks = min(blocks, max(1, num_items // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    copies = shape.copies if num_slots <= FEW_SLOTS or blocks > FEW_BLOCKS else 1
    max_words = shape.words << (num_items > MANY_SAMPLES)
    replicas = 1 << min(MOST_REPLICAS, max(1, max_words // num_slots)).bit_length() - 1
    words = policy.whole_words(num_slots * replicas)
    if bins.shares_bins:
        words += num_slots + policy.whole_words(num_bins)
    return SmallCut(Small(threads, shape.loads, replicas, copies), blocks, num_slots, words)


def spec(dtype: np.dtype[Any], bins: DeviceBins, found: SmallCut) -> Spec:
    return Spec(
        "histogram/small.cuh",
        f"gpualgo::histogram_small_kernel<{found.policy.cpp()}, {policy.sample(dtype, bins)}, "
        f"{bins.cpp}>",
        parameters.small(bins.fields),
    )
