"""Transformation of pageable arrays on a GPU, in blocks that go down two lanes in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.transform import cuda
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View, dense_view
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging
from gpualgo._pipeline import host_whole
from gpualgo._pipeline.problem import NO_START

if TYPE_CHECKING:
    from gpualgo._algorithms.transform.problem import Transformation

Array = np.ndarray[Any, Any]


class _Lane:
    """A stream with page-locked and device memory for one block of every operand."""

    def __init__(self, stream: int, slot: staging.Slot, memory: int, share: int) -> None:
        self.stream, self.slot, self.memory, self.share = stream, slot, memory, share
        self.waiting: list[tuple[Array, int]] = []  # where the last block's results belong
        self.is_busy = False

    def start(
        self, applied: Applied, operands: Sequence[_Operand], index: Any, device: int,
        plans: dict[Any, Plan],
    ) -> None:  # fmt: skip
        """Queue one block, the first operands the outputs: up, through the kernel, and down."""
        count = len(applied.outputs)
        views = [
            operand.view(index, self.memory + number * self.share, device)
            for number, operand in enumerate(operands)
        ]
        for number, operand in enumerate(operands[count:], start=count):
            if operand.place is None:
                block, offset = operand.array[index], number * self.share
                staging.copy(self.slot.array(block.shape, block.dtype, offset), block)
                staging.send(
                    self.slot.address + offset, self.memory + offset, block.nbytes, self.stream
                )
        targets, sources = views[:count], views[count:]
        shape = targets[0].shape
        key = (shape, *(view.ptr & 15 for view in views))
        if key not in plans:
            plans[key] = cuda.plan_of(applied, sources, shape, targets)
        addresses = [view.ptr for view in (*sources, *targets)]
        plans[key].queue(self.stream, (*NO_START, applied.op.words, *addresses))
        for number, operand in enumerate(operands[:count]):
            if operand.place is None:
                out, offset = operand.array[index], number * self.share
                slot = self.slot.address + offset
                staging.fetch(targets[number].ptr, slot, out.nbytes, self.stream)
                self.waiting.append((out, offset))
        self.slot.record(self.stream)
        self.is_busy = True

    def finish(self) -> None:
        """Wait for the block under way and put its results where they belong."""
        if self.is_busy:
            self.slot.wait()
            self.is_busy = False
        for out, offset in self.waiting:
            staging.copy(out, self.slot.array(out.shape, out.dtype, offset))
        self.waiting = []


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
    problem: Transformation, applied: Applied, arrays: Sequence[Array], outs: Sequence[Array],
    stream: Any, places: list[View | None],
) -> None:  # fmt: skip
    """Transform arrays of which some are pageable; the device is current."""
    where, device = problem.where, problem.device
    handle = host_whole.handle_on(device, stream, outs[0], where)
    if stream is not None:
        is_input = places.index(None) < len(arrays)
        driver.refuse_capture(handle, host_whole.pageable(is_input, where))
    if stream is not None or any(places):  # what was queued there comes first
        driver.synchronize(handle)
    _run(applied, arrays, outs, device, places)


def _run(
    applied: Applied, arrays: Sequence[Array], outs: Sequence[Array], device: int,
    places: list[View | None],
) -> None:  # fmt: skip
    """Send blocks down two lanes in turn: one is filled while the other travels and computes."""
    operands = [
        _Operand(array, place)
        for array, place in zip(
            (*outs, *arrays), (*places[len(arrays) :], *places[: len(arrays)]), strict=True
        )
    ]
    limit = staging.CHUNK_BYTES // len(operands) & -256
    widest = max(operand.array.dtype.itemsize for operand in operands)
    blocks = [(*index, ...) for index in staging.pieces(outs[0].shape, widest, limit)]
    share = min(limit, -(-outs[0].size * widest // 256) * 256)  # of the memory, for one operand
    streams = gpu.get(device).lanes[: len(blocks)]
    size = share * len(operands)
    plans: dict[Any, Plan] = {}
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
            lane.start(applied, operands, index, device, plans)
        for number in range(len(blocks), len(blocks) + len(lanes)):
            lanes[number % len(lanes)].finish()
