"""Plans of the segmented sort on a GPU: mark heads, sort tiles, then merge across tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.merge_sort import tuning as merge_sort
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.cuda import Buffer
from gpualgo._algorithms.radix_sort.cuda_passes import Builder, position_bytes
from gpualgo._algorithms.segmented_sort import tuning
from gpualgo._algorithms.segmented_sort.problem import SegmentedSort
from gpualgo._algorithms.segments import cuda as segments
from gpualgo._arrays.view import View
from gpualgo._cuda import build
from gpualgo._cuda.plan import NONE, Clear, Launch, Plan
from gpualgo._cuda.templates import WARP
from gpualgo._driver import device as gpu
from gpualgo._driver.pools import aligned
from gpualgo._pipeline import checks, planners


@planners.for_cuda.register(SegmentedSort)
def _(problem: SegmentedSort, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, or of keys and values; there are some."""
    checks.aligned(views[problem.num_keys], "offsets", problem.where)
    builder = _Builder(problem, views, targets)
    builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(
        self, problem: SegmentedSort, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, problem.num_items, views, targets)
        self.order: Comparison = problem.order
        self.num_keys, self.offsets = problem.num_keys, views[problem.num_keys]
        del self._sources[self.num_keys]  # offsets are not sorted

    def add(self) -> None:
        """Sort keys, and values with them; values that are not moved are gathered at the end."""
        count = self.num_keys
        pairs = list(zip(self._sources, self._targets, strict=True))
        key_slots = [self._gather_source(source, target)[:2] for source, target in pairs[:count]]
        values = pairs[count:]
        sizes = [source.itemsize for source, _ in values]
        is_moved, index_bytes, indices = tuning.are_moved(sizes), 0, NONE
        if is_moved:
            value_slots = [self._gather_source(source, target)[:2] for source, target in values]
        else:
            index_bytes = position_bytes(self._row_items)
            indices = self._scratch(self._row_items * index_bytes)
            value_slots, sizes = [(NONE, indices)], [index_bytes]
        key_src, key_dst = zip(*key_slots, strict=True)
        val_src, val_dst = zip(*value_slots, strict=True) if value_slots else ((NONE,), (NONE,))
        self._sort_segments(Buffer(key_src, val_src), Buffer(key_dst, val_dst), sizes)
        for (_, target), slot in zip(pairs, key_dst, strict=False):
            self._scatter(target, slot)
        if is_moved:
            for (_, target), slot in zip(values, val_dst, strict=False):
                self._scatter(target, slot)
            return
        for source, target in values:
            self._scatter(target, self._gather_items(source, target, indices, index_bytes))

    def _sort_segments(self, source: Buffer, home: Buffer, sizes: list[int]) -> None:
        """Add the steps that sort dense rows into `home`; `sizes`: those of values."""
        device, num_items = gpu.get(self.device), self._row_items
        num_segments, key_bytes = max(1, self.offsets.shape[0] - 1), self.order.element.itemsize
        tile = tuning.policy_of(num_items, num_segments, key_bytes, sizes, device.shared_limit)
        num_tiles, num_parts = -(-num_items // tile.tile_items), -(-num_items // tile.merge_items)
        num_rounds = (num_tiles - 1).bit_length()
        counts_at = aligned(segments.marks_bytes(num_items))
        lengths = [counts_at + (num_rounds + 1) * tuning.COUNT_BYTES]
        if num_rounds:
            lengths += [
                tuning.SPAN_BYTES * (num_parts + 1), 2 * tuning.CUT_BYTES * num_parts,
                tuning.EDGES_BYTES * num_parts,
                *(num_items * size for size in [*self._key_sizes, *sizes]),
            ]  # fmt: skip
        marks, *others = self._workspace_pieces(lengths)
        spans, cuts, edges, *scratch = others or [NONE] * (3 + self.num_keys)
        side = Buffer(
            tuple(scratch[: self.num_keys]),
            tuple(scratch[self.num_keys :]) or (NONE,) * len(home.values),
        )
        heads = segments.slots_of_marks(marks)
        self.steps += [
            Clear(marks, lengths[0]),
            segments.launch_marks(
                self.offsets, self._slots.source(self.num_keys), num_items, heads
            ),
        ]
        if num_rounds:
            self._add_spans(tile, num_parts, {**heads, "edges": edges, "spans": spans})
        spec = tuning.tiles_spec(self.order, sizes, tile, device.may_overlap)
        slots = {
            **source.run, "home": home.run, "side": side.run, **heads, "spans": spans,
            "has_odd": (marks, counts_at),
        }  # fmt: skip
        self.steps.append(
            Launch(
                build.kernel(spec, self.device), num_tiles, tile.block_threads,
                spec.parameters.pack(num_items=num_items, num_tiles=num_tiles), self.device, slots,
                shared_bytes=tile.shared_bytes(key_bytes, bool(sizes)),
                overlaps=device.may_overlap,
            )
        )  # fmt: skip
        if num_rounds:
            common = {"spans": spans, "has_odd": (marks, counts_at)}
            self._add_rounds(
                tile, sizes, num_parts, num_rounds, (home, side), (marks, counts_at), cuts, common
            )

    def _add_rounds(
        self, tile: tuning.Policy, sizes: list[int], num_parts: int, num_rounds: int,
        buffers: tuple[Buffer, Buffer], counts: tuple[int, int], cuts: int, common: dict[str, Any],
    ) -> None:  # fmt: skip
        """Add the rounds of merges; the last one writes the first buffer."""
        device, element = gpu.get(self.device), self.order.element
        async_bytes = device.shared_limit if device.capability >= (8, 0) else 0
        specs = tuning.merge_specs(self.order, sizes, tile, device.may_overlap, async_bytes)
        kernels = build.kernels(specs, self.device)
        max_blocks = device.num_sms * tile.merge_blocks
        grids = -(-4 * num_parts // tile.merge_threads), min(2 * num_parts, max_blocks)
        is_async = merge_sort.prefetches(element, sizes, tile.merging, async_bytes)
        shared = 0, tile.merging.shared_bytes(element.itemsize, is_async)
        marks, counts_at = counts
        for remaining in range(num_rounds, 0, -1):
            source, target = buffers[remaining % 2], buffers[1 - remaining % 2]
            packed = specs[0].parameters.pack(
                num_tiles=num_parts, rounds_left=remaining, merge=tuning.NO_ROWS
            )
            merged = {
                "first": source.run, "second": source.run, "output_keys": target.keys,
                "output_values": target.values, "cuts": cuts,
            }  # fmt: skip
            count = marks, counts_at + tuning.COUNT_BYTES * remaining
            self.steps += [
                Launch(
                    kernel, grid, tile.merge_threads, packed, self.device,
                    {**common, "count": count, "merge": merged}, shared_bytes=size,
                    overlaps=device.may_overlap,
                )
                for kernel, grid, size in zip(kernels, grids, shared, strict=True)
            ]  # fmt: skip

    @property
    def _key_sizes(self) -> list[int]:
        return [source.itemsize for source in self._sources[: self.num_keys]]

    def _add_spans(self, tile: tuning.Policy, num_parts: int, slots: dict[str, Any]) -> None:
        """Add the steps that find the segments that span merge tiles."""
        overlaps = gpu.get(self.device).may_overlap
        specs = tuning.span_specs(tile, overlaps)
        packed = specs[0].parameters.pack(num_items=self._row_items, num_tiles=num_parts)
        threads = tuning.SPAN_THREADS
        grids = -(-num_parts // (threads // WARP)), -(-(num_parts + 1) // threads)
        self.steps += [
            Launch(kernel, grid, threads, packed, self.device, slots, overlaps=overlaps)
            for kernel, grid in zip(build.kernels(specs, self.device), grids, strict=True)
        ]
