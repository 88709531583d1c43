"""A segmented sort on a GPU: heads marked, tiles sorted, then rounds of merges across tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.merge_sort import policy as merge_sort
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.cuda_steps import Buffer
from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._algorithms.segmented_sort import policy
from gpualgo._algorithms.segments import cuda as segments
from gpualgo._arrays.view import View
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import NONE, Clear, Plan
from gpualgo._cuda.templates import WARP
from gpualgo._driver import device as gpu
from gpualgo._driver.workspace import aligned

if TYPE_CHECKING:
    from gpualgo._algorithms.segmented_sort.problem import SegmentedSort


def plan_of(problem: SegmentedSort, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, or of keys and values, of which there are some."""
    builder = _Builder(problem, views, targets)
    builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """The steps and pieces of a plan, for one combination of layouts."""

    def __init__(
        self, problem: SegmentedSort, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, problem.num_items, views, targets)
        self.order: Comparison = problem.order
        self.num_keys, self.offsets = problem.num_keys, views[problem.num_keys]
        del self._sources[self.num_keys]  # which are no items

    def add(self) -> None:
        """Sort keys, and values along or the order, by which these are gathered then."""
        count = self.num_keys
        pairs = list(zip(self._sources, self._targets, strict=True))
        ends = [self._gather_source(source, target)[:2] for source, target in pairs[:count]]
        values = pairs[count:]
        sizes = [source.itemsize for source, _ in values]
        is_moved, index_bytes, indices = policy.are_moved(sizes), 0, NONE
        if is_moved:
            moved = [self._gather_source(source, target)[:2] for source, target in values]
        else:
            index_bytes = position_bytes(self._row_items)
            indices = self._piece(self._row_items * index_bytes)
            moved, sizes = [(NONE, indices)], [index_bytes]
        keys_begin, keys_home = zip(*ends, strict=True)
        values_begin, values_home = zip(*moved, strict=True) if moved else ((NONE,), (NONE,))
        self._sort_segments(Buffer(keys_begin, values_begin), Buffer(keys_home, values_home), sizes)
        for (_, target), home in zip(pairs, keys_home, strict=False):
            self._scatter(target, home)
        if is_moved:
            for (_, target), home in zip(values, values_home, strict=False):
                self._scatter(target, home)
            return
        for source, target in values:
            self._scatter(target, self._gather_items(source, target, indices, index_bytes))

    def _sort_segments(self, begin: Buffer, home: Buffer, sizes: list[int]) -> None:
        """Add the steps that sort what lies without gaps into `home`; values have these sizes."""
        device, num_items = gpu.get(self.device), self._row_items
        num_segments, key_bytes = max(1, self.offsets.shape[0] - 1), self.order.element.itemsize
        cut = policy.policy_of(num_items, num_segments, key_bytes, sizes, device.shared_limit)
        num_tiles, num_parts = -(-num_items // cut.tile_items), -(-num_items // cut.merge_items)
        num_rounds = (num_tiles - 1).bit_length()
        counts_at = aligned(segments.marks_bytes(num_items))
        lengths = [counts_at + (num_rounds + 1) * policy.COUNT_BYTES]
        if num_rounds:
            lengths += [
                policy.SPAN_BYTES * (num_parts + 1), 2 * policy.CUT_BYTES * num_parts,
                policy.EDGES_BYTES * num_parts,
                *(num_items * each for each in [*self._key_sizes, *sizes]),
            ]  # fmt: skip
        marks, *others = self._kept_pieces(lengths)
        spans, cuts, edges, *places = others or [NONE] * (3 + self.num_keys)
        side = Buffer(
            tuple(places[: self.num_keys]),
            tuple(places[self.num_keys :]) or (NONE,) * len(home.values),
        )
        heads = segments.marked(marks)
        self.steps += [
            Clear(marks, lengths[0]),
            segments.marking(self.offsets, self._at.source(self.num_keys), num_items, heads),
        ]
        if num_rounds:
            self._add_spans(cut, num_parts, {**heads, "edges": edges, "spans": spans})
        spec = policy.tiles_spec(self.order, sizes, cut, device.may_overlap)
        takes = {
            **begin.run, "home": home.run, "side": side.run, **heads, "spans": spans,
            "has_odd": (marks, counts_at),
        }  # fmt: skip
        self.steps.append(
            Launch(
                build.kernel(spec, self.device), num_tiles, cut.block_threads,
                spec.parameters.pack(num_items=num_items, num_tiles=num_tiles), self.device, takes,
                shared_bytes=cut.shared_bytes(key_bytes, bool(sizes)),
                overlaps=device.may_overlap,
            )
        )  # fmt: skip
        if num_rounds:
            told = {"spans": spans, "has_odd": (marks, counts_at)}
            self._add_rounds(
                cut, sizes, num_parts, num_rounds, (home, side), (marks, counts_at), cuts, told
            )

    def _add_rounds(
        self, cut: policy.Policy, sizes: list[int], num_parts: int, num_rounds: int,
        buffers: tuple[Buffer, Buffer], counts: tuple[int, int], cuts: int, told: dict[str, Any],
    ) -> None:  # fmt: skip
        """Add the rounds of merges, of which the last one writes the first buffer."""
        device, element = gpu.get(self.device), self.order.element
        async_bytes = device.shared_limit if device.capability >= (8, 0) else 0
        specs = policy.merge_specs(self.order, sizes, cut, device.may_overlap, async_bytes)
        kernels = build.kernels(specs, self.device)
        most = device.num_sms * cut.merge_blocks
        grids = -(-4 * num_parts // cut.merge_threads), min(2 * num_parts, most)
        ahead = merge_sort.is_ahead(element, sizes, cut.merging, async_bytes)
        shared = 0, cut.merging.shared_bytes(element.itemsize, ahead)
        marks, counts_at = counts
        for left in range(num_rounds, 0, -1):
            source, target = buffers[left % 2], buffers[1 - left % 2]
            packed = specs[0].parameters.pack(
                num_tiles=num_parts, rounds_left=left, merge=policy.NO_ROWS
            )
            merged = {
                "first": source.run, "second": source.run, "output_keys": target.keys,
                "output_values": target.values, "cuts": cuts,
            }  # fmt: skip
            count = marks, counts_at + policy.COUNT_BYTES * left
            self.steps += [
                Launch(
                    kernel, grid, cut.merge_threads, packed, self.device,
                    {**told, "count": count, "merge": merged}, shared_bytes=size,
                    overlaps=device.may_overlap,
                )
                for kernel, grid, size in zip(kernels, grids, shared, strict=True)
            ]  # fmt: skip

    @property
    def _key_sizes(self) -> list[int]:
        return [source.itemsize for source in self._sources[: self.num_keys]]

    def _add_spans(self, cut: policy.Policy, num_parts: int, takes: dict[str, Any]) -> None:
        """Add the steps that find which segments reach across the tiles that are merged."""
        overlaps = gpu.get(self.device).may_overlap
        specs = policy.span_specs(cut, overlaps)
        packed = specs[0].parameters.pack(num_items=self._row_items, num_tiles=num_parts)
        threads = policy.SPAN_THREADS
        grids = -(-num_parts // (threads // WARP)), -(-(num_parts + 1) // threads)
        self.steps += [
            Launch(kernel, grid, threads, packed, self.device, takes, overlaps=overlaps)
            for kernel, grid in zip(build.kernels(specs, self.device), grids, strict=True)
        ]
