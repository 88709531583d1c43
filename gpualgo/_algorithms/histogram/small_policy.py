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


# By the bytes of all samples, up to; the first is one block, which joins with nobody.
SMALL = {
    8 << 10: Shape(512, 1, 1 << 11, 1),
    256 << 10: Shape(128, 1, 1 << 11, 1),
    1 << 20: Shape(512, 1, 1 << 11, 2),
    4 << 20: Shape(1024, 2, 1 << 11, 2),
    MOST_BYTES: Shape(1024, 4, 1 << 11, 2),
}


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
    tile = shape.block_threads * shape.loads * policy.VECTOR_BYTES // itemsize
    blocks = min(-(-num_items // tile), machine.num_sms, MOST_ARRIVALS * shape.copies)
    blocks = min(blocks, max(1, num_items // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    replicas = 1 << min(MOST_REPLICAS, max(1, shape.words // num_slots)).bit_length() - 1
    words = policy.whole_words(num_slots * replicas)
    if bins.shares_bins:
        words += num_slots + policy.whole_words(num_bins)
    found = Small(shape.block_threads, shape.loads, replicas, shape.copies)
    return SmallCut(found, blocks, num_slots, words)


def spec(dtype: np.dtype[Any], bins: DeviceBins, found: SmallCut) -> Spec:
    """Return the kernel."""
    return Spec(
        "histogram/small.cuh",
        f"gpualgo::histogram_small_kernel<{found.policy.cpp()}, {policy.sample(dtype, bins)}, "
        f"{bins.cpp}>",
        parameters.small(bins.fields),
    )
