"""Merge sort on a GPU: which kernels, which template arguments, how tiles are cut. One table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpualgo._algorithms.merge_sort import parameters
from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.radix_sort.policy import WORDS, word
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import Parameters
from gpualgo._cuda.templates import functor

MOVED_BYTES = 16  # of values that travel with their keys; others are gathered at the end
MAX_GRID = 1 << 30
CUT_BYTES = 32  # MergeCut
# Of a multiprocessor that merges: with 64 and with 128 registers each. Half as many sort tiles.
THREADS, WIDE_THREADS = 1024, 512
VALUE_THREADS = 512  # of a block that sorts keys with values, at most

# Where several runs are cut: a block for each rank, with so many samples of all runs in a round, in
# so much shared memory at most, which need no attribute of a kernel.
CUT_THREADS, CUT_SAMPLES, CUT_SHARED = 512, 2048, 40 << 10
MAX_RUNS = 16
MAX_PARAMETERS = 3500  # bytes of pointers, of the 4096 that kernels take


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernels of merge_sort/ (MergeSortPolicy)."""

    block_threads: int
    items: int  # elements per thread

    @property
    def tile_items(self) -> int:
        """Return how many elements a tile has."""
        return self.block_threads * self.items

    def blocks_per_sm(self, key_bytes: int) -> int:
        """Return how many blocks are to share a multiprocessor, by the registers that they take."""
        return max(1, (THREADS if key_bytes <= 16 else WIDE_THREADS) // self.block_threads)

    def shared_bytes(self, key_bytes: int, is_ahead: bool = False) -> int:
        """Return the size of the kernels' shared memory, which check it."""
        places = self.tile_items + (1 - self.items % 2) * self.block_threads + 2 * self.items + 1
        size = places * key_bytes * (1 + is_ahead) + 2 * self.tile_items
        return -(-size // 64) * 64 + 64


# By the bytes of a key (up to). Odd numbers of elements, so that threads that read their own from
# shared memory meet in no bank; the longer a tile, the fewer passes. Of 2^28 float32 on an H200, by
# a < b: 512 x 17 13.7 ms, 1024 x 17 and 256 x 17 14.0, 512 x 19 13.5, but with other functions and
# with values much spills; with 128 registers a thread instead of 64 14.8, although nothing does.
LARGE = {
    4: Policy(512, 17),
    8: Policy(512, 9),
    16: Policy(256, 9),
    32: Policy(128, 9),
    64: Policy(128, 5),
    128: Policy(128, 3),
}
# Of these, tiles that are merged have less: more blocks, of which some load while others compare.
MERGE_THREADS = 256
# Fewer elements (up to): at most so many threads, so that more multiprocessors get tiles.
SMALLER = {1 << 17: 128, 1 << 20: 256}


def policy_of(
    num_items: int, key_bytes: int, shared_limit: int, has_values: bool = False
) -> Policy:
    """Return the policy for so many elements, of all rows together."""
    found = next(policy for most, policy in LARGE.items() if key_bytes <= most)
    if has_values:  # whose places take as many registers again
        found = replace(found, block_threads=min(VALUE_THREADS, found.block_threads))
    threads = next((n for most, n in SMALLER.items() if num_items <= most), found.block_threads)
    found = replace(found, block_threads=min(threads, found.block_threads))
    # Two blocks are to share a multiprocessor, whose memory is hardly more than one may have.
    while 2 * found.shared_bytes(key_bytes) > shared_limit and found.block_threads > 64:
        found = replace(found, block_threads=found.block_threads // 2)
    return found


def merging(sorting: Policy) -> Policy:
    """Return the policy of merges, of whose tiles one that is sorted has a whole number."""
    return replace(sorting, block_threads=min(MERGE_THREADS, sorting.block_threads))


def are_moved(sizes: Sequence[int]) -> bool:
    """Return whether values of these sizes travel with their keys."""
    return all(size in WORDS for size in sizes) and sum(sizes) <= MOVED_BYTES


def is_ahead(
    element: records.Element, values: Sequence[int], merging: Policy, async_bytes: int
) -> bool:
    """Return whether tiles to be merged are loaded while others are, past the registers.

    async_bytes: of shared memory that a block may have, where copies may do that (sm_80); else 0.
    Of 2^28 float32 on an H200, a sort of keys alone takes 14.8 ms so and 13.6 else, one of keys and
    values of 4 bytes 26.0 and 28.8.
    """
    if not values:
        return False
    fits = 2 * merging.shared_bytes(element.itemsize, is_ahead=True) <= async_bytes
    return fits and all(leaf.itemsize >= 4 for leaf in records.leaves(element))


def specs(
    order: Comparison, values: Sequence[int], policy: Policy, overlaps: bool, async_bytes: int
) -> tuple[Spec, Spec, Spec]:
    """Return the kernels that sort tiles, find splits and merge, of values of these sizes."""
    leaves, count = len(records.leaves(order.element)), max(1, len(values))
    tiles, merge = parameters.sort_tiles(leaves, count), parameters.merge(leaves, count)
    each, cut = words(values), merging(policy)
    ahead = is_ahead(order.element, values, cut, async_bytes)
    return (
        _spec("tiles.cuh", "sort_tiles", order, each, policy, (overlaps, False), tiles),
        _spec("merge.cuh", "merge_splits", order, str(count), cut, (overlaps, ahead), merge),
        _spec("merge.cuh", "merge", order, each, cut, (overlaps, ahead), merge),
    )


def samples_of(key_bytes: int) -> int:
    """Return how many samples of all runs a block has in a round."""
    return min(CUT_SAMPLES, CUT_SHARED // (key_bytes + 4) // 64 * 64)


def cut_bytes(key_bytes: int) -> int:
    """Return the shared memory of a block that cuts runs, which the kernel checks."""
    return samples_of(key_bytes) * (key_bytes + 4) + 64 * MAX_RUNS


def can_cut(leaves: int, runs: int) -> bool:
    """Return whether a kernel takes so many runs of elements with so many leaves."""
    return runs <= MAX_RUNS and 8 * leaves * runs <= MAX_PARAMETERS


def run_cuts(order: Comparison, runs: int, overlaps: bool) -> Spec:
    """Return the kernel that cuts so many runs."""
    key_bytes = order.element.itemsize
    arguments = CUT_THREADS, samples_of(key_bytes), cut_bytes(key_bytes), str(overlaps).lower()
    expression = (
        f"gpualgo::run_cuts_kernel<gpualgo::RunCutsPolicy<{', '.join(map(str, arguments))}>, "
        f"{order_name(order)}, {records.cpp_name(order.element)}, {runs}>"
    )
    takes = parameters.run_cuts(len(records.leaves(order.element)), runs)
    return Spec("merge_sort/cuts.cuh", expression, takes)


def _spec(
    header: str, name: str, order: Comparison, values: str, policy: Policy,
    flags: tuple[bool, bool], takes: Parameters,
) -> Spec:  # fmt: skip
    key_bytes = order.element.itemsize
    arguments = (
        policy.block_threads, policy.items, policy.blocks_per_sm(key_bytes),
        policy.shared_bytes(key_bytes, flags[1]), *(str(flag).lower() for flag in flags),
    )  # fmt: skip
    expression = (
        f"gpualgo::{name}_kernel<gpualgo::MergeSortPolicy<{', '.join(map(str, arguments))}>, "
        f"{order_name(order)}, {records.cpp_name(order.element)}, {values}>"
    )
    header, op, args = f"merge_sort/{header}", order.op, (order.element, order.element)
    if op is None or build.is_functor(op, args, BOOL):
        return Spec(header, expression, takes)
    return Spec(header, expression, takes, op, args, BOOL)


def order_name(order: Comparison) -> str:
    """Return what compares elements, as kernels know it (parts/order.cuh)."""
    if order.op is None:
        falling = sum(1 << i for i, way in enumerate(order.ways) if way)
        return f"gpualgo::ByValue<{falling}>"
    less = functor(order.op, (order.element, order.element), BOOL)
    return f"gpualgo::ByFunction<{less}, {str(order.is_turned).lower()}>"


def words(sizes: Sequence[int]) -> str:
    """Return the C++ type of values of these sizes that travel together."""
    found = [word(size) for size in sizes]
    if len(found) < 2:
        return found[0] if found else "gpualgo::NoValues"
    return f"gpualgo::Tuple<{', '.join(found)}>"
