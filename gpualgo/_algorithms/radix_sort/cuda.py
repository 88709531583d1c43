"""Plans of the radix sort on a GPU: dense rows, sort steps, temporary storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.radix_sort import cuda_counting as counting_sort
from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job
from gpualgo._arrays.view import View
from gpualgo._cuda.plan import NONE, Plan

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.problem import Sort


def plan_of(problem: Sort, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, a sort of keys and values, or an argsort."""
    builder = _Builder(problem, views, targets)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(views) == 2:
        builder.add_pairs()
    else:
        builder.add_keys()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(self, problem: Sort, views: Sequence[View], targets: Sequence[View]) -> None:
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.problem = problem

    def add_keys(self) -> None:
        source, target = self._sources[0], self._targets[0]
        problem = self.problem
        bits = problem.begin_bit, problem.end_bit
        is_ready = self._num_rows == 1 and source.is_ready and target.is_ready
        if is_ready and counting_sort.applies(problem.key_dtype, *bits, self._row_items):
            self.steps, self.pieces = counting_sort.steps_of(
                self.device, problem.key_dtype, self._row_items, problem.descending,
                (source.place, target.place), self._slots.piece(0),
            )  # fmt: skip
            return
        key_src, key_dst, is_same = self._gather_source(source, target)
        self._sort(self._job(is_same, not is_same), Arrays(key_src, NONE, key_dst, NONE))
        self._scatter(target, key_dst)

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of keys by the keys."""
        source, target = self._sources[0], self._targets[0]
        key_src = source.place
        if not source.is_ready:
            key_src = self._scratch(source.num_bytes)
            self._copy(source, True, key_src)
        key_dst = target.place if target.is_ready else self._scratch(target.num_bytes)
        job = self._job(
            False, True, value_bytes=position_bytes(self._row_items), result_bytes=result_bytes,
            makes_indices=True, keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(key_src, NONE, NONE, key_dst))
        self._scatter(target, key_dst)

    def add_pairs(self) -> None:
        """Sort keys, and values with them."""
        (source, values), (target, out_values) = self._sources, self._targets
        key_src, key_dst, keys_same = self._gather_source(source, target)
        if values.itemsize in policy.WORDS:
            val_src, val_dst, same = self._gather_source(values, out_values)
            job = self._job(
                keys_same or same, not (keys_same and same), value_bytes=values.itemsize,
                result_bytes=values.itemsize,
            )  # fmt: skip
            self._sort(job, Arrays(key_src, val_src, key_dst, val_dst))
        else:
            # Items of other sizes are gathered after the sort, by the sorted indices.
            index_bytes = position_bytes(self._row_items)
            indices = self._scratch(self._num_rows * self._row_items * index_bytes)
            job = self._job(
                keys_same, True, value_bytes=index_bytes, result_bytes=index_bytes,
                makes_indices=True,
            )  # fmt: skip
            self._sort(job, Arrays(key_src, NONE, key_dst, indices))
            val_dst = self._gather_items(values, out_values, indices, index_bytes)
        self._scatter(target, key_dst)
        self._scatter(out_values, val_dst)

    def _job(self, is_in_place: bool, has_to_write: bool, **others: Any) -> Job:
        problem = self.problem
        return Job(
            self.device, problem.key_dtype, self._num_rows, self._row_items, problem.descending,
            problem.begin_bit, problem.end_bit, is_in_place=is_in_place, has_to_write=has_to_write,
            **others,
        )  # fmt: skip
