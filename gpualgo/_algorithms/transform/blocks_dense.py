"""Transformation of large arrays without gaps on a GPU, in blocks: one thread leads, others copy.

Each block is filled, sent up, transformed and fetched on the next one of some lanes, and put in its
place when its lane's turn comes again: both directions of the bus are busy while the host copies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, stages, staging
from gpualgo._driver.lanes import SLOT_BYTES, Lane
from gpualgo._pipeline.problem import NO_START

NUM_LANES = 4
BLOCK_BYTES = 2 << 20  # of all inputs that travel, or of all results, whichever are more
_ALIGNED = 256  # elements: however wide they are, blocks begin as the first one does

Array = np.ndarray[Any, Any]
MakePlan = Callable[[list[View], list[View]], Plan]


class Operand(NamedTuple):
    """Where an array lies on the host, and where kernels take it in place; 0: it is pageable."""

    host: int
    place: int
    dtype: np.dtype[Any]


def operands_of(arrays: Sequence[Array], places: Sequence[View | None]) -> list[Operand] | None:
    """Return operands of one shape in C order without gaps; None if one of them is not such."""
    found = []
    for array, place in zip(arrays, places, strict=True):
        if not array.flags.c_contiguous or array.shape != arrays[0].shape:
            return None
        if records.is_position(array.dtype):  # which lies nowhere
            return None
        found.append(Operand(array.ctypes.data, 0 if place is None else place.ptr, array.dtype))
    return found


def transform(
    size: int, sources: Sequence[Operand], targets: Sequence[Operand], device: int,
    make_plan: MakePlan, words: bytes,
) -> None:  # fmt: skip
    """Transform so many elements; `make_plan` takes views of a block's sources and targets."""
    step = _num_items(sources, targets)
    found = gpu.get(device)
    stream = found.copy_stream
    with found.lanes.lend_some(min(NUM_LANES, -(-size // step))) as lanes:
        room = step * sum(one.dtype.itemsize for one in (*sources, *targets))
        with staging.device_buffers(device, stream, [room] * len(lanes)) as memories:
            driver.synchronize(stream)  # the memory is there for the lanes, too
            turns = [
                _Turn(*pair, sources, targets, step) for pair in zip(lanes, memories, strict=True)
            ]
            try:
                _run(size, step, turns, device, make_plan, words)
            finally:
                for lane in lanes:
                    driver.synchronize(lane.stream)


def _num_items(sources: Sequence[Operand], targets: Sequence[Operand]) -> int:
    """Return how many elements a block has."""
    sides = [[one.dtype.itemsize for one in side if not one.place] for side in (sources, targets)]
    widest = max(map(sum, sides))
    return max(1, min(BLOCK_BYTES, SLOT_BYTES) // (widest * _ALIGNED)) * _ALIGNED


def _run(
    size: int, step: int, turns: Sequence[_Turn], device: int, make_plan: MakePlan, words: bytes
) -> None:
    plans: dict[int, Plan] = {}
    for first, turn in zip(range(0, size, step), itertools.cycle(turns), strict=False):
        count = min(step, size - first)
        turn.land()
        turn.fill(first, count)
        if count not in plans:
            plans[count] = make_plan(*turn.views(first, count, device))
        addresses = (*turn.addresses(turn.sources, first), *turn.addresses(turn.targets, first))
        plans[count].queue(turn.lane.stream, (*NO_START, words, *addresses))
        turn.fetch(first, count)
    for turn in turns:  # in any order: each waits for its own
        turn.land()


class _Placed(NamedTuple):
    """An operand: its buffer of a lane, its memory of the device."""

    host: int
    place: int
    dtype: np.dtype[Any]
    buffer: int
    memory: int


class _Turn:
    """A lane with memory of the device, and the block whose results are under way on it."""

    def __init__(
        self, lane: Lane, memory: int, sources: Sequence[Operand], targets: Sequence[Operand],
        step: int,
    ) -> None:  # fmt: skip
        self.lane = lane
        self._down = lane.slots[1]
        self._block: tuple[int, int] | None = None
        placed: list[list[_Placed]] = []
        for slot, side in zip(lane.slots, (sources, targets), strict=True):
            placed.append([])
            buffer = slot.address
            for one in side:
                placed[-1].append(_Placed(*one, buffer, memory))
                memory += step * one.dtype.itemsize
                buffer += 0 if one.place else step * one.dtype.itemsize
        self.sources, self.targets = placed

    def addresses(self, side: Sequence[_Placed], first: int) -> list[int]:
        """Return where kernels find a block."""
        return [one.place + first * one.dtype.itemsize if one.place else one.memory for one in side]

    def views(self, first: int, count: int, device: int) -> tuple[list[View], list[View]]:
        """Return the views of a block, as plans are made for them."""
        sources, targets = (
            [
                dense_view(pointer, (count,), one.dtype, device)
                for pointer, one in zip(self.addresses(side, first), side, strict=True)
            ]
            for side in (self.sources, self.targets)
        )
        return sources, targets

    def fill(self, first: int, count: int) -> None:
        """Send a block's sources; the one before has come back."""
        for one in self.sources:
            if not one.place:
                size = count * one.dtype.itemsize
                stages.copy(one.buffer, one.host + first * one.dtype.itemsize, size)
                staging.send(one.buffer, one.memory, size, self.lane.stream)

    def fetch(self, first: int, count: int) -> None:
        """Have a block's results come back."""
        for one in self.targets:
            if not one.place:
                size = count * one.dtype.itemsize
                staging.fetch(one.memory, one.buffer, size, self.lane.stream)
        self._down.record(self.lane.stream)
        self._block = first, count

    def land(self) -> None:
        """Put the results that are under way in their place."""
        if self._block is None:
            return
        first, count = self._block
        self._block = None
        self._down.wait()
        for one in self.targets:
            if not one.place:
                size = count * one.dtype.itemsize
                stages.copy(one.host + first * one.dtype.itemsize, one.buffer, size)
