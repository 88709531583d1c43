"""Page-locked blocks of host memory, through which calls copy pageable arrays to a GPU and back.

All calls of a device share its blocks. A call that copies large arrays uses them in turn: the host
fills or empties one while others are being copied. A call on small arrays uses one for all of them.
`copy_by` installs a multithreaded copy function (docs/adr/0032-threads-that-stand-by.md).
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._driver import driver
from gpualgo._driver.driver import Context, check

BLOCK_BYTES = 4 << 20
MOST_BLOCKS = 16  # per device, allocated on demand
MOST_IN_FLIGHT = 8  # of one download
SMALL_BYTES = 1 << 20  # all arrays of a call that uses one block, and a block's device memory

Copy: TypeAlias = Callable[[int, int, int], object]
Piece: TypeAlias = tuple[int, np.ndarray[Any, Any]]  # device offset, and host memory of one block

copy: Copy = ctypes.memmove  # copies host memory: target, source, size


def copy_by(how: Copy) -> None:
    """Install the function that fills and empties blocks."""
    global copy
    copy = how


class Block:
    """A pinned buffer, and an event that is recorded after its last copy.

    The buffer is pageable if no more memory can be pinned: the driver then copies it itself.
    """

    __slots__ = ("address", "bytes", "event", "is_in_doubt", "is_pinned", "is_used", "memory")

    def __init__(self) -> None:
        api = driver.api()
        self.event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        self.is_used = False  # the event has been recorded
        self.is_in_doubt = False  # work may be under way that the event does not cover
        self.memory = 0  # address of its device memory, see `Blocks.memory_of`
        self.is_pinned = True
        try:
            # 3: CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP: every context, mapped for kernels.
            result = api.cuMemHostAlloc(BLOCK_BYTES, 3)
            self.address = int(check(result, "allocating pinned memory"))
            raw = (ctypes.c_ubyte * BLOCK_BYTES).from_address(self.address)
            self.bytes: np.ndarray[Any, Any] = np.ctypeslib.as_array(raw)
        except MemoryError:
            self.is_pinned, self.bytes = False, np.empty(BLOCK_BYTES, np.uint8)
            self.address = self.bytes.ctypes.data

    def array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> np.ndarray[Any, Any]:
        """Return the buffer from an offset on as an array."""
        size = math.prod(shape) * dtype.itemsize
        return self.bytes[offset : offset + size].view(dtype).reshape(shape)

    @property
    def is_busy(self) -> bool:
        """Whether work may be under way that uses the block."""
        if self.is_used:
            with driver.relaxed():  # querying an event would invalidate captures
                self.is_used = driver.api().cuEventQuery(self.event)[0] != 0
        return self.is_used or self.is_in_doubt

    def wait(self) -> None:
        """Wait for the work that was queued before the last `record`."""
        if self.is_used:
            check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")
            self.is_used = False

    def record(self, stream: int) -> None:
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")
        self.is_used = True

    def send(self, source: np.ndarray[Any, Any], target: int, stream: int) -> None:
        """Fill the block from an array, and queue its copy to the device."""
        if source.flags.c_contiguous:
            copy(self.address, source.ctypes.data, source.nbytes)
        else:
            np.copyto(self.array(source.shape, source.dtype), source)
        self.is_in_doubt = True
        result = driver.api().cuMemcpyHtoDAsync(target, self.address, source.nbytes, stream)
        self._queued(result, "cuMemcpyHtoDAsync", stream)

    def fetch(self, source: int, size: int, stream: int) -> None:
        self.is_in_doubt = True
        result = driver.api().cuMemcpyDtoHAsync(self.address, source, size, stream)
        self._queued(result, "cuMemcpyDtoHAsync", stream)

    def _queued(self, result: Any, what: str, stream: int) -> None:
        self.is_in_doubt = result[0] == 0  # a refused copy is not in flight
        check(result, what)
        self.record(stream)
        self.is_in_doubt = False

    def land(self, target: np.ndarray[Any, Any]) -> None:
        """Copy what the block holds to an array, once it has arrived."""
        self.wait()
        if target.flags.c_contiguous:
            copy(target.ctypes.data, self.address, target.nbytes)
        else:
            np.copyto(target, self.array(target.shape, target.dtype))


class Blocks:
    """The blocks of one device, shared by its calls and reused."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._idle: deque[Block] = deque()  # those with a copy under way last
        self._count = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def take(self, is_waiting: bool = True) -> Block | None:
        """Return a block that nothing uses. If all are lent, wait for one or return None."""
        with self._lock:
            while not self._idle or self._idle[0].is_busy:
                if self._count < MOST_BLOCKS:
                    with self._context.outside_capture():  # exempt from captures of other threads
                        block = Block()
                    self._count += 1
                    return block
                if self._idle:
                    break
                if not is_waiting:
                    return None
                self._changed.wait()
            block = self._idle.popleft()
        if block.is_used or block.is_in_doubt:
            try:
                if block.is_in_doubt:
                    with self._context.outside_capture():
                        check(driver.api().cuCtxSynchronize(), "cuCtxSynchronize")
                    block.is_in_doubt = False
                block.wait()
            except BaseException:
                self.give_back(block)
                raise
        return block

    def give_back(self, block: Block, stream: int | None = None) -> None:
        """Return a block; after an error, wait for work on the stream that may still use it."""
        if block.is_in_doubt and stream is not None:
            with suppress(Exception):  # else the next call that takes it waits
                driver.settle(stream)
                block.is_in_doubt = False
        with self._lock:
            is_busy = block.is_used or block.is_in_doubt
            (self._idle.append if is_busy else self._idle.appendleft)(block)
            if self._count >= MOST_BLOCKS:  # somebody may wait for it
                self._changed.notify()

    def memory_of(self, block: Block) -> int:
        """Return the address of a block's device memory, of `SMALL_BYTES`."""
        if not block.memory:
            with self._context.outside_capture():
                result = driver.api().cuMemAlloc(SMALL_BYTES)
                block.memory = int(check(result, f"allocating {SMALL_BYTES} bytes"))
        return block.memory

    def upload(self, pieces: Iterable[Piece], target: int, stream: int) -> None:
        """Copy host memory to the device; on return it has been read."""
        for offset, source in pieces:
            block = self.take()
            assert block is not None
            try:
                block.send(source, target + offset, stream)
            finally:
                self.give_back(block, stream)

    def download(self, pieces: Iterable[Piece], source: int, stream: int) -> None:
        """Copy device memory to the host; complete on return.

        Each piece is requested from `pieces` while the previous ones are being copied. Nobody waits
        for a block while it has blocks.
        """
        in_flight: deque[tuple[Block, np.ndarray[Any, Any]]] = deque()

        def land() -> None:
            block, target = in_flight[0]
            block.land(target)
            in_flight.popleft()
            self.give_back(block)

        try:
            for offset, target in pieces:
                if len(in_flight) == MOST_IN_FLIGHT:
                    land()
                while (block := self.take(is_waiting=not in_flight)) is None:
                    land()
                in_flight.append((block, target))
                block.fetch(source + offset, target.nbytes, stream)
            while in_flight:
                land()
        finally:
            for block, _ in in_flight:
                self.give_back(block, stream)


