"""Histograms of large pageable arrays on a GPU, by blocks: they may exceed its memory.

Counts of blocks are added up on the host. Sums of weights stay on the device as the long integers
that they are (docs/adr/0016-exact-sums.md), and are rounded once the last block has come: neither
depends on how samples are cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.histogram import joint_policy
from gpualgo._algorithms.histogram.cuda_sums import place_bytes
from gpualgo._arrays.view import View
from gpualgo._base.extents import order_of
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging, workspace
from gpualgo._pipeline import host_blocks, host_whole
from gpualgo._pipeline.host_blocks import Index
from gpualgo._pipeline.problem import NO_START, Array

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint_problem import JointHistogram
    from gpualgo._algorithms.histogram.problem import Histogram

BLOCK_BYTES = 256 << 20  # what is smaller goes to the GPU as a whole
RESULT_BYTES = 1 << 30  # of the counters that are added to by one run through the samples


def histogram(
    problem: Histogram | JointHistogram, arrays: list[Array], result: Array, weight: Array | None,
    stream: Any, places: Sequence[View | None],
) -> bool:  # fmt: skip
    """Count or add up samples of at least one pageable array; False: not by blocks."""
    if None not in places[: len(arrays)] or sum(x.nbytes for x in arrays) <= BLOCK_BYTES:
        return False
    handle = host_blocks.begin(
        problem, arrays[0], stream, host_whole.pageable(is_input=True, where=problem.where)
    )
    if len(problem.axes) == arrays[0].ndim:  # in any order: in that of memory
        order = order_of(arrays[0].shape, [x.strides for x in arrays])
        arrays = [x.transpose(order) for x in arrays] if order else arrays
    found = np.empty(result.shape, result.dtype)
    _Histogram(problem, arrays, handle).run(found, weight)
    result[...] = found
    return True


class _Histogram:
    """Blocks of samples: those of some kept places after another."""

    def __init__(
        self, problem: Histogram | JointHistogram, arrays: list[Array], stream: int
    ) -> None:
        self.problem, self.arrays, self.stream = problem, arrays, stream
        self.device, self.dtypes = problem.device, [x.dtype for x in arrays]
        self.shape = arrays[0].shape
        self.cells = problem.results[0].shape[len(self.shape) - len(problem.axes) :]
        self.sum_bytes = 0  # of a kept place, where there are weights
        if problem.has_weights:
            self.sum_bytes = place_bytes(problem)
        self.item_bytes = sum(dtype.itemsize for dtype in self.dtypes)
        self.kept = [i for i in range(len(self.shape)) if i not in problem.axes]
        self.groups = [(each, self._blocks(each)) for each in self._groups()]

    def _groups(self) -> list[Index]:
        """Return which places are kept at once: as many as there is room for."""
        if self.sum_bytes:
            room = joint_policy.SUMS_BYTES // (2 * self.sum_bytes)
        else:
            room = RESULT_BYTES // (self.problem.dtype.itemsize * self.problem.num_bins)
        room = max(1, min(room, BLOCK_BYTES // self.item_bytes))
        return list(host_blocks.indices(self.shape, self.kept, 1, room))

    def _blocks(self, group: Index) -> list[Index]:
        """Return the blocks of samples of a group of kept places."""
        num_places = math.prod(_length(group[axis]) for axis in self.kept)
        size = num_places * self.item_bytes
        blocks = host_blocks.indices(self.shape, self.problem.axes, size, BLOCK_BYTES)
        kept = set(self.kept)
        return [
            tuple(group[i] if i in kept else block[i] for i in range(len(self.shape)))
            for block in blocks
        ]

    def _plan(self, shape: tuple[int, ...]) -> Plan:
        same: Any = self.problem.like(
            host_blocks.host(self.dtypes, shape), None, None, self.problem.rest
        )
        out = self._result_shape(shape)
        views = host_blocks.dense(self.dtypes, shape, self.device)
        targets = host_blocks.dense([self.problem.dtype], out, self.device, len(views))
        plan: Plan = same.cuda(views, None, targets)
        return plan

    def _result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*(shape[axis] for axis in self.kept), *self.cells)

    def run(self, result: Array, weight: Array | None) -> None:
        """Write the histogram to an array of the host."""
        shapes = {tuple(map(_length, block)) for _, blocks in self.groups for block in blocks}
        plans = {shape: self._plan(shape) for shape in shapes}
        most = max(map(math.prod, shapes))
        largest = max(math.prod(self._result_shape(shape)) for shape in shapes)
        sizes = [most * dtype.itemsize for dtype in self.dtypes]
        sizes.append(largest * result.itemsize)
        run, own = self._count, list(plans.values())
        start = NO_START if weight is None else (weight.tobytes(), 1, 0, 0)
        if self.sum_bytes:  # whose sums stay between launches: they are no temporary storage
            run, own = self._add_up, []
            sizes.append(max(plan.temp_storage_bytes for plan in plans.values()))
        with host_blocks.memory(self.device, self.stream, sizes, own) as (memory, queue):
            for group, blocks in self.groups:
                part = result[tuple(group[axis] for axis in self.kept)]
                run(part, blocks, plans, memory, queue, start)

    def _count(
        self, part: Array, blocks: list[Index], plans: dict[Any, Plan], memory: list[int],
        queue: host_blocks.Queue, start: Any,
    ) -> None:  # fmt: skip
        part[...] = 0
        found = np.empty_like(part, order="C")
        for block in blocks:
            queue(plans[self._upload(block, memory)], *memory, start=start)
            staging.download(memory[-1], found, self.device, self.stream)
            driver.synchronize(self.stream)
            part += found

    def _add_up(
        self, part: Array, blocks: list[Index], plans: dict[Any, Plan], memory: list[int],
        queue: host_blocks.Queue, start: Any,
    ) -> None:  # fmt: skip
        rounding = None
        for block in blocks:
            plan = plans[self._upload(block, memory)]
            adding, last = plan.steps  # all of a group's places have room at once
            if rounding is None:
                workspace.clear(memory[-1], plan.temp_storage_bytes, self.stream)
            queue(Plan(self.device, [adding], (), plan.tables), *memory, start=start)
            rounding = Plan(self.device, [last], (), plan.tables)
        assert rounding is not None
        queue(rounding, *memory, start=start)
        staging.download(memory[len(self.dtypes)], part, self.device, self.stream)
        driver.synchronize(self.stream)

    def _upload(self, block: Index, memory: Sequence[int]) -> tuple[int, ...]:
        """Bring a block's samples to the device; return its shape."""
        for x, address in zip(self.arrays, memory, strict=False):
            staging.upload(x[block], address, self.device, self.stream)
        return tuple(map(_length, block))


def _length(one: slice) -> int:
    return int(one.stop - one.start)
