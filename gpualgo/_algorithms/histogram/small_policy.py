"""Histograms of few samples: one wave of blocks (histogram/small.cuh)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import parameters, policy
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._cuda.build import Spec

MOST_BYTES = 8 << 20  # of all samples
MOST_SLOTS = 1 << 10  # each block adds to each of them
MOST_REPLICAS = 32
MOST_ROUNDS = 2  # in which blocks take their tiles, with nothing under way in between
SM_THREADS = 1024  # at once on the smallest multiprocessor
COUNT_BITS = 24  # joint_count_bits
MOST_ARRIVALS = (1 << (32 - COUNT_BITS)) - 1  # of a joint word


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallPolicy)."""

    block_threads: int
    loads: int  # vectors that a thread has under way
    replicas: int  # of a block's table
    copies: int  # of the joint words

    def cpp(self) -> str:
        """Return the C++ type."""
        arguments = (self.block_threads, self.loads, self.replicas, self.copies)
        return f"gpualgo::SmallPolicy<{', '.join(map(str, arguments))}>"


@dataclass(frozen=True)
class Shape:
    """What the template arguments are made of."""

    block_threads: int
    loads: int
    words: int  # of a block's table, with all replicas, where they can be so many
    copies: int


# By the bytes of all samples, up to; the first is one block, which joins with nobody. µs of 256
# bins on an H200; with half the copies; with half or twice the threads; by the kernel of many:
# 2^16 uint8 4.1, 4.3, 4.3, 5.3; 2^16 float32 4.0, 4.3, 4.3, 5.7; 2^20 uint8 4.7, 4.9, 5.1, 6.2;
# 2^20 float32 5.2, 5.4, 5.4, 7.7. Of 2^21 float32 in two rounds 6.1, in one 6.4.
SMALL = {
    8 << 10: Shape(512, 1, 1 << 11, 1),
    64 << 10: Shape(256, 1, 1 << 11, 4),
    256 << 10: Shape(512, 1, 1 << 11, 2),
    1 << 20: Shape(512, 1, 1 << 11, 4),
    MOST_BYTES: Shape(1024, 2, 1 << 11, 4),
}
# More samples than these want twice as many words: of 2^22 uint8 5.9 instead of 6.3 µs.
MANY_SAMPLES = 1 << 21
# Beyond so many counters blocks have as many threads, up to 512, and copies pay only for more
# blocks than these: 2^16 float32 in 1024 bins take 4.5 µs, by 256 threads 5.3, with two copies 4.9.
FEW_SLOTS, FEW_BLOCKS, SLOT_THREADS = 256, 64, 512
SEARCH_THREADS = 512  # more have too few registers


@dataclass(frozen=True)
class SmallCut:
    """How many blocks there are, and what each takes."""

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
    """Return the cut of one row without gaps; None if it is not small."""
    num_bytes, num_slots = num_items * itemsize, bins.table_bins
    if num_bytes > MOST_BYTES or num_items >= 1 << COUNT_BITS:
        return None
    if max(num_slots, num_bins) > MOST_SLOTS:
        return None
    shape = next(each for most, each in SMALL.items() if num_bytes <= most)
    threads = max(shape.block_threads, min(SLOT_THREADS, num_slots // FEW_SLOTS * FEW_SLOTS))
    if bins.is_search:
        threads = min(threads, SEARCH_THREADS)
    tile = threads * shape.loads * policy.VECTOR_BYTES // itemsize
    tiles, places = -(-num_items // tile), machine.num_sms * max(1, SM_THREADS // threads)
    if tiles > MOST_ROUNDS * places:
        return None
    blocks = min(tiles, places, MOST_ARRIVALS * shape.copies)
    blocks = min(blocks, max(1, num_items // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    copies = shape.copies if num_slots <= FEW_SLOTS or blocks > FEW_BLOCKS else 1
    most = shape.words << (num_items > MANY_SAMPLES)
    replicas = 1 << min(MOST_REPLICAS, max(1, most // num_slots)).bit_length() - 1
    words = policy.whole_words(num_slots * replicas)
    if bins.shares_bins:
        words += num_slots + policy.whole_words(num_bins)
    return SmallCut(Small(threads, shape.loads, replicas, copies), blocks, num_slots, words)


def spec(dtype: np.dtype[Any], bins: DeviceBins, found: SmallCut) -> Spec:
    """Return the kernel."""
    return Spec(
        "histogram/small.cuh",
        f"gpualgo::histogram_small_kernel<{found.policy.cpp()}, {policy.sample(dtype, bins)}, "
        f"{bins.cpp}>",
        parameters.small(bins.fields),
    )
