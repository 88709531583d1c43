"""Sorting by comparisons on a GPU: rows without gaps, tiles sorted, then pairs of runs merged."""

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


class _Passed(NamedTuple):
    """What travels through the passes."""

    begin: Buffer
    home: Buffer
    sizes: list[int]  # of each key's numbers, in bytes
    value_sizes: list[int]


class _Builder(Builder):
    """The steps and pieces of a plan, for one combination of layouts."""

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
            home = target.place if target.is_gapless else self._piece(target.num_bytes)
            self._copy(source, True, home)
            self._scatter(target, home)

    def add_sort(self) -> None:
        """Sort keys, and values along or the order, by which these are gathered then."""
        count = self.num_keys
        pairs = list(zip(self._sources, self._targets, strict=True))
        ends = [self._gather_source(source, target)[:2] for source, target in pairs[:count]]
        values = pairs[count:]
        value_sizes = [source.itemsize for source, _ in values]
        is_moved, index_bytes, indices = policy.are_moved(value_sizes), 0, NONE
        if is_moved:
            moved = [self._gather_source(source, target)[:2] for source, target in values]
        else:
            index_bytes = position_bytes(self._row_items)
            indices = self._piece(self._num_items * index_bytes)
            moved, value_sizes = [(NONE, indices)], [index_bytes]
        keys_begin, keys_home = zip(*ends, strict=True)
        values_begin, values_home = zip(*moved, strict=True) if moved else ((NONE,), (NONE,))
        sizes = [source.itemsize for source, _ in pairs[:count]]
        self._sort_rows(
            _Passed(
                Buffer(keys_begin, values_begin), Buffer(keys_home, values_home), sizes, value_sizes
            )
        )
        for (_, target), home in zip(pairs, keys_home, strict=False):
            self._scatter(target, home)
        if is_moved:
            for (_, target), home in zip(values, values_home, strict=False):
                self._scatter(target, home)
            return
        for source, target in values:
            self._scatter(target, self._gather_items(source, target, indices, index_bytes))

    @property
    def _num_items(self) -> int:
        return self._num_rows * self._row_items

    def _sort_rows(self, passed: _Passed) -> None:
        """Add the steps that sort rows: tiles, then runs merged until one is left."""
        kernels = Kernels(
            self.order, passed.value_sizes, self._num_rows, self._row_items, self.device
        )
        side, cuts = passed.home, NONE
        if kernels.num_passes:
            sizes = [self._num_items * size for size in (*passed.sizes, *passed.value_sizes)]
            *places, cuts = self._kept_pieces([*sizes, policy.CUT_BYTES * kernels.num_tiles])
            count = len(passed.sizes)
            side = Buffer(tuple(places[:count]), tuple(places[count:]) or (NONE,))
        buffers = [side, passed.home]
        here = buffers[kernels.num_passes % 2 == 0]
        self.steps.append(kernels.sort_tiles(passed.begin, here))
        for number in range(kernels.num_passes):
            there = passed.home if here is side else side
            self.steps += kernels.merge_runs(here, there, cuts, number)
            here = there
