"""Plans of the merge sort on a GPU: dense rows, sorted tiles, then merges of pairs of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gpualgo._algorithms.merge_sort import policy
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.cuda_steps import Buffer, Kernels
from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._arrays.view import View
from gpualgo._cuda.plan import NONE, Plan

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.problem import MergeSort


def plan_of(
    problem: MergeSort, order: Comparison, views: Sequence[View], targets: Sequence[View]
) -> Plan:
    """Return the plan of a sort of keys, or of keys and values."""
    builder = _Builder(problem, order, views, targets)
    if problem.row_items == 1:
        builder.add_copies()
    else:
        builder.add_sort()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Rows(NamedTuple):
    """Slots of the source and target rows, and their item sizes in bytes."""

    begin: Buffer
    home: Buffer
    sizes: list[int]  # per field of a key
    value_sizes: list[int]


class _Builder(Builder):
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(
        self, problem: MergeSort, order: Comparison, views: Sequence[View],
        targets: Sequence[View],
    ) -> None:  # fmt: skip
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.order, self.num_keys = order, problem.num_keys

    def add_copies(self) -> None:
        """Copy rows of one element."""
        for source, target in zip(self._sources, self._targets, strict=True):
            if source.address == target.address and source.strides == target.strides:
                continue
            slot = target.place if target.is_gapless else self._scratch(target.num_bytes)
            self._copy(source, True, slot)
            self._scatter(target, slot)

    def add_sort(self) -> None:
        """Sort keys, and values with them; values that are not moved are gathered at the end."""
        count = self.num_keys
        pairs = list(zip(self._sources, self._targets, strict=True))
        key_slots = [self._gather_source(source, target)[:2] for source, target in pairs[:count]]
        values = pairs[count:]
        value_sizes = [source.itemsize for source, _ in values]
        is_moved, index_bytes, indices = policy.are_moved(value_sizes), 0, NONE
        if is_moved:
            value_slots = [self._gather_source(source, target)[:2] for source, target in values]
        else:
            index_bytes = position_bytes(self._row_items)
            indices = self._scratch(self._num_items * index_bytes)
            value_slots, value_sizes = [(NONE, indices)], [index_bytes]
        key_src, key_dst = zip(*key_slots, strict=True)
        val_src, val_dst = zip(*value_slots, strict=True) if value_slots else ((NONE,), (NONE,))
        sizes = [source.itemsize for source, _ in pairs[:count]]
        self._sort_rows(
            _Rows(Buffer(key_src, val_src), Buffer(key_dst, val_dst), sizes, value_sizes)
        )
        for (_, target), slot in zip(pairs, key_dst, strict=False):
            self._scatter(target, slot)
        if is_moved:
            for (_, target), slot in zip(values, val_dst, strict=False):
                self._scatter(target, slot)
            return
        for source, target in values:
            self._scatter(target, self._gather_items(source, target, indices, index_bytes))

    @property
    def _num_items(self) -> int:
        return self._num_rows * self._row_items

    def _sort_rows(self, rows: _Rows) -> None:
        """Add the steps that sort rows: tiles, then merges of runs until one is left."""
        kernels = Kernels(
            self.order, rows.value_sizes, self._num_rows, self._row_items, self.device
        )
        side, cuts = rows.home, NONE
        if kernels.num_passes:
            sizes = [self._num_items * size for size in (*rows.sizes, *rows.value_sizes)]
            *slots, cuts = self._workspace_pieces([*sizes, policy.CUT_BYTES * kernels.num_tiles])
            count = len(rows.sizes)
            side = Buffer(tuple(slots[:count]), tuple(slots[count:]) or (NONE,))
        buffers = [side, rows.home]
        current = buffers[kernels.num_passes % 2 == 0]
        self.steps.append(kernels.sort_tiles(rows.begin, current))
        for number in range(kernels.num_passes):
            other = rows.home if current is side else side
            self.steps += kernels.merge_runs(current, other, cuts, number)
            current = other
