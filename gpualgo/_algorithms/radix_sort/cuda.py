"""Radix sort on the GPU: canonical rows, the steps to sort them, temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.radix_sort import cuda_counting as counting_sort
from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort import cuda_rows as block_sort
from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job, Steps
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims
from gpualgo._cuda import copy
from gpualgo._cuda.pieces import Piece
from gpualgo._cuda.plan import NONE, Places, Plan

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.problem import Sort


def plan_of(problem: Sort, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, or of keys and values, or of the order of keys."""
    builder = _Builder(problem, views, targets)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(views) == 2:
        builder.add_pairs()
    else:
        builder.add_keys()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Operand:
    """An array as rows along the axis that is sorted."""

    def __init__(self, view: View, axis: int | None, place: int) -> None:
        self.place = place
        self.itemsize, self.address = view.dtype.itemsize, view.ptr
        self.dims = list(zip(view.shape, view.strides, strict=True))
        if axis is not None:
            self.dims.append(self.dims.pop(axis))
        self.strides = [stride for _, stride in self.dims]
        self.row_strides: list[int] = []  # were there no gaps
        step = self.itemsize
        for extent, _ in reversed(self.dims):
            self.row_strides.insert(0, step)
            step *= extent
        self.num_bytes = step
        self.is_gapless = all(
            extent == 1 or stride == rows
            for (extent, stride), rows in zip(self.dims, self.row_strides, strict=True)
        )
        # Gapless rows of words that kernels can move.
        self.is_ready = (
            self.is_gapless and self.itemsize in policy.WORDS and view.ptr % self.itemsize == 0
        )


class _Builder:
    """The steps and pieces of a plan, for one combination of layouts."""

    def __init__(self, problem: Sort, views: Sequence[View], targets: Sequence[View]) -> None:
        self.problem, self.device = problem, views[0].device
        self.steps: Steps = []
        self.pieces: list[Piece] = []
        self._at = at = Places(len(views), len(targets))
        axis = problem.axis  # results of flattened arrays are rows already
        self._sources = [_Operand(x, axis, at.source(i)) for i, x in enumerate(views)]
        self._targets = [_Operand(x, axis, at.target(i)) for i, x in enumerate(targets)]
        self._row_items = problem.row_items
        self._num_rows = math.prod(problem.shape) // problem.row_items

    def add_keys(self) -> None:
        """Sort keys alone."""
        source, target = self._sources[0], self._targets[0]
        problem = self.problem
        bits = problem.begin_bit, problem.end_bit
        is_ready = self._num_rows == 1 and source.is_ready and target.is_ready
        if is_ready and counting_sort.applies(problem.key_dtype, *bits, self._row_items):
            self.steps, self.pieces = counting_sort.steps_of(
                self.device, problem.key_dtype, self._row_items, problem.descending,
                (source.place, target.place), self._at.piece(0),
            )  # fmt: skip
            return
        begin, home, is_same = self._gather_source(source, target)
        self._sort(self._job(is_same, not is_same), Arrays(begin, NONE, home, NONE))
        self._scatter(target, home)

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of keys by the keys."""
        source, target = self._sources[0], self._targets[0]
        begin = source.place
        if not source.is_ready:
            begin = self._piece(source.num_bytes)
            self._copy(source, True, begin)
        home = target.place if target.is_ready else self._piece(target.num_bytes)
        job = self._job(
            False, True, value_bytes=_index_bytes(self._row_items), result_bytes=result_bytes,
            makes_indices=True, keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(begin, NONE, NONE, home))
        self._scatter(target, home)

    def add_pairs(self) -> None:
        """Sort keys, and values along."""
        (source, moved), (target, place) = self._sources, self._targets
        begin, home, keys_same = self._gather_source(source, target)
        if moved.itemsize in policy.WORDS:
            first, last, same = self._gather_source(moved, place)
            job = self._job(
                keys_same or same, not (keys_same and same), value_bytes=moved.itemsize,
                result_bytes=moved.itemsize,
            )  # fmt: skip
            self._sort(job, Arrays(begin, first, home, last))
        else:
            # Items of other sizes are gathered once their order is known.
            index_bytes = _index_bytes(self._row_items)
            indices = self._piece(self._num_rows * self._row_items * index_bytes)
            job = self._job(
                keys_same, True, value_bytes=index_bytes, result_bytes=index_bytes,
                makes_indices=True,
            )  # fmt: skip
            self._sort(job, Arrays(begin, NONE, home, indices))
            last = self._gather_items(moved, place, indices, index_bytes)
        self._scatter(target, home)
        self._scatter(place, last)

    def _job(self, is_in_place: bool, has_to_write: bool, **others: Any) -> Job:
        problem = self.problem
        return Job(
            self.device, problem.key_dtype, self._num_rows, self._row_items, problem.descending,
            problem.begin_bit, problem.end_bit, is_in_place=is_in_place, has_to_write=has_to_write,
            **others,
        )  # fmt: skip

    def _sort(self, job: Job, arrays: Arrays) -> None:
        sorted_in_one = block_sort.launch_of(job, arrays)
        if sorted_in_one is not None:
            self.steps.append(sorted_in_one)
            return
        first = self._at.piece(len(self.pieces))
        # Beside copies, all storage is one allocation.
        steps, pieces = passes.steps_of(job, arrays, first, may_be_kept=not self.pieces)
        self.steps += steps
        self.pieces += pieces

    def _piece(self, num_bytes: int) -> int:
        """Return the place of a new piece of temporary storage."""
        self.pieces.append(Piece(num_bytes))
        return self._at.piece(len(self.pieces) - 1)

    def _copy(self, operand: _Operand, inward: bool, rows: int) -> None:
        """Add a copy of an array into gapless rows (inward), or back."""
        near, far = operand.strides, operand.row_strides
        pairs = zip(near, far, strict=True) if inward else zip(far, near, strict=True)
        dims: Dims = [(e, pair) for (e, _), pair in zip(operand.dims, pairs, strict=True)]
        ends = (operand.place, rows) if inward else (rows, operand.place)
        takes = dict(zip(("input", "output"), ends, strict=True))
        alignment = operand.address & 15
        self.steps.append(copy.copy(dims, operand.itemsize, alignment, self.device, takes))

    def _gather_source(self, source: _Operand, target: _Operand) -> tuple[int, int, bool]:
        """Return where sorting starts, where its result goes, and whether that is the same."""
        home = target.place if target.is_ready else self._piece(target.num_bytes)
        if source.is_ready:
            is_same = home == target.place and source.address == target.address
            return source.place, home, is_same
        self._copy(source, True, home)
        return home, home, True

    def _scatter(self, target: _Operand, home: int) -> None:
        if home != target.place:
            self._copy(target, False, home)

    def _gather_items(
        self, moved: _Operand, place: _Operand, indices: int, index_bytes: int
    ) -> int:
        """Add the gather of values; return where they are then."""
        first, alignment = moved.place, moved.address
        if not moved.is_gapless:
            first, alignment = self._piece(moved.num_bytes), 0
            self._copy(moved, True, first)
        last = place.place
        if not place.is_gapless or (first == moved.place and moved.address == place.address):
            last = self._piece(place.num_bytes)
        else:
            alignment |= place.address
        self.steps.append(
            copy.gather(
                self._num_rows, self._row_items, moved.itemsize, alignment & 15, index_bytes,
                self.device, {"input": first, "output": last, "indices": indices},
            )
        )  # fmt: skip
        return last


def _index_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted along."""
    return 4 if row_items <= 1 << 32 else 8
