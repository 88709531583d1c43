"""Kernel parameters and tuning table of sorts of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from gpualgo._algorithms.merge_sort import tuning as merge_sort
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.tuning import CUT_BYTES, MAX_GRID, are_moved, order_name, words
from gpualgo._base import records
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.templates import WARP

# --- Kernel parameters of the segmented sort (segmented_sort/*.cuh).

SPANS_PARAMS = Parameters(
    "SegmentSpansParams",
    heads=POINTER, bounds=POINTER, edges=POINTER, spans=POINTER, num_items=I64, num_tiles=I64,
)  # fmt: skip


@cache
def tiles_params(leaves: int, values: int) -> Parameters:
    """Return SegmentTilesParams for `leaves` key fields and `values` value fields."""
    buffer = Parameters("SegmentBuffer", keys=POINTER[leaves], values=POINTER[values])
    return Parameters(
        "SegmentTilesParams",
        keys=POINTER[leaves], values=POINTER[values], home=buffer, side=buffer, heads=POINTER,
        bounds=POINTER, spans=POINTER, has_odd=POINTER, num_items=I64, num_tiles=I64,
    )  # fmt: skip


@cache
def merge_params(leaves: int, values: int) -> Parameters:
    """Return SegmentMergeParams for `leaves` key fields and `values` value fields."""
    return Parameters(
        "SegmentMergeParams",
        spans=POINTER,
        count=POINTER,
        has_odd=POINTER,
        merge=merge_sort.merge_params(leaves, values),
        num_tiles=I64,
        rounds_left=I64,
    )


# --- Tuning of the GPU segmented sort: kernels, template arguments, tile sizes.
#
# The result depends neither on the tiling nor on the order of comparisons.

__all__ = ["CUT_BYTES", "MAX_GRID", "are_moved"]

SPAN_THREADS = 256  # of the kernels that find spans
EDGES_BYTES, SPAN_BYTES, COUNT_BYTES = 4, 16, 4  # TileEdges, SegmentSpan, round counter
NO_ROWS = {  # unused fields of MergeParams: merge tiles come from a list
    "num_tiles": 0, "row_items": 0, "first_items": 0, "second_items": 0, "second_begin": 0,
    "tiles_per_row": 1, "tiles_per_pair": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernels that sort tiles and merge them."""

    block_threads: int
    items: int  # elements per thread; a power of two
    blocks_per_sm: int
    merge_threads: int  # per merge tile, whose size divides that of a sorted tile
    merge_each: int  # elements of a merge thread; an odd number needs no padding
    merge_blocks: int

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.items

    @property
    def merge_items(self) -> int:
        """Return the size of a merge tile."""
        return self.merge_threads * self.merge_each

    def shared_bytes(self, key_bytes: int, has_values: bool) -> int:
        """Return the size of SegmentTileSort::Shared, which checks it."""
        items = self.tile_items + self.block_threads + self.items + 2
        size = items * (key_bytes + 2 * has_values) + self.tile_items // 8
        return _up(size + 3 * self.block_threads * 4 // WARP + 64, 64)

    @property
    def merging(self) -> merge_sort.Policy:
        """Return the policy of merges."""
        return merge_sort.Policy(self.merge_threads, self.merge_each)


# By the maximum bytes of a key, and whether there are values. SHORT is for segments with a short
# mean, which one thread best holds whole; LONG for longer ones, where more items per thread mean
# fewer searches. 2^28 float32 on an H200, ms, in segments of 16, 32, 256, 4096 and 65536: 256 x 16
# 0.86, 1.2, 2.3, 3.5, 6.2; 256 x 32 1.5, 0.85, 1.7, 3.0, 5.2, including 0.71 for a round of merges
# (256 x 16 0.79, 256 x 8 0.91).
SHORT = {
    (4, False): Policy(256, 16, 4, 256, 16, 4),
    (4, True): Policy(256, 16, 4, 256, 8, 6),
    (8, False): Policy(256, 16, 3, 256, 8, 4),
    (8, True): Policy(256, 16, 3, 256, 8, 3),
    (16, False): Policy(256, 8, 2, 128, 8, 4),
    (16, True): Policy(256, 8, 2, 128, 8, 3),
    (32, False): Policy(256, 4, 1, 128, 4, 2),
    (32, True): Policy(256, 4, 1, 128, 4, 2),
    (64, False): Policy(128, 2, 1, 64, 2, 2),
    (64, True): Policy(128, 2, 1, 64, 2, 2),
}
LONG = SHORT | {
    (4, False): Policy(256, 32, 3, 256, 32, 2),
    (4, True): Policy(256, 32, 2, 256, 8, 6),
    (8, False): Policy(256, 32, 2, 256, 16, 3),
}
LONG_MEAN = 24
WIDE_VALUES = 8  # bytes; with wider values blocks have more registers


def policy_of(
    num_items: int, num_segments: int, key_bytes: int, values: Sequence[int], shared_limit: int
) -> Policy:
    """Return the policy for `num_items` elements, with values of these sizes."""
    has_values = bool(values)
    table = LONG if num_items >= LONG_MEAN * num_segments else SHORT
    key_limit = min(size for size, _ in table if key_bytes <= size)
    policy = table[(key_limit, has_values)]
    if sum(values) > WIDE_VALUES:
        policy = replace(policy, blocks_per_sm=max(1, policy.blocks_per_sm - 1))
    while policy.shared_bytes(key_bytes, has_values) > shared_limit:
        policy = _narrower(policy, policy.block_threads // 2)
    return policy


def _narrower(policy: Policy, threads: int) -> Policy:
    """Return the policy with at most `threads` threads, for sorting and for merging."""
    threads = min(policy.block_threads, threads)
    return replace(policy, block_threads=threads, merge_threads=min(policy.merge_threads, threads))


def span_specs(policy: Policy, overlaps: bool) -> tuple[Spec, Spec]:
    """Return the kernels that find the segments across tiles."""
    types = f"<{SPAN_THREADS}, {policy.merge_items}, {str(overlaps).lower()}>"
    header, params = "segmented_sort/spans.cuh", SPANS_PARAMS
    return (
        Spec(header, f"gpualgo::segment_edges_kernel{types}", params),
        Spec(header, f"gpualgo::segment_spans_kernel{types}", params),
    )


def tiles_spec(order: Comparison, values: Sequence[int], policy: Policy, overlaps: bool) -> Spec:
    """Return the kernel that sorts tiles, with values of these sizes."""
    leaves, count = len(records.field_dtypes(order.element)), max(1, len(values))
    key_bytes = order.element.itemsize
    arguments = (
        policy.block_threads, policy.items, policy.blocks_per_sm,
        policy.shared_bytes(key_bytes, bool(values)), policy.merge_items, str(overlaps).lower(),
    )  # fmt: skip
    return Spec(
        "segmented_sort/tiles.cuh",
        f"gpualgo::segment_tiles_kernel<gpualgo::SegmentTilePolicy"
        f"<{', '.join(map(str, arguments))}>, {_types(order)}, {words(values)}>",
        tiles_params(leaves, count),
    )


def merge_specs(
    order: Comparison, values: Sequence[int], policy: Policy, overlaps: bool, async_bytes: int
) -> tuple[Spec, Spec]:
    """Return the kernels that find splits and merge, with values of these sizes."""
    leaves, count = len(records.field_dtypes(order.element)), max(1, len(values))
    is_async = merge_sort.prefetches(order.element, values, policy.merging, async_bytes)
    shared = policy.merging.shared_bytes(order.element.itemsize, is_async)
    arguments = (
        policy.merge_threads, policy.merge_each, policy.merge_blocks, shared,
        *(str(flag).lower() for flag in (overlaps, is_async)),
    )  # fmt: skip
    kind = f"gpualgo::MergeSortPolicy<{', '.join(map(str, arguments))}>"
    header, params = "segmented_sort/merge.cuh", merge_params(leaves, count)
    types = _types(order)
    return (
        Spec(
            header,
            f"gpualgo::segment_splits_kernel<{kind}, {policy.tile_items}, {types}, {count}>",
            params,
        ),
        Spec(
            header,
            f"gpualgo::segment_merge_kernel<{kind}, {types}, {words(values)}>",
            params,
        ),
    )


def _types(order: Comparison) -> str:
    return f"{order_name(order)}, {records.cpp_name(order.element)}"


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
