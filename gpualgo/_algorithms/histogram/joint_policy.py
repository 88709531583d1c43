"""Joint and weighted histograms: which kernel, which table, how the work is cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpualgo._algorithms.histogram import policy
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.histogram.policy import SHARED_HEAD_BYTES, Cut, Machine, Policy
from gpualgo._algorithms.histogram.sums import Sum

# Several loads a sample: fewer vectors under way than where there is one.
FLAT = Policy(512, 2, 2)
STRIDED = Policy(512, 4, 2)
STRIDED_SUMS = Policy(512, 2, 2)
ROUND = Policy(256, 1, 4)
ROUND_BLOCKS = 8  # per multiprocessor
# Digits of a sum that a block has in shared memory: the rest of a float's reach goes to the joint
# sums. Around weights of 24 bits three digits, of 53 bits four, and one for what they add up to.
WINDOW = {True: 4, False: 5}
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
    machine: Machine, bins: DeviceBins, channels: int, num_rows: int, num_items: int, is_flat: bool
) -> Cut:  # fmt: skip
    """Return the cut of num_rows rows, each of num_items samples of so many kept places."""
    found = policy.cut(machine, bins, channels, num_rows, num_items * channels)
    return replace(found, policy=FLAT if is_flat else STRIDED)


def slot_words(sums: Sum) -> int:
    """Return how many words of shared memory a sum takes."""
    if sums.format is None:
        return 2
    digits = min(sums.digits, WINDOW[sums.format.mantissa < 32])
    return sums.parts * digits


def cut_sums(
    machine: Machine, bins: DeviceBins, sums: Sum, channels: int, num_rows: int, num_items: int,
    is_flat: bool,
) -> SumsCut:  # fmt: skip
    """Return the cut of num_rows rows, each of num_items samples of so many kept places."""
    each = slot_words(sums)
    num_slots, samples = channels * bins.table_bins, channels * num_items
    room = (machine.shared_bytes - SHARED_HEAD_BYTES - bins.shared_bytes) // 4
    in_shared = num_slots * each <= room and not (
        num_slots > policy.FEW_SLOTS and samples < policy.SAMPLES_PER_SLOT * num_slots
    )
    kind = FLAT if is_flat else STRIDED_SUMS
    tile = kind.block_threads // channels * kind.loads
    parts = min(-(-num_items // tile), max(1, machine.num_sms * kind.min_blocks // num_rows))
    if in_shared:
        parts = min(parts, max(1, samples // (policy.BLOCK_SAMPLES_PER_SLOT * num_slots)))
    parts = max(parts, -(-num_items // policy.MAX_BLOCK_SAMPLES))
    if not in_shared:
        return SumsCut(kind, 0, 1, 0, channels, parts)
    budget = min(machine.small_words, room)
    most = min(policy.MAX_REPLICAS, budget // (num_slots * each), samples // parts // num_slots)
    replicas = 1 << max(1, most).bit_length() - 1
    words = -(-num_slots * each * replicas // 4) * 4
    if words > room:
        words, replicas = -(-num_slots * each // 4) * 4, 1
    in_shared = words <= room
    digits = each // sums.parts if in_shared else 0
    return SumsCut(kind, digits, replicas, words if in_shared else 0, channels, parts)
