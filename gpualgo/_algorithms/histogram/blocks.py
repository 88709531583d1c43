"""Histograms of large pageable arrays on a GPU, in blocks; the arrays may exceed its memory.

Counts and sums of blocks are added on the host, in the order of blocks, which depend on the arrays'
sizes and strides only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.problem import Histogram, accumulator
from gpualgo._base.strides import order_of
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_whole import Index
from gpualgo._pipeline.problem import NO_INIT, Array

BLOCK_BYTES = 256 << 20  # smaller arrays are copied to the GPU as a whole
RESULT_BYTES = 1 << 30  # of counters per pass over the samples


@planners.for_blocks.register(Histogram)
def _(problem: Histogram, call: planners.HostCall) -> bool:
    arrays, (result,), places = call.arrays, call.results, call.device_views
    if call.op is not None:  # computed samples are not in memory
        return False
    if None not in places[: len(arrays)] or sum(x.nbytes for x in arrays) <= BLOCK_BYTES:
        return False
    reason = host_whole.pageable(is_input=True, where=problem.where)
    handle = host_whole.begin(problem.device, call.stream, arrays[0], problem.where, reason)
    if len(problem.axes) == arrays[0].ndim:  # order does not matter: use that of memory
        order = order_of(arrays[0].shape, [x.strides for x in arrays])
        arrays = [x.transpose(order) for x in arrays] if order else arrays
    counts = np.empty(result.shape, result.dtype)
    _Histogram(problem, arrays, handle).run(counts, call.init)
    result[...] = counts
    return True


class _Histogram:
    """Blocks of samples, grouped by index on the kept axes, which are not counted over."""

    def __init__(self, problem: Histogram, arrays: list[Array], stream: int) -> None:
        self.problem, self.arrays, self.stream = problem, arrays, stream
        self.device, self.dtypes = problem.device, [x.dtype for x in arrays]
        self.shape = arrays[0].shape
        self.cells = problem.results[0].shape[len(self.shape) - len(problem.axes) :]
        self.item_bytes = sum(dtype.itemsize for dtype in self.dtypes)
        self.kept = [i for i in range(len(self.shape)) if i not in problem.axes]
        self.groups = [(group, self._blocks(group)) for group in self._groups()]

    def _groups(self) -> list[Index]:
        """Return the groups of kept indices that are processed together: as many as fit."""
        limit = RESULT_BYTES // (self.problem.dtype.itemsize * self.problem.num_bins)
        limit = max(1, min(limit, BLOCK_BYTES // self.item_bytes))
        return list(host_whole.indices(self.shape, self.kept, 1, limit))

    def _blocks(self, group: Index) -> list[Index]:
        num_indices = math.prod(_length(group[axis]) for axis in self.kept)
        size = num_indices * self.item_bytes
        blocks = host_whole.indices(self.shape, self.problem.axes, size, BLOCK_BYTES)
        kept = set(self.kept)
        return [
            tuple(group[i] if i in kept else block[i] for i in range(len(self.shape)))
            for block in blocks
        ]

    def _plan(self, shape: tuple[int, ...]) -> Plan:
        part: Any = self.problem.of_same_kind(
            host_whole.placeholder_host_views(self.dtypes, shape), None, None, self.problem.params
        )
        out = self._result_shape(shape)
        views = host_whole.placeholder_views(self.dtypes, shape, self.device)
        targets = host_whole.placeholder_views([self.problem.dtype], out, self.device, len(views))
        plan: Plan = planners.cuda_plan(part, views, None, targets)
        return plan

    def _result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*(shape[axis] for axis in self.kept), *self.cells)

    def run(self, result: Array, weight: Array | None) -> None:
        shapes = {tuple(map(_length, block)) for _, blocks in self.groups for block in blocks}
        plans = {shape: self._plan(shape) for shape in shapes}
        most = max(map(math.prod, shapes))
        largest = max(math.prod(self._result_shape(shape)) for shape in shapes)
        sizes = [most * dtype.itemsize for dtype in self.dtypes]
        sizes.append(largest * result.itemsize)
        start = NO_INIT if weight is None else (weight.tobytes(), 1, 0, 0)
        memory = host_whole.memory(self.device, self.stream, sizes, list(plans.values()))
        with memory as (addresses, queue):
            for group, blocks in self.groups:
                part = result[tuple(group[axis] for axis in self.kept)]
                counts = np.empty_like(part, order="C")
                total = np.zeros_like(part, accumulator(part.dtype))
                for block in blocks:
                    queue(plans[self._upload(block, addresses)], *addresses, start=start)
                    staging.download(addresses[-1], counts, self.device, self.stream)
                    driver.synchronize(self.stream)
                    with np.errstate(all="ignore"):
                        total += counts
                part[...] = total

    def _upload(self, block: Index, memory: Sequence[int]) -> tuple[int, ...]:
        for x, address in zip(self.arrays, memory, strict=False):
            staging.upload(x[block], address, self.device, self.stream)
        return tuple(map(_length, block))


def _length(part: slice) -> int:
    return int(part.stop - part.start)
