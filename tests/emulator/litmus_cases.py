"""The litmus kernels: how each is launched, and what the machine must say of its wrong twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Outcome = Callable[[list[int]], bool]  # whether what it leaves shows the mistake


@dataclass(frozen=True)
class Case:
    """A litmus: `says` begins the report of the wrong twin, or `shows` is true of it alone."""

    name: str
    grid: int = 1
    threads: int = 1
    says: str | tuple[str, ...] = ()
    shows: Outcome | None = None
    leaves: str = "out"  # the memory with the outcome
    residency: int | None = None
    races: int = 1
    seeds: int = 20
    is_rare: bool = False  # some seeds report nothing


def _both_missed(out: list[int]) -> bool:
    return out[0] == 0 and out[1] == 0


WORDS = (
    Case("message_passing", 2, says="RACE"),
    Case("message_passing_reader", 2, says="RACE"),
    Case("narrow_fence", 2, says="RACE"),
    Case("fence_in_block", 1, 64, says="RACE"),
    Case("narrow_word", 2, says="RACE"),
    Case("relaxed_values", 2, shows=lambda out: out[:2] == [1, 0], seeds=200),
    Case("load_reordering", 2, shows=lambda out: out[:2] == [1, 0], seeds=400),
    Case("store_buffering", 2, shows=_both_missed, seeds=100),
    Case("independent_reads", 4, shows=lambda out: out[4:8] == [1, 0, 1, 0], seeds=600),
    Case("two_writes", 2, shows=lambda out: out[:2] == [1, 1], leaves="words", seeds=800),
    Case("coherence", 2, shows=lambda out: out[1] < out[0], seeds=100),
    Case("coherence_told", 2, 64, shows=lambda out: out[1] < out[0], seeds=100),
    Case("counting", 4, shows=lambda out: out[0] != 16, leaves="words"),
    Case("torn_value", 2, shows=lambda out: out[:2] != [5, 6], seeds=100),
    Case("last_block_order", 4, says="RACE"),
    Case("last_block_barrier", 2, 32, says="RACE"),
    Case("told_by_another", 3, says="RACE"),
    Case("release_acquire", 2, says="RACE"),
)

MEMORY = (
    Case("past_the_end", says="OUT OF BOUNDS: read of 1 bytes at 0 bytes past the end of data"),
    Case(
        "before_the_begin",  # a page before it may be memory of another test
        says=(
            "OUT OF BOUNDS: write of 1 bytes at 1 bytes before data",
            "OUT OF BOUNDS: write of 1 bytes at 4095 bytes past the end of",
        ),
    ),
    Case("vector_at_the_end", says="OUT OF BOUNDS"),
    Case(
        "misaligned_vector",
        says=("MISALIGNED access of 16 bytes at +4 of data", "UNDEFINED: address"),
    ),
    Case("past_shared", says="OUT OF BOUNDS: write of 4 bytes at shared memory +1024"),
    Case("past_an_array_in_a_struct", says="UNDEFINED: index out of bounds"),
    Case("uninitialised_shared", says="UNINITIALISED: read of 4 bytes at shared memory +20"),
    Case("uninitialised_global", says="UNINITIALISED: read of 4 bytes at +12 of fresh"),
    Case("uninitialised_byte", says="UNINITIALISED: read of 16 bytes at +0 of fresh"),
    Case("uninitialised_copy", says="UNINITIALISED: read of 4 bytes at shared memory +4"),
    Case("uninitialised_and_used", 1, 32, says="UNINITIALISED: read of 4 bytes at shared memory"),
    Case(
        "uninitialised_flag",
        1,
        64,
        says="UNINITIALISED: read of 4 bytes at shared memory +0",
        is_rare=True,
    ),
    Case(
        "uninitialised_maximum", 1, 32, says="UNINITIALISED: read of 4 bytes at shared memory +36"
    ),
    Case("uninitialised_atomic", says="UNINITIALISED: read of 4 bytes at +0 of fresh"),
    Case("foreign_stack", 1, 2, says="OUT OF BOUNDS: write of 4 bytes on the stack of block 0"),
    Case("missing_barrier", 1, 64, says="RACE"),
    Case("missing_second_barrier", 1, 64, says="RACE"),
    Case("missing_syncwarp", 1, 32, says="RACE"),
    Case("vote_is_no_barrier", 1, 32, says="RACE"),
    Case("read_vote_write", 1, 32, says="RACE", races=2),
    Case("writes_of_one_value", 1, 32, says="RACE"),
    Case("race_between_blocks", 2, says="RACE"),
    Case("bytes_of_a_word", 1, 32, says="RACE"),
    Case("plain_beside_atomic", 2, says="RACE"),
)

TOGETHER = (
    Case("lane_not_in_mask", 1, 32, says="WARP: shfl_sync of lanes fffffffe called by lane 0"),
    Case("masks_overlap", 1, 32, says="WARP: ballot_sync of lanes"),
    Case("kinds_differ", 1, 32, says="WARP: "),
    Case("lane_does_not_come", 1, 32, says="LIVELOCK"),
    Case("shuffle_from_nobody", 1, 32, shows=lambda out: out[:16] != [5] * 16),
    Case("active_lanes", 1, 32, shows=lambda out: out[:32] != [32] * 32),
    Case("barrier_counts_differ", 1, 64, says="BARRIER 1: "),
    Case("thread_goes_before_barrier", 1, 64, says="DEADLOCK"),
    Case("barriers_crossed", 1, 64, says="DEADLOCK"),
    Case("barrier_votes_differ", 1, 64, says="BARRIER 0: "),
    Case("word_that_nobody_writes", 2, says="LIVELOCK", seeds=5),
    Case("patient_lanes", 8, 64, says="LIVELOCK", residency=0, seeds=8),
    Case("patient_blocks", 4, 64, says="LIVELOCK", seeds=8),
    Case("later_block", 4, says="LIVELOCK: all poll and nothing changes; f", residency=1, seeds=5),
    Case("spins_without_end", says="TOO LONG", seeds=5),
    Case("waits_for_the_clock", 1, 32, says="TOO LONG", seeds=40, is_rare=True),
    Case("deep_stack", says="STACK", seeds=5),
)  # fmt: skip

COPIES = (
    Case("copy_not_awaited", 1, 32, says="RACE"),
    Case("copy_of_another_lane", 1, 32, says="RACE"),
    Case("too_few_groups_awaited", 1, 32, says="RACE"),
    Case("copy_at_the_end", 1, 32, says="COPY: block 0 thread 0 ended and did not wait"),
    Case("two_copies_to_one_place", 1, 32, says="RACE"),
    Case("load_no_wait", 1, 32, says="RACE"),
    Case("load_wrong_phase", 1, 32, says="RACE"),
    Case("load_no_init", 1, 32, says="MBARRIER at shared memory +256: used before"),
    Case("load_no_fence_after_init", 1, 32, says="RACE"),
    Case("load_no_announcement", 1, 32, says="LIVELOCK", seeds=5),
    Case("load_one_arrival_more", 1, 32, says="MBARRIER: phase 0 has had its 1 arrivals"),
    Case(
        "load_overwritten",
        1,
        32,
        says=("MBARRIER at shared memory +256: overwritten by block 0", "RACE"),
    ),
    Case("load_no_wait_at_all", 1, 32, says="MBARRIER at shared memory +256: block 0 ended"),
    Case("load_too_few_bytes", 1, 32, says=("RACE", "LIVELOCK"), seeds=5),
    Case("fence_for_global", 1, 32, says="RACE"),
    Case("store_no_fence", 1, 32, says="RACE"),
    Case("store_no_syncwarp", 1, 32, says="RACE"),
    Case("store_no_wait_before_reuse", 1, 32, says="RACE"),
    Case("store_no_wait_at_end", 1, 32, says="COPY: block 0 thread 0 ended and did not wait"),
    Case("store_misaligned", 1, 32, says="MISALIGNED bulk copy of 100 bytes"),
    Case("store_awaited_reads_only", 1, 32, says="RACE"),
)

CASES = {"words": WORDS, "memory": MEMORY, "together": TOGETHER, "copies": COPIES}
