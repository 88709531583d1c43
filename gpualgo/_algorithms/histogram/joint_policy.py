"""Tuning of joint and weighted GPU histograms: kernels, tables, division into blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpualgo._algorithms.histogram import policy
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.histogram.policy import (
    SHARED_HEAD_BYTES,
    VECTOR_BYTES,
    Cut,
    Machine,
    Policy,
)
from gpualgo._algorithms.histogram.sums import Sum

# Samples take several loads, so fewer vectors are in flight than for one dimension. LARGE: for
# tables that fill a multiprocessor.
FLAT = Policy(512, 2, 2)
LARGE = Policy(1024, 2, 1)
STRIDED = Policy(512, 4, 2)
STRIDED_SUMS = Policy(512, 2, 2)
ROUND = Policy(256, 1, 4)
ROUND_BLOCKS = 8  # per multiprocessor
# Digits of a sum in a block's shared memory; other digits of floats go to the joint sums. Weights
# of 24 bits need three digits, of 53 bits four, and their sums one more.
WINDOW = {True: 4, False: 5}
# Shared memory of the captured numbers of an input's function, with padding.
NUMBERS_BYTES = 1024
# Most bytes of joint sums at once; further rows follow in turn.
SUMS_BYTES = 256 << 20


@dataclass(frozen=True)
class SumsCut:
    """How blocks share rows with weights, and each block's table."""

    policy: Policy
    digits: int  # of a sum in shared memory
    replicas: int
    words: int  # of shared memory for the table
    channels: int  # kept indices of a row
    parts: int  # blocks of a row

    def shared_bytes(self, bins: DeviceBins) -> int:
        """Return the dynamic shared memory of a block."""
        return SHARED_HEAD_BYTES + 4 * self.words + bins.shared_bytes


def cut_counts(
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_samples: int, items: int
) -> Cut:
    """Return how blocks share num_rows rows of num_samples samples of `channels` kept indices.

    `items`: samples per load of dense rows; 0: rows have gaps.
    """
    itemsize = VECTOR_BYTES // items if items else 0
    shares = policy.cut(machine, bins, channels, num_rows, num_samples * channels, itemsize)
    if not items:
        return replace(shares, policy=STRIDED)
    return replace(shares, policy=LARGE if shares.policy is policy.LARGE else FLAT)


def slot_words(sums: Sum) -> int:
    """Return the words of shared memory per sum."""
    if sums.format is None:
        return 2
    digits = min(sums.digits, WINDOW[sums.format.mantissa < 32])
    return sums.parts * digits


def cut_sums(
    machine: Machine, bins: DeviceBins, sums: Sum, channels: int, num_rows: int, num_samples: int,
    items: int,
) -> SumsCut:  # fmt: skip
    """Return how blocks share num_rows rows, as `cut_counts` does."""
    slot_size = slot_words(sums)
    num_slots, all_samples = channels * bins.table_bins, channels * num_samples
    max_words = (machine.shared_bytes - SHARED_HEAD_BYTES - bins.shared_bytes) // 4
    min_words = -(-num_slots * slot_size // 4) * 4
    is_scarce = all_samples < policy.SAMPLES_PER_SLOT * num_slots
    in_shared = min_words <= max_words and not (num_slots > policy.FEW_SLOTS and is_scarce)
    kind = (LARGE if in_shared and 2 * min_words > max_words else FLAT) if items else STRIDED_SUMS
    tile = kind.block_threads // channels * kind.loads * max(1, items)
    parts = min(-(-num_samples // tile), max(1, machine.num_sms * kind.min_blocks // num_rows))
    if in_shared:
        parts = min(parts, max(1, all_samples // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    parts = max(parts, -(-num_samples // policy.MAX_BLOCK_SAMPLES))
    if not in_shared:
        return SumsCut(kind, 0, 1, 0, channels, parts)
    max_replicas = min(
        policy.MAX_REPLICAS, min(machine.small_words, max_words) // min_words,
        all_samples // parts // num_slots,
    )  # fmt: skip
    replicas = 1 << max(1, max_replicas).bit_length() - 1
    words = -(-num_slots * slot_size * replicas // 4) * 4
    return SumsCut(kind, slot_size // sums.parts, replicas, words, channels, parts)
