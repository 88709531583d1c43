"""Merge of two sorted arrays on a GPU."""

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
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(
        self, problem: Merge, order: Comparison, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, sum(problem.lengths), views, targets)
        self._num_rows = 1
        self.order, self.lengths = order, problem.lengths
        self.num_keys, self.num_values = problem.num_keys, problem.num_values

    def add(self) -> None:
        """Merge keys, and values with them; values that are not moved are gathered at the end."""
        keys, values = self.num_keys, self.num_values
        a, b = self._sources[:keys], self._sources[keys : 2 * keys]
        all_values = self._sources[2 * keys :]
        a_values, b_values = all_values[:values], all_values[values:]
        sizes = [operand.itemsize for operand in a_values]
        is_moved = policy.are_moved(sizes)
        val_src: tuple[tuple[int, ...], tuple[int, ...]] = (NONE,), (NONE,)
        val_dst: tuple[int, ...] = (NONE,)
        indices, index_bytes = NONE, 0
        out_keys, out_values = self._targets[:keys], self._targets[keys:]
        key_dst = self._target_slots(out_keys)
        if is_moved and values:
            val_src = self._dense_slots(a_values), self._dense_slots(b_values)
            val_dst = self._target_slots(out_values)
        elif values:
            index_bytes = position_bytes(self._row_items)
            indices = self._scratch(self._row_items * index_bytes)
            sizes, val_dst = [index_bytes], (indices,)
        kernels = Kernels(self.order, sizes, 1, self._row_items, self.device)
        sources = Buffer(self._dense_slots(a), val_src[0]), Buffer(self._dense_slots(b), val_src[1])
        (cuts,) = self._workspace_pieces([policy.CUT_BYTES * kernels.num_tiles])
        self.steps += kernels.merge_two(sources, self.lengths, Buffer(key_dst, val_dst), cuts)
        for target, slot in zip(out_keys, key_dst, strict=True):
            self._scatter(target, slot)
        if is_moved:
            for target, slot in zip(out_values, val_dst, strict=False):
                self._scatter(target, slot)
            return
        for first, second, target in zip(a_values, b_values, out_values, strict=True):
            self._fetch(first, second, target, indices, index_bytes)

    def _dense_slots(self, operands: Sequence[Operand]) -> tuple[int, ...]:
        """Return the slots of arrays, copied to scratch pieces where they are not dense."""
        slots = []
        for operand in operands:
            slot = operand.place
            if operand.num_bytes and not operand.is_ready:
                slot = self._scratch(operand.num_bytes)
                self._copy(operand, True, slot)
            slots.append(slot)
        return tuple(slots)

    def _target_slots(self, targets: Sequence[Operand]) -> tuple[int, ...]:
        """Return the slots of the results, of scratch pieces where targets are not dense."""
        return tuple(t.place if t.is_ready else self._scratch(t.num_bytes) for t in targets)

    def _fetch(
        self, first: Operand, second: Operand, target: Operand, indices: int, index_bytes: int
    ) -> None:
        """Add the steps that gather the items of two concatenated arrays."""
        joined = target.like(self._scratch(target.num_bytes), target.itemsize)
        for operand, offset in ((first, 0), (second, first.num_bytes)):
            if operand.num_bytes:
                self._copy(operand, True, (joined.place, offset))
        self._scatter(target, self._gather_items(joined, target, indices, index_bytes))
