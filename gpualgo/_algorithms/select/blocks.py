"""Selection of pageable arrays on a GPU in blocks; only the kept elements are copied back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.select import cuda
from gpualgo._algorithms.select.problem import HEADS, Selecting
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_blocks, host_whole, planners
from gpualgo._pipeline.host_blocks import Operand
from gpualgo._pipeline.problem import NO_INIT

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 256 << 20


@planners.for_blocks.register(Selecting)
def _(problem: Selecting, call: planners.HostCall) -> bool:
    if call.is_forced:
        return False
    *outs, count = call.results
    if 0 in problem.shape:
        count[...] = 0
        return True
    arrays = [np.broadcast_to(array, problem.shape) for array in call.arrays]
    block_bytes = BLOCK_BYTES
    if problem.kept == HEADS:  # one block, since a run may continue in the next one
        block_bytes = sum(array.nbytes for array in arrays) + 1
    places = call.places  # views of arrays that kernels access in place
    reason = host_whole.pageable(None in places[: len(arrays)], problem.where)
    handle = host_blocks.begin(problem, arrays[0], call.stream, reason)
    if call.stream is None and any(places):  # work queued there comes first
        driver.synchronize(handle)
    operands = [Operand(array, place) for array, place in zip(arrays, places, strict=False)]
    _Blocks(problem, operands, call.op, handle, block_bytes).run(outs, count)
    return True


class _Blocks:
    """Blocks in C order: each is uploaded and selected from, and its kept elements downloaded.

    The rest, if wanted, stays on the host until its start is known.
    """

    def __init__(
        self, problem: Selecting, operands: Sequence[Operand], op: Operator | None, stream: int,
        block_bytes: int,
    ) -> None:  # fmt: skip
        self.problem, self.operands, self.op, self.stream = problem, operands, op, stream
        self.device = problem.device
        shape = operands[0].array.shape
        size = sum(records.step_of(number) for number in records.field_dtypes(problem.source))
        pieces = staging.pieces(shape, max(1, size), block_bytes)
        self.indices = [(*index, ...) for index in pieces]
        self.plans: dict[Any, Plan] = {}

    def run(self, outs: Sequence[Array], count: Array) -> None:
        """Write to outs, up to their length."""
        problem, device, stream = self.problem, self.device, self.stream
        most = max(self.operands[0].array[index].size for index in self.indices)
        sizes = [
            *(0 if item.place else most * item.array.dtype.itemsize for item in self.operands),
            *(most * out.dtype.itemsize for out in outs), count.dtype.itemsize,
        ]  # fmt: skip
        block_rests: list[list[Array]] = []
        total, capacity = 0, outs[0].shape[0]
        buffers = staging.device_buffers(device, stream, sizes)
        with buffers as memory, host_blocks.sync_on_error(stream):
            sources, targets = memory[: len(self.operands)], memory[len(self.operands) :]
            for index in self.indices:
                num_items, kept = self._select(index, sources, targets)
                parts = [out[total : min(total + kept, capacity)] for out in outs]
                rest = [np.empty(num_items - kept, out.dtype) for out in outs]
                for part, rest_part, target in zip(parts, rest, targets, strict=False):
                    staging.download(target, part, device, stream)
                    if problem.keeps_rest:
                        first = target + kept * part.dtype.itemsize
                        staging.download(first, rest_part, device, stream)
                block_rests.append(rest)
                total += kept
            driver.synchronize(stream)
        if problem.keeps_rest:
            for out, parts_behind in zip(outs, zip(*block_rests, strict=True), strict=True):
                np.concatenate(parts_behind, out=out[total:])
        count[...] = total

    def _select(
        self, index: Any, sources: Sequence[int], targets: Sequence[int]
    ) -> tuple[int, int]:
        """Select from a block on the device; return its number of elements, and of kept ones."""
        blocks = [operand.array[index] for operand in self.operands]
        for operand, block, source in zip(self.operands, blocks, sources, strict=True):
            if operand.place is None:  # on the stream, after the previous block's selection
                staging.upload(block, source, self.device, self.stream)
        views = [
            operand.view(index, source, self.device)
            for operand, source in zip(self.operands, sources, strict=True)
        ]
        plan = self._plan(views, targets)
        words = b"" if self.op is None else self.op.words
        plan.queue(self.stream, (*NO_INIT, words, *[view.ptr for view in views], *targets))
        kept = np.empty((), np.int64)
        staging.fetch(targets[-1], kept.ctypes.data, kept.nbytes, self.stream)
        driver.synchronize(self.stream)
        return blocks[0].size, int(kept)

    def _plan(self, views: Sequence[View], targets: Sequence[int]) -> Plan:
        shape, kinds = views[0].shape, [result.dtype for result in self.problem.results]
        key = (shape, *((view.ptr & 15, view.strides) for view in views))
        if key not in self.plans:
            size = (int(np.prod(shape)),)
            shapes = [*[size] * (len(targets) - 1), ()]
            outs = [
                dense_view(target, out_shape, kind, self.device)
                for target, out_shape, kind in zip(targets, shapes, kinds, strict=True)
            ]
            self.plans[key] = cuda.plan_of(self.problem, views, self.op, outs)
        return self.plans[key]
