"""Plans of the segmented sort on a GPU: mark heads, sort tiles, then merge across tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpualgo._algorithms.merge_sort import tuning as merge_sort
from gpualgo._algorithms.merge_sort.cuda import Buffer, KeysAndValues
from gpualgo._algorithms.merge_sort.problem import Comparison
from gpualgo._algorithms.merge_sort.tuning import CUT_BYTES, order_type, words
from gpualgo._algorithms.segmented_sort.problem import SegmentedSort
from gpualgo._algorithms.segments import cuda as segments
from gpualgo._arrays.view import View
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.plan import NONE, Clear, Plan
from gpualgo._cuda.templates import WARP, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._pipeline import checks, planners

# --- Tuning of the GPU segmented sort: kernels, template arguments, tile sizes.
#
# The result depends neither on the tiling nor on the order of comparisons.

SPAN_THREADS = 256  # of the kernels that find spans
EDGES_BYTES, SPAN_BYTES, COUNTS_BYTES = 4, 16, 256  # TileEdges, SegmentSpan, SegmentCounts


@dataclass(frozen=True)
class Policy:
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
        return self.merge_threads * self.merge_each

    def shared_bytes(self, key_bytes: int, has_values: bool) -> int:
        """Return the size of SegmentTileSort::Shared, which checks it."""
        items = self.tile_items + self.block_threads + self.items + 2
        size = items * (key_bytes + 2 * has_values) + self.tile_items // 8
        return _up(size + 3 * self.block_threads * 4 // WARP + 64, 64)

    @property
    def merging(self) -> merge_sort.Policy:
        return merge_sort.Policy(self.merge_threads, self.merge_each)


# By the maximum bytes of a key, and whether there are values. SHORT is for segments with a short
# mean, which one thread best holds whole; LONG for longer ones, where more items per thread mean
# fewer searches. 2^28 float32 on an H200, ms, in segments of 16, 32, 256, 4096 and 65536: 256 x 16
# 0.86, 1.2, 2.3, 3.5, 6.2; 256 x 32 1.5, 0.85, 1.7, 3.0, 5.2, including 0.71 for a round of merges
# (256 x 16 0.79, 256 x 8 0.91).
SHORT = {
    (4, False): Policy(256, 16, 4, 256, 16, 4),
    (4, True): Policy(256, 16, 4, 256, 8, 5),
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
    (4, True): Policy(256, 32, 2, 256, 8, 5),
    (8, False): Policy(256, 32, 2, 256, 16, 3),
}
LONG_MEAN = 24
WIDE_VALUES = 8  # bytes; with wider values blocks have more registers


def policy_of(
    num_items: int, num_segments: int, key_bytes: int, values: Sequence[int], shared_limit: int
) -> Policy:
    has_values = bool(values)
    table = LONG if num_items >= LONG_MEAN * num_segments else SHORT
    key_limit = min(size for size, _ in table if key_bytes <= size)
    policy = table[(key_limit, has_values)]
    if sum(values) > WIDE_VALUES:
        policy = replace(policy, blocks_per_sm=max(1, policy.blocks_per_sm - 1))
    while policy.shared_bytes(key_bytes, has_values) > shared_limit:
        threads = policy.block_threads // 2
        merge_threads = min(policy.merge_threads, threads)
        policy = replace(policy, block_threads=threads, merge_threads=merge_threads)
    return policy


def span_specs(policy: Policy, overlaps: bool) -> list[Spec]:
    threads, items = SPAN_THREADS, policy.merge_items
    kinds = {"edges": (threads, items), "spans": (threads, items, policy.tile_items)}
    return [
        kernel_spec("segmented_sort/spans.cuh", f"segment_{name}_kernel", *kind, overlaps)
        for name, kind in kinds.items()
    ]


def tiles_spec(order: Comparison, values: Sequence[int], policy: Policy, overlaps: bool) -> Spec:
    tuned = cpp(
        "SegmentTilePolicy", policy.block_threads, policy.items, policy.blocks_per_sm,
        policy.shared_bytes(order.element.itemsize, bool(values)), policy.merge_items, overlaps,
    )  # fmt: skip
    types = tuned, order_type(order), order.element, words(values)
    return kernel_spec("segmented_sort/tiles.cuh", "segment_tiles_kernel", *types)


def merge_spec(order: Comparison, values: Sequence[int], policy: Policy, async_bytes: int) -> Spec:
    is_async = merge_sort.prefetches(order.element, values, policy.merging, async_bytes)
    shared = policy.merging.shared_bytes(order.element.itemsize, is_async)
    sizes = policy.merge_threads, policy.merge_each, policy.merge_blocks, shared
    return kernel_spec(
        "segmented_sort/merge.cuh", "segment_merge_kernel",
        cpp("MergeSortPolicy", *sizes, False, is_async), policy.tile_items, order_type(order),
        order.element, words(values),
    )  # fmt: skip


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


@planners.for_cuda.register(SegmentedSort)
def _(problem: SegmentedSort, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, or of keys and values; there are some."""
    checks.aligned(views[problem.num_keys], "offsets", problem.where)
    builder = _Builder(problem, views, targets)
    builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(KeysAndValues):
    def __init__(
        self, problem: SegmentedSort, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, problem.row_items, views, targets)
        self.order: Comparison = problem.order
        self.num_keys, self.offsets = problem.num_keys, views[problem.num_keys]
        del self._sources[self.num_keys]  # offsets are not sorted

    def _add_rows(self, home: Buffer, sizes: list[int], is_moved: bool) -> None:
        source = self._source(home, is_moved)
        device, num_items = gpu.get(self.device), self._row_items
        num_segments, key_bytes = max(1, self.offsets.shape[0] - 1), self.order.element.itemsize
        tile = policy_of(num_items, num_segments, key_bytes, sizes, device.shared_limit)
        num_tiles, num_parts = -(-num_items // tile.tile_items), -(-num_items // tile.merge_items)
        counts_at = aligned(segments.marks_bytes(num_items))
        lengths = [counts_at + COUNTS_BYTES]
        if num_tiles > 1:
            lengths += [
                SPAN_BYTES * (num_parts + 1), 2 * CUT_BYTES * num_parts,
                EDGES_BYTES * num_parts,
                *(num_items * size for size in [*self._key_sizes, *sizes]),
            ]  # fmt: skip
        marks, *others = self._workspace_pieces(lengths)
        spans, cuts, edges, *scratch = others or [NONE] * (3 + self.num_keys)
        side = Buffer(
            tuple(scratch[: self.num_keys]),
            tuple(scratch[self.num_keys :]) or (NONE,) * len(home.values),
        )
        heads, offsets = segments.slots_of_marks(marks), self._slots.sources[self.num_keys]
        marked = {**heads, "firsts": NONE}
        mark_launch = segments.launch_marks(self.offsets, offsets, num_items, marked)
        self.steps += [Clear(marks, lengths[0]), mark_launch]
        common = {"spans": spans, "counts": (marks, counts_at)}
        if num_tiles > 1:
            self._add_spans(tile, num_parts, {**heads, "edges": edges, **common})
        common |= {"home": home.run, "side": side.run}
        self.steps.append(
            launch(
                tiles_spec(self.order, sizes, tile, device.may_overlap), self.device, num_tiles,
                tile.block_threads, {**source.run, **heads, **common},
                shared_bytes=tile.shared_bytes(key_bytes, bool(sizes)),
                overlaps=device.may_overlap, num_items=num_items, num_tiles=num_tiles,
            )
        )  # fmt: skip
        if num_tiles > 1:
            self._add_merges(tile, sizes, num_parts, {**common, "cuts": cuts})

    def _add_merges(
        self, tile: Policy, sizes: list[int], num_parts: int, slots: dict[str, Any]
    ) -> None:
        """Add the launch of all rounds of merges, whose blocks wait for each other."""
        device, element = gpu.get(self.device), self.order.element
        async_bytes = device.shared_limit if device.capability >= (8, 0) else 0
        is_async = merge_sort.prefetches(element, sizes, tile.merging, async_bytes)
        grid = min(2 * num_parts, device.num_sms * tile.merge_blocks)
        self.steps.append(
            launch(
                merge_spec(self.order, sizes, tile, async_bytes), self.device, grid,
                tile.merge_threads, slots, groups=1, num_tiles=num_parts,
                shared_bytes=tile.merging.shared_bytes(element.itemsize, is_async),
            )
        )  # fmt: skip

    def _add_spans(self, tile: Policy, num_parts: int, slots: dict[str, Any]) -> None:
        """Add the steps that find the segments that span merge tiles."""
        overlaps, threads = gpu.get(self.device).may_overlap, SPAN_THREADS
        specs = span_specs(tile, overlaps)
        grids = -(-num_parts // (threads // WARP)), -(-(num_parts + 1) // threads)
        build.kernels(specs, self.device)
        self.steps += [
            launch(
                spec, self.device, grid, threads, slots, overlaps=overlaps,
                num_items=self._row_items, num_tiles=num_parts,
            )
            for spec, grid in zip(specs, grids, strict=True)
        ]  # fmt: skip
