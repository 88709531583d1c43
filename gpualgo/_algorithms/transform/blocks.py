"""Transformation of pageable arrays on a GPU, in blocks that go down two lanes in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.transform import cuda
from gpualgo._arrays.view import View, dense_view
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_whole
from gpualgo._pipeline.problem import NO_START

if TYPE_CHECKING:
    from gpualgo._algorithms.transform.problem import Transformation

Array = np.ndarray[Any, Any]


class _Lane:
    """A stream with page-locked and device memory for one block of every operand."""

    def __init__(self, stream: int, slot: staging.Slot, memory: int, share: int) -> None:
        self.stream, self.slot, self.memory, self.share = stream, slot, memory, share
        self.waiting: Array | None = None  # where the last block's result belongs
        self.is_busy = False

    def start(
        self, op: Operator, operands: Sequence[_Operand], index: Any, device: int,
        plans: dict[Any, Plan],
    ) -> None:  # fmt: skip
        """Queue one block, the first operand the output: up, through the kernel, and down."""
        views = [
            operand.view(index, self.memory + number * self.share, device)
            for number, operand in enumerate(operands)
        ]
        for number, operand in enumerate(operands[1:], start=1):
            if operand.place is None:
                block, offset = operand.array[index], number * self.share
                staging.copy(self.slot.array(block.shape, block.dtype, offset), block)
                staging.send(
                    self.slot.address + offset, self.memory + offset, block.nbytes, self.stream
                )
        target, sources, out = views[0], views[1:], operands[0].array[index]
        key = (target.shape, *(view.ptr & 15 for view in views))
        if key not in plans:
            plans[key] = cuda.plan_of(op, sources, out.shape, target)
        addresses = [view.ptr for view in (*sources, target)]
        plans[key].queue(self.stream, (*NO_START, op.words, *addresses))
        if operands[0].place is None:
            staging.fetch(target.ptr, self.slot.address, out.nbytes, self.stream)
            self.waiting = out
        self.slot.record(self.stream)
        self.is_busy = True

    def finish(self) -> None:
        """Wait for the block under way and put its result where it belongs."""
        if self.is_busy:
            self.slot.wait()
            self.is_busy = False
        if self.waiting is not None:
            out, self.waiting = self.waiting, None
            staging.copy(out, self.slot.array(out.shape, out.dtype))


class _Operand:
    """A host array of a transformation, and its view if kernels take it in place."""

    def __init__(self, array: Array, place: View | None) -> None:
        self.array, self.place = array, place

    def view(self, index: Any, staged: int, device: int) -> View:
        """Return what the kernel sees of a block: itself, or memory of the device."""
        block = self.array[index]
        if self.place is None:
            return dense_view(staged, block.shape, block.dtype, device)
        offset = block.__array_interface__["data"][0] - self.array.__array_interface__["data"][0]
        return self.place._replace(
            ptr=self.place.ptr + offset, shape=block.shape, strides=block.strides
        )


def transform(
    problem: Transformation, op: Operator, arrays: Sequence[Array], out: Array, stream: Any,
    places: list[View | None],
) -> None:  # fmt: skip
    """Transform arrays of which some are pageable; the device is current."""
    where, device = problem.where, problem.device
    handle = host_whole.handle_on(device, stream, out, where)
    if stream is not None:
        is_input = places.index(None) < len(arrays)
        driver.refuse_capture(handle, host_whole.pageable(is_input, where))
    if stream is not None or any(places):  # what was queued there comes first
        driver.synchronize(handle)
    _run(op, arrays, out, device, places)


def _run(
    op: Operator, arrays: Sequence[Array], out: Array, device: int, places: list[View | None]
) -> None:
    """Send blocks down two lanes in turn: one is filled while the other travels and computes."""
    limit = staging.CHUNK_BYTES // (len(arrays) + 1) & -256
    widest = max(out.dtype.itemsize, *(a.dtype.itemsize for a in arrays))
    blocks = [(*index, ...) for index in staging.pieces(out.shape, widest, limit)]
    share = min(limit, -(-out.size * widest // 256) * 256)  # of the memory, for one operand
    streams = gpu.get(device).lanes[: len(blocks)]
    size = share * (len(arrays) + 1)
    plans: dict[Any, Plan] = {}
    operands = [
        _Operand(array, place)
        for array, place in zip((out, *arrays), (places[-1], *places), strict=False)
    ]
    with (
        staging.device_buffers(device, streams[0], [size] * len(streams)) as memories,
        gpu.get(device).slots.lend(len(streams)) as slots,
    ):
        driver.synchronize(streams[0])  # the memory is there for the other lane, too
        lanes = [
            _Lane(stream, slot, memory, share)
            for stream, slot, memory in zip(streams, slots, memories, strict=True)
        ]
        for number, index in enumerate(blocks):
            lane = lanes[number % len(lanes)]
            lane.finish()
            lane.start(op, operands, index, device, plans)
        for number in range(len(blocks), len(blocks) + len(lanes)):
            lanes[number % len(lanes)].finish()
