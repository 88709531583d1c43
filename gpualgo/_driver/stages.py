"""Stages: page-locked blocks through which pageable arrays without gaps travel to a GPU and back.

One block is filled, or emptied, while others travel. Each is filled by several threads where these
stand by: `copy` is told how (docs/adr/0032-threads-that-stand-by.md).
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from gpualgo._driver import driver
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check

BLOCK_BYTES = 4 << 20
FIRST_BYTES = 512 << 10  # of an upload's first block, so that the bus begins early
MOST_BLOCKS = 8  # of a stage, made as they are first needed
MOST_STAGES = 4  # of a device

Copy: TypeAlias = Callable[[int, int, int], object]
Part: TypeAlias = tuple[int, int, int]  # offset in the memory of the device, host address, bytes

copy: Copy = ctypes.memmove  # of memory of the host: target, source, size


def copy_by(how: Copy) -> None:
    """Fill and empty blocks by another function from now on."""
    global copy
    copy = how


class Block:
    """A piece of page-locked memory, and the event that says when the GPU is done with it."""

    __slots__ = ("address", "event", "is_in_doubt", "is_used")

    def __init__(self, address: int) -> None:
        self.address, self.is_used = address, False
        self.is_in_doubt = False  # a copy may be under way of which the event does not tell
        self.event = check(driver.api().cuEventCreate(2), "cuEventCreate")  # 2: no timing

    def wait(self) -> None:
        """Wait until what was queued before the last record has run."""
        if self.is_used:
            check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")
            self.is_used = False

    def send(self, target: int, size: int, stream: int) -> None:
        """Queue a copy of what it holds to the device."""
        self.is_in_doubt = True
        result = driver.api().cuMemcpyHtoDAsync(target, self.address, size, stream)
        self._record(result, "cuMemcpyHtoDAsync", stream)

    def fetch(self, source: int, size: int, stream: int) -> None:
        """Queue a copy from the device."""
        self.is_in_doubt = True
        result = driver.api().cuMemcpyDtoHAsync(self.address, source, size, stream)
        self._record(result, "cuMemcpyDtoHAsync", stream)

    def _record(self, result: Any, what: str, stream: int) -> None:
        self.is_in_doubt = result[0] == 0  # what the driver refuses is not under way
        check(result, what)
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")
        self.is_used, self.is_in_doubt = True, False


class Stage:
    """Blocks that one call uses in turn."""

    __slots__ = ("_context", "_most", "blocks", "turn")

    def __init__(self, context: Context) -> None:
        self._context, self._most, self.turn = context, MOST_BLOCKS, 0
        self.blocks: list[Block] = []
        self._add()

    def _add(self) -> None:
        with self._context.outside_capture():  # of whatever other threads record
            # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
            result = driver.api().cuMemHostAlloc(BLOCK_BYTES, 1)
            address = int(check(result, "allocating pinned memory"))
            try:
                self.blocks.append(Block(address))
            except BaseException:
                driver.api().cuMemFreeHost(address)
                raise

    def _grown(self, count: int) -> int:
        """Return how many blocks there are, after making further ones up to `count`."""
        while len(self.blocks) < min(count, self._most):
            try:
                self._add()
            except MemoryError:  # so much cannot be locked
                self._most = len(self.blocks)
        return len(self.blocks)

    def next(self) -> Block:
        """Return the block that has not been used for the longest time, once it is free."""
        self.turn %= self._grown(self.turn + 1)
        block = self.blocks[self.turn]
        self.turn += 1
        block.wait()
        return block

    def upload(self, parts: Sequence[Part], target: int, stream: int) -> None:
        """Copy memory of the host to the device; it has been read on return."""
        size = FIRST_BYTES
        for offset, source, length in parts:
            done = 0
            while done < length:
                size = min(size, length - done)
                block = self.next()
                copy(block.address, source + done, size)
                block.send(target + offset + done, size, stream)
                done += size
                size = BLOCK_BYTES

    def download(self, parts: Iterable[Part], source: int, stream: int) -> None:
        """Copy memory of the device to the host; it is there on return.

        A part is asked for when the one before is under way.
        """
        waiting: deque[tuple[Block, int, int]] = deque()
        for offset, target, length in parts:
            for done in range(0, length, BLOCK_BYTES):
                size = min(BLOCK_BYTES, length - done)
                if len(waiting) == self._grown(len(waiting) + 1):
                    _land(*waiting.popleft())
                block = self.next()
                block.fetch(source + offset + done, size, stream)
                waiting.append((block, target + done, size))
        while waiting:
            _land(*waiting.popleft())

    def settle(self, stream: int) -> None:
        """Wait after an error for the copies of which no event tells."""
        if any(block.is_in_doubt for block in self.blocks):
            driver.settle(stream)
        for block in self.blocks:
            block.is_in_doubt = False


def _land(block: Block, target: int, size: int) -> None:
    block.wait()
    copy(target, block.address, size)


class Stages:
    """The stages of one device, which its calls share; they are kept for the next call."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._idle: list[Stage] = []
        self._free = threading.Semaphore(MOST_STAGES)
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, stream: int) -> Iterator[Stage | None]:
        """Lend a stage, as soon as there is one, for copies on a stream; None: it cannot be had."""
        with self._free:
            stage = self._taken()
            if stage is None:
                yield None
                return
            stage.turn = 0  # blocks that are there rather than further ones
            try:
                yield stage
            except BaseException:
                with suppress(Exception):  # what cannot be waited for is not lent again
                    stage.settle(stream)
                    self._idle.append(stage)
                raise
            self._idle.append(stage)

    def _taken(self) -> Stage | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            try:
                return Stage(self._context)
            except MemoryError:  # so much cannot be locked
                return None
