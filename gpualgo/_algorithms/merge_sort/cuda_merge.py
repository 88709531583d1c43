"""Merging two sorted arrays on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpualgo._algorithms.merge_sort import policy
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.merge_sort.cuda_steps import Buffer, Kernels
from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._algorithms.radix_sort.operands import Operand
from gpualgo._arrays.view import View
from gpualgo._cuda.plan import NONE, Plan

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.merge_problem import Merge


def plan_of(
    problem: Merge, order: Comparison, views: Sequence[View], targets: Sequence[View]
) -> Plan:
    """Return the plan of a merge of keys, or of keys and values."""
    builder = _Builder(problem, order, views, targets)
    builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """The steps and pieces of a plan, for one combination of layouts."""

    def __init__(
        self, problem: Merge, order: Comparison, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, sum(problem.lengths), views, targets)
        self._num_rows = 1
        self.order, self.lengths = order, problem.lengths
        self.num_keys, self.num_values = problem.num_keys, problem.num_values

    def add(self) -> None:
        """Merge keys, and values along or their positions, by which they are gathered then."""
        keys, values = self.num_keys, self.num_values
        a, b = self._sources[:keys], self._sources[keys : 2 * keys]
        rest = self._sources[2 * keys :]
        a_values, b_values = rest[:values], rest[values:]
        sizes = [operand.itemsize for operand in a_values]
        is_moved = policy.are_moved(sizes)
        ends: tuple[tuple[int, ...], tuple[int, ...]] = (NONE,), (NONE,)
        homes: tuple[int, ...] = (NONE,)
        indices, index_bytes = NONE, 0
        out_keys, out_values = self._targets[:keys], self._targets[keys:]
        keys_home = self._homes(out_keys)
        if is_moved and values:
            ends = self._gathered(a_values), self._gathered(b_values)
            homes = self._homes(out_values)
        elif values:
            index_bytes = position_bytes(self._row_items)
            indices = self._piece(self._row_items * index_bytes)
            sizes, homes = [index_bytes], (indices,)
        kernels = Kernels(self.order, sizes, 1, self._row_items, self.device)
        sources = Buffer(self._gathered(a), ends[0]), Buffer(self._gathered(b), ends[1])
        (cuts,) = self._kept_pieces([policy.CUT_BYTES * kernels.num_tiles])
        self.steps += kernels.merge_two(sources, self.lengths, Buffer(keys_home, homes), cuts)
        for target, home in zip(out_keys, keys_home, strict=True):
            self._scatter(target, home)
        if is_moved:
            for target, home in zip(out_values, homes, strict=False):
                self._scatter(target, home)
            return
        for first, second, target in zip(a_values, b_values, out_values, strict=True):
            self._fetch(first, second, target, indices, index_bytes)

    def _gathered(self, operands: Sequence[Operand]) -> tuple[int, ...]:
        """Return where arrays lie without gaps."""
        found = []
        for operand in operands:
            place = operand.place
            if operand.num_bytes and not operand.is_ready:
                place = self._piece(operand.num_bytes)
                self._copy(operand, True, place)
            found.append(place)
        return tuple(found)

    def _homes(self, targets: Sequence[Operand]) -> tuple[int, ...]:
        """Return where results are written without gaps."""
        return tuple(
            target.place if target.is_ready else self._piece(target.num_bytes) for target in targets
        )

    def _fetch(
        self, first: Operand, second: Operand, target: Operand, indices: int, index_bytes: int
    ) -> None:
        """Add the steps that put items of two arrays, one behind the other, in their order."""
        whole = target.like(self._piece(target.num_bytes), target.itemsize)
        for operand, offset in ((first, 0), (second, first.num_bytes)):
            if operand.num_bytes:
                self._copy(operand, True, (whole.place, offset))
        self._scatter(target, self._gather_items(whole, target, indices, index_bytes))
