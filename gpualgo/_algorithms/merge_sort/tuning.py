"""Tuning table of merge sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpualgo._algorithms.merge_sort.problem import BOOL, Comparison
from gpualgo._algorithms.radix_sort.problem import WORD_SIZES
from gpualgo._algorithms.radix_sort.tuning import word
from gpualgo._base import records
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.templates import Applied, kernel_spec

# --- Tuning of the GPU merge sort: kernels, template arguments, tile sizes.

MOVED_BYTES = 16  # of values that are moved with their keys; others are gathered at the end
MAX_GRID = 1 << 30
CUT_BYTES = 32  # MergeCut
CACHED_BYTES = 32 << 20  # most bytes of a pass that caches serve
MAX_OVERLAPPED = 1 << 17  # elements; of more, blocks that wait take the place of those that work
# Threads of a merging multiprocessor, with 64 and 128 registers each; half as many if it sorts.
THREADS, WIDE_THREADS = 1024, 512
VALUE_THREADS = 512  # most threads of a block that sorts keys with values

# Cuts of several runs: one block per chunk, with at most CUT_SAMPLES samples of all runs in a
# round, in at most CUT_SHARED bytes of shared memory, which need no kernel attribute.
CUT_THREADS, CUT_SAMPLES, CUT_SHARED = 1024, 1024, 40 << 10
CUT_GROUPS = 32  # samples of a piece, which one block merges
CHUNKS = 64  # at most, of much data
MAX_RUNS = 16
MAX_PARAMETERS = 3300  # bytes of pointers, of the 4096 bytes of kernel parameters


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernels of merge_sort/ (MergeSortPolicy)."""

    block_threads: int
    items: int  # elements per thread

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.items

    def blocks_per_sm(self, key_bytes: int) -> int:
        """Return how many blocks share a multiprocessor, given their registers."""
        return max(1, (THREADS if key_bytes <= 16 else WIDE_THREADS) // self.block_threads)

    def cpp(self, key_bytes: int, shared_bytes: int, *flags: bool) -> Cpp:
        """Return the C++ type; the kernels check `shared_bytes`.

        `flags`: whether launches overlap, tiles are prefetched, and blocks find their cuts.
        """
        blocks = self.blocks_per_sm(key_bytes)
        return cpp("MergeSortPolicy", self.block_threads, self.items, blocks, shared_bytes, *flags)

    def shared_bytes(self, key_bytes: int, is_ahead: bool = False) -> int:
        """Return the size of the kernels' shared memory, which the kernels check."""
        items = self.tile_items + (1 - self.items % 2) * self.block_threads + 2 * self.items + 1
        size = items * key_bytes * (1 + is_ahead) + 2 * self.tile_items
        return -(-size // 64) * 64 + 64


# By the maximum bytes of a key. An odd number of items per thread avoids bank conflicts in shared
# memory; longer tiles need fewer passes. 2^28 float32 on an H200, by a < b: 512 x 17 13.7 ms, 1024
# x 17 and 256 x 17 14.0, 512 x 19 13.5, but other functions and values spill; 128 registers per
# thread instead of 64 14.8, although nothing spills. Later, with merges by 128 threads: 512 x 17
# 13.2 (256 threads) and 13.5, 512 x 21 12.7, 384 x 27 (85 registers) 12.8; but 2^26 pairs take 1.03
# and 1.05 of the time.
LARGE = {
    4: Policy(512, 17),
    8: Policy(512, 9),
    16: Policy(256, 9),
    32: Policy(128, 9),
    64: Policy(128, 5),
    128: Policy(128, 3),
}
# Merge tiles have fewer threads than LARGE: with more blocks, some load while others compare.
MERGE_THREADS = 256
# By the maximum number of elements: fewer threads, so that more multiprocessors get tiles.
SMALLER = {1 << 17: 128, 1 << 19: 256}


def policy_of(
    num_items: int, key_bytes: int, shared_limit: int, has_values: bool = False
) -> Policy:
    """Return the policy for `num_items` elements of all rows together."""
    policy = next(policy for most, policy in LARGE.items() if key_bytes <= most)
    if has_values:  # their positions need as many registers again
        policy = replace(policy, block_threads=min(VALUE_THREADS, policy.block_threads))
    threads = next((n for most, n in SMALLER.items() if num_items <= most), policy.block_threads)
    policy = replace(policy, block_threads=min(threads, policy.block_threads))
    # Two blocks share a multiprocessor, whose memory is little more than the limit of one block.
    while 2 * policy.shared_bytes(key_bytes) > shared_limit and policy.block_threads > 64:
        policy = replace(policy, block_threads=policy.block_threads // 2)
    return policy


def merging(sorting: Policy) -> Policy:
    """Return the policy of merges; their tiles divide a sorted tile."""
    return replace(sorting, block_threads=min(MERGE_THREADS, sorting.block_threads))


def are_moved(sizes: Sequence[int]) -> bool:
    return all(size in WORD_SIZES for size in sizes) and sum(sizes) <= MOVED_BYTES


def prefetches(
    element: records.Element, values: Sequence[int], merging: Policy, async_bytes: int
) -> bool:
    """Return whether merge tiles are prefetched by asynchronous copies while others are merged.

    async_bytes: shared memory per block, 0 without asynchronous copies (before sm_80). 2^28 float32
    on an H200: a sort of keys takes 14.8 ms with them and 13.6 without, one with values of 4 bytes
    26.0 and 28.8.
    """
    if not values:
        return False
    fits = 2 * merging.shared_bytes(element.itemsize, is_ahead=True) <= async_bytes
    return fits and all(field.itemsize >= 4 for field in records.field_dtypes(element))


def specs(
    order: Comparison, values: Sequence[int], policy: Policy, overlaps: bool, async_bytes: int,
    num_items: int,
) -> tuple[Spec, ...]:  # fmt: skip
    """Return the kernels that sort tiles, find splits if one does, and merge."""
    tile, key_bytes = merging(policy), order.element.itemsize
    is_async = prefetches(order.element, values, tile, async_bytes)
    # Blocks find the cuts of their tiles, without a kernel before. us of float32, against two
    # kernels: 2^20 60 and 100, 2^22 187 and 216, 2^24 867 and 807; with values and prefetched tiles
    # 2^20 82 and 123, 2^24 1430 and 1460, 2^26 6320 and 6020.
    is_found = num_items * (key_bytes + sum(values)) <= (1 + 3 * is_async) * CACHED_BYTES
    sorting = policy.cpp(key_bytes, policy.shared_bytes(key_bytes), overlaps, False)
    shared = tile.shared_bytes(key_bytes, is_async)
    merge = tile.cpp(key_bytes, shared, overlaps, is_async, is_found)
    types, count = (order_type(order), order.element), max(1, len(values))
    splits = kernel_spec("merge_sort/merge.cuh", "merge_splits_kernel", merge, *types, count)
    return (
        kernel_spec("merge_sort/tiles.cuh", "sort_tiles_kernel", sorting, *types, words(values)),
        *([] if is_found else [splits]),
        kernel_spec("merge_sort/merge.cuh", "merge_kernel", merge, *types, words(values)),
    )


def samples_of(key_bytes: int) -> int:
    """Return how many samples of all runs a block has in a round."""
    return min(CUT_SAMPLES, CUT_SHARED // (key_bytes + 4) // 64 * 64)


def can_merge(fields: int, runs: int, values: Sequence[int]) -> bool:
    """Return whether a kernel merges so many runs with so many fields, values among them."""
    return runs <= MAX_RUNS and 8 * fields * runs <= MAX_PARAMETERS and are_moved(values)


class RunPieces(NamedTuple):
    """How merged runs are divided into chunks, and each chunk into pieces, by samples."""

    policy: Policy
    ring: int  # elements of each run that a block holds; a power of two
    samples: int  # of a chunk
    shared_bytes: int  # of a block that merges a piece

    @property
    def pieces_per_chunk(self) -> int:
        return self.samples // CUT_GROUPS + 1

    def shift(self, num_items: int) -> int:
        """Return how far apart samples are, as a power of two."""
        wanted = num_items // (CHUNKS * self.samples), self.policy.tile_items // CUT_GROUPS
        return max(wanted).bit_length()


def run_pieces(key_bytes: int, values: Sequence[int], runs: int, shared_limit: int) -> RunPieces:
    policy = merging(next(policy for most, policy in LARGE.items() if key_bytes <= most))

    def ring() -> int:
        room = policy.tile_items - (runs + 1) // 2 * policy.items  # they begin where threads do
        return 1 << (room // runs).bit_length() - 1

    def shared_bytes() -> int:
        # Padded values, and their order twice, of which the policy counts one.
        value_bytes = len(values) * max(values) * runs * ring() if values else 0
        size = value_bytes + 2 * policy.tile_items * bool(values)
        size += (runs * ring() + policy.items) * key_bytes + 64 * runs + 64
        return size + policy.shared_bytes(key_bytes)

    while 2 * shared_bytes() > shared_limit and policy.block_threads > 64:
        policy = replace(policy, block_threads=policy.block_threads // 2)
    return RunPieces(policy, ring(), samples_of(key_bytes), shared_bytes())


def merge_runs(
    order: Comparison, values: Sequence[int], index_bytes: int, runs: int, pieces: RunPieces,
    overlaps: bool, is_async: bool,
) -> tuple[Spec, Spec, Spec]:  # fmt: skip
    """Return the kernels that cut runs, cut pieces and merge them.

    `index_bytes`: the size of the integers as which positions are written, or 0.
    """
    key_bytes, count, value = order.element.itemsize, max(1, len(values)), words(values)
    cutting = cpp(
        "RunCutsPolicy", CUT_THREADS, pieces.samples, CUT_GROUPS, cut_bytes(key_bytes), overlaps
    )
    policy = pieces.policy.cpp(key_bytes, pieces.shared_bytes, overlaps, is_async)
    types = order_type(order), order.element
    return (
        kernel_spec("merge_sort/cuts.cuh", "run_cuts_kernel", cutting, *types, count, runs),
        kernel_spec("merge_sort/cuts.cuh", "piece_cuts_kernel", cutting, *types, count, runs),
        kernel_spec(
            "merge_sort/runs.cuh", "merge_runs_kernel", policy, pieces.ring.bit_length() - 1,
            *types, value, word(index_bytes) if index_bytes else value, runs,
        ),
    )  # fmt: skip


def cut_bytes(key_bytes: int) -> int:
    """Return the shared memory of a block that cuts runs, which the kernel checks."""
    return samples_of(key_bytes) * (key_bytes + 5) + 64 * MAX_RUNS


def order_type(order: Comparison) -> Cpp:
    """Return the C++ type that compares elements (parts/order.cuh)."""
    if order.op is None:
        descending_mask = sum(
            1 << i for i, is_descending in enumerate(order.directions) if is_descending
        )
        return cpp("ByValue", descending_mask)
    less = Applied(order.op, (order.element, order.element), BOOL)
    return cpp("ByFunction", less, order.is_turned)


def words(sizes: Sequence[int]) -> Cpp | str:
    """Return the C++ type of values of these sizes, which are moved together."""
    types = [word(size) for size in sizes]
    if len(types) < 2:
        return types[0] if types else "gpualgo::NoValues"
    return cpp("Tuple", *types)