# --- Copy lanes: streams with two blocks each, for calls that copy in both directions at once.

SLOT_BYTES = BLOCK_BYTES
# Per device. Upload of 256 MB: 6.5 ms with 16 lanes, 7.1 with 8, 8.3 with 4, 29 with one (H200).
MOST_LANES = 8


class CopyLane(NamedTuple):
    """A stream with two blocks: the host uses one while the other is copied."""

    stream: int
    slots: tuple[Block, Block]


class CopyLanes:
    """The lanes of one device: there are half as many as blocks, so that each gets two."""

    def __init__(self, new_stream: Callable[[], int], blocks: Blocks) -> None:
        self._new_stream, self._blocks = new_stream, blocks
        self._streams: list[int] = []
        self._free = threading.Semaphore(MOST_LANES)

    @contextmanager
    def lend(self) -> Iterator[CopyLane]:
        """Yield a lane, waiting for a free one; its work is finished when it is returned."""
        with self._free:
            stream = self._streams.pop() if self._streams else self._new_stream()
            slots: list[Any] = []
            try:
                for _ in range(2):
                    slots.append(self._blocks.take())
                    slots[-1].is_in_doubt = True
                yield CopyLane(stream, (slots[0], slots[1]))
                driver.synchronize(stream)
                for slot in slots:
                    slot.is_in_doubt = False
            finally:
                for slot in slots:
                    self._blocks.give_back(slot, stream)
                self._streams.append(stream)
