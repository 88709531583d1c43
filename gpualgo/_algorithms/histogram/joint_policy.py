"""Joint and weighted histograms: which kernel, which table, how the work is cut."""

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

# Several loads a sample: fewer vectors under way than where there is one. Tables that fill a
# multiprocessor.
FLAT = Policy(512, 2, 2)
LARGE = Policy(1024, 2, 1)
STRIDED = Policy(512, 4, 2)
STRIDED_SUMS = Policy(512, 2, 2)
ROUND = Policy(256, 1, 4)
ROUND_BLOCKS = 8  # per multiprocessor
# Digits of a sum that a block has in shared memory: the rest of a float's reach goes to the joint
# sums. Around weights of 24 bits three digits, of 53 bits four, and one for what they add up to.
WINDOW = {True: 4, False: 5}
# Shared memory that the numbers of an input's function take, with what aligns the rest.
NUMBERS_BYTES = 1024
# Joint sums of so many bytes at once; of more rows in turn.
SUMS_BYTES = 256 << 20


@dataclass(frozen=True)
class SumsCut:
    """How rows with weights are shared out among blocks, and the table of each."""

    policy: Policy
    digits: int  # of a sum in shared memory
    replicas: int
    words: int  # of shared memory for the table
    channels: int  # kept places of a row
    parts: int  # blocks of a row

    def shared_bytes(self, bins: DeviceBins) -> int:
        """Return the dynamic shared memory of a block."""
        return SHARED_HEAD_BYTES + 4 * self.words + bins.shared_bytes


def cut_counts(
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_samples: int, items: int
) -> Cut:
    """Return the cut of num_rows rows, each of so many samples of `channels` kept places.

    `items`: samples that are loaded at once, of rows without gaps; 0: they have gaps.
    """
    itemsize = VECTOR_BYTES // items if items else 0
    found = policy.cut(machine, bins, channels, num_rows, num_samples * channels, itemsize)
    if not items:
        return replace(found, policy=STRIDED)
    return replace(found, policy=LARGE if found.policy is policy.LARGE else FLAT)


def slot_words(sums: Sum) -> int:
    """Return how many words of shared memory a sum takes."""
    if sums.format is None:
        return 2
    digits = min(sums.digits, WINDOW[sums.format.mantissa < 32])
    return sums.parts * digits


def cut_sums(
    machine: Machine, bins: DeviceBins, sums: Sum, channels: int, num_rows: int, num_samples: int,
    items: int,
) -> SumsCut:  # fmt: skip
    """Return the cut of num_rows rows, as `cut_counts` does."""
    each = slot_words(sums)
    num_slots, all_samples = channels * bins.table_bins, channels * num_samples
    room = (machine.shared_bytes - SHARED_HEAD_BYTES - bins.shared_bytes) // 4
    least = -(-num_slots * each // 4) * 4
    is_scarce = all_samples < policy.SAMPLES_PER_SLOT * num_slots
    in_shared = least <= room and not (num_slots > policy.FEW_SLOTS and is_scarce)
    kind = (LARGE if in_shared and 2 * least > room else FLAT) if items else STRIDED_SUMS
    tile = kind.block_threads // channels * kind.loads * max(1, items)
    parts = min(-(-num_samples // tile), max(1, machine.num_sms * kind.min_blocks // num_rows))
    if in_shared:
        parts = min(parts, max(1, all_samples // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    parts = max(parts, -(-num_samples // policy.MAX_BLOCK_SAMPLES))
    if not in_shared:
        return SumsCut(kind, 0, 1, 0, channels, parts)
    most = min(
        policy.MAX_REPLICAS, min(machine.small_words, room) // least,
        all_samples // parts // num_slots,
    )  # fmt: skip
    replicas = 1 << max(1, most).bit_length() - 1
    words = -(-num_slots * each * replicas // 4) * 4
    return SumsCut(kind, each // sums.parts, replicas, words, channels, parts)
