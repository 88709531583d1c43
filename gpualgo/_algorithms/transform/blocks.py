"""Transformation of large pageable arrays on a GPU in blocks, on several copy streams at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import cuda
from gpualgo._algorithms.transform.problem import Transformation
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import View
from gpualgo._base import threads
from gpualgo._base.strides import order_of
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging
from gpualgo._driver.pinned import MOST_LANES, SLOT_BYTES, CopyLane
from gpualgo._pipeline import host_blocks, host_whole, planners
from gpualgo._pipeline.host_blocks import Operand
from gpualgo._pipeline.problem import NO_INIT, Problem

LARGE_BYTES = 512 << 20  # of all arrays; smaller ones are copied to the GPU as a whole

Array = np.ndarray[Any, Any]


def is_large(arrays: Sequence[Array]) -> bool:
    """Return whether the operands are large enough to be processed in blocks."""
    return sum(array.nbytes for array in arrays) > LARGE_BYTES


@planners.for_blocks.register(Transformation)
def _(problem: Transformation, call: planners.HostCall) -> bool:
    arrays, results = call.arrays, call.results
    if not (call.is_forced or is_large([*arrays, *results])):
        return False
    broadcast = [np.broadcast_to(array, problem.shape) for array in arrays]
    applied = cuda.applied(problem, call.op)
    transform(problem, applied, broadcast, results, call.stream, call.places)
    return True


def transform(
    problem: Problem, applied: Applied, arrays: Sequence[Array], outs: Sequence[Array],
    stream: Any, places: list[View | None],
) -> None:  # fmt: skip
    """Transform arrays of which some are pageable; the device is current."""
    where, device = problem.where, problem.device
    handle = host_whole.handle_on(device, stream, outs[0], where)
    if stream is not None:
        is_input = places.index(None) < len(arrays)
        driver.refuse_capture(handle, host_whole.pageable(is_input, where))
    if stream is not None or any(places):  # work queued there comes first
        driver.synchronize(handle)
    order = order_of(outs[0].shape, [outs[0].strides])
    operands = [
        Operand(array.transpose(order) if order else array, place)
        for array, place in zip(
            (*outs, *arrays), (*places[len(arrays) :], *places[: len(arrays)]), strict=True
        )
    ]
    with host_blocks.partial_write_guard(where, arrays, outs) as written:
        _Blocks(applied, operands, device, written).run()


class _Blocks:
    """Blocks of all operands: a lane's first buffer holds inputs, its second results."""

    def __init__(
        self, applied: Applied, operands: Sequence[Operand], device: int,
        written: host_blocks.WriteState,
    ) -> None:  # fmt: skip
        self.applied, self.operands, self.device = applied, operands, device
        self.written = written
        count = len(applied.outputs)
        self.targets, self.sources = operands[:count], operands[count:]
        most = max(sum(x.place is None for x in side) for side in (self.targets, self.sources))
        self.share = SLOT_BYTES // most & -256  # bytes of a buffer for one operand
        shape = self.targets[0].array.shape
        widest = max(operand.array.dtype.itemsize for operand in operands)
        self.indices = [(*index, ...) for index in staging.pieces(shape, widest, self.share)]
        self._plans: dict[Any, Plan] = {}
        self._lock = threading.Lock()

    def run(self) -> None:
        device = gpu.get(self.device)
        stream = device.copy_stream
        sizes = [self.share * len(self.operands)] * min(MOST_LANES, len(self.indices))
        with staging.device_buffers(self.device, stream, sizes) as memories:
            driver.synchronize(stream)  # the memory is now usable on every lane's stream
            idle: queue.SimpleQueue[int] = queue.SimpleQueue()
            for memory in memories:
                idle.put(memory)

            def body(first: int, last: int) -> None:
                memory = idle.get()  # there may be more threads than buffers
                try:
                    with device.current(), device.lanes.lend() as lane:
                        self._send(lane, memory, self.indices[first:last])
                finally:
                    idle.put(memory)

            num_bytes = sum(operand.array.nbytes for operand in self.operands)
            threads.run(body, len(self.indices), num_bytes)

    def _send(self, lane: CopyLane, memory: int, indices: Sequence[Any]) -> None:
        """Upload, transform and download blocks; fills one while the previous one is copied."""
        up, down = lane.slots
        pending: list[tuple[Array, int]] = []  # results of the previous block
        for i, index in enumerate(indices):
            addresses_of_block = (memory + k * self.share for k in range(len(self.operands)))
            views = [
                operand.view(index, address, self.device)
                for operand, address in zip(self.operands, addresses_of_block, strict=True)
            ]
            if i > 0:
                up.wait()
            self._fill(up, lane, index, views[len(self.targets) :])
            targets, sources = views[: len(self.targets)], views[len(self.targets) :]
            addresses = [view.ptr for view in (*sources, *targets)]
            plan = self._plan(sources, targets)
            if any(item.place for item in self.targets):
                self.written.has_begun = True
            plan.queue(lane.stream, (*NO_INIT, self.applied.op.words, *addresses))
            self._store_results(down, pending)
            pending = self._fetch(down, lane, index, targets)
        self._store_results(down, pending)

    def _fill(self, slot: Any, lane: CopyLane, index: Any, views: Sequence[View]) -> None:
        offset = 0
        for operand, view in zip(self.sources, views, strict=True):
            if operand.place is None:
                block = operand.array[index]
                np.copyto(slot.array(block.shape, block.dtype, offset), block)
                staging.send(slot.address + offset, view.ptr, block.nbytes, lane.stream)
                offset += self.share
        slot.record(lane.stream)

    def _fetch(
        self, slot: Any, lane: CopyLane, index: Any, views: Sequence[View]
    ) -> list[tuple[Array, int]]:
        pending, offset = [], 0
        for operand, view in zip(self.targets, views, strict=True):
            if operand.place is None:
                out = operand.array[index]
                staging.fetch(view.ptr, slot.address + offset, out.nbytes, lane.stream)
                pending.append((out, offset))
                offset += self.share
        slot.record(lane.stream)
        return pending

    def _store_results(self, slot: Any, pending: list[tuple[Array, int]]) -> None:
        if pending:
            slot.wait()
            self.written.has_begun = True
        for out, offset in pending:
            np.copyto(out, slot.array(out.shape, out.dtype, offset))

    def _plan(self, sources: Sequence[View], targets: Sequence[View]) -> Plan:
        shape = targets[0].shape
        views = (*targets, *sources)
        key = (shape, *((view.ptr & 15, view.strides) for view in views))
        with self._lock:
            if key not in self._plans:
                self._plans[key] = cuda.plan_of(self.applied, sources, shape, targets)
            return self._plans[key]
