"""Page-locked buffers for host arrays: one small buffer, and a ring of blocks."""

from __future__ import annotations

import ctypes
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import forks
from gpualgo._driver import driver
from gpualgo._driver.driver import Context, check

# --- Trays: reusable buffers for calls on small host arrays, page-locked memory plus device
# memory.
#
# Trays for larger calls have device memory only. A call owns a tray until its work has finished;
# trays are reused.

TRAY_BYTES = 1 << 20  # all arrays of a call, in host and device memory each
MOST_TRAYS = 8  # per device
LARGE_BYTES = 16 << 20  # of a larger tray, device memory only
MOST_LARGE = 2


class SmallBuffer:
    """A host and a device buffer; kernels access the host buffer at its host address."""

    __slots__ = ("device", "host")

    def __init__(self, host_bytes: int, device_bytes: int) -> None:
        api = driver.api()
        self.host = 0
        if host_bytes:
            # 3: CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP: every context, mapped for kernels.
            self.host = int(check(api.cuMemHostAlloc(host_bytes, 3), "allocating pinned memory"))
        try:
            text = f"allocating {device_bytes} bytes"
            self.device = int(check(api.cuMemAlloc(device_bytes), text))
        except BaseException:
            if self.host:
                api.cuMemFreeHost(self.host)
            raise


class SmallBuffers:
    """The trays of one size on one device, shared by its calls."""

    def __init__(self, context: Context, host_bytes: int, device_bytes: int, most: int) -> None:
        self._context, self._sizes, self._most = context, (host_bytes, device_bytes), most
        self._idle: list[SmallBuffer] = []
        self._in_doubt: list[SmallBuffer] = []
        self._count = 0
        self._lock = forks.Lock()

    def take(self) -> SmallBuffer | None:
        """Return an unused tray; None if no further one can be allocated."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def give_back(self, tray: SmallBuffer) -> None:
        self._idle.append(tray)

    def give_back_in_doubt(self, tray: SmallBuffer) -> None:
        """Return a tray after an error: queued work may still use it."""
        self._in_doubt.append(tray)
        with suppress(Exception), self._lock:
            self._settle()

    def _settle(self) -> None:
        """Wait for the work of trays returned after errors; raise if waiting fails."""
        pending = list(self._in_doubt)
        with self._context.current():
            driver.settle(0)
        for tray in pending:
            self._in_doubt.remove(tray)
            self._idle.append(tray)

    def _new(self) -> SmallBuffer | None:
        with self._lock:
            if self._in_doubt:
                with suppress(Exception):
                    self._settle()
                    return self._idle.pop()
            if self._count >= self._most:
                return None
            try:
                with self._context.outside_capture():  # exempt from captures of other threads
                    tray = SmallBuffer(*self._sizes)
            except MemoryError:  # the call allocates its own memory, or raises
                return None
            self._count += 1
            return tray


# --- Stages: rings of pinned blocks that copy contiguous pageable arrays to a GPU and back.
#
# The host fills or empties one block while others are being copied. `copy_by` installs a
# multithreaded copy function (docs/adr/0032-threads-that-stand-by.md).

BLOCK_BYTES = 4 << 20
FIRST_BYTES = 512 << 10  # smaller first block of an upload, so that the bus starts early
MOST_BLOCKS = 8  # per stage, allocated on demand
MOST_STAGES = 4  # per device

Copy: TypeAlias = Callable[[int, int, int], object]
Part: TypeAlias = tuple[int, int, int]  # device offset, host address, bytes

copy: Copy = ctypes.memmove  # copies host memory: target, source, size


def copy_by(how: Copy) -> None:
    """Install the function that fills and empties blocks."""
    global copy
    copy = how


class Block:
    """A pinned buffer, and an event that is recorded after its last copy."""

    __slots__ = ("address", "bytes", "event", "is_in_doubt", "is_used")

    def __init__(self, size: int) -> None:
        api = driver.api()
        # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
        self.address = int(check(api.cuMemHostAlloc(size, 1), "allocating pinned memory"))
        self.is_used = self.is_in_doubt = False  # in doubt: a copy that the event does not cover
        try:
            self.event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        except BaseException:
            api.cuMemFreeHost(self.address)
            raise
        raw = (ctypes.c_ubyte * size).from_address(self.address)
        self.bytes: np.ndarray[Any, Any] = np.ctypeslib.as_array(raw)

    def array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> np.ndarray[Any, Any]:
        """Return the buffer from an offset on as an array."""
        size = math.prod(shape) * dtype.itemsize
        return self.bytes[offset : offset + size].view(dtype).reshape(shape)

    def wait(self) -> None:
        if self.is_used:
            check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")
            self.is_used = False

    def send(self, target: int, size: int, stream: int) -> None:
        self.is_in_doubt = True
        result = driver.api().cuMemcpyHtoDAsync(target, self.address, size, stream)
        self.is_in_doubt = result[0] == 0  # a refused copy is not in flight
        check(result, "cuMemcpyHtoDAsync")
        self.record(stream)

    def fetch(self, source: int, size: int, stream: int) -> None:
        self.is_in_doubt = True
        result = driver.api().cuMemcpyDtoHAsync(self.address, source, size, stream)
        self.is_in_doubt = result[0] == 0
        check(result, "cuMemcpyDtoHAsync")
        self.record(stream)

    def record(self, stream: int) -> None:
        """Let `wait` wait for the work that is queued so far."""
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")
        self.is_used, self.is_in_doubt = True, False

    def free(self) -> None:
        """Free the buffer, which must be unused."""
        check(driver.api().cuEventDestroy(self.event), "cuEventDestroy")
        check(driver.api().cuMemFreeHost(self.address), "cuMemFreeHost")


class PinnedRing:
    """Blocks that one call uses in turn."""

    __slots__ = ("_context", "_most", "blocks", "turn")

    def __init__(self, context: Context) -> None:
        self._context, self._most, self.turn = context, MOST_BLOCKS, 0
        self.blocks: list[Block] = []
        self._add()

    def _add(self) -> None:
        with self._context.outside_capture():  # exempt from captures of other threads
            self.blocks.append(Block(BLOCK_BYTES))

    def _grow(self, count: int) -> int:
        """Allocate blocks until there are `count`, if possible; return how many there are."""
        while len(self.blocks) < min(count, self._most):
            try:
                self._add()
            except MemoryError:  # no more memory can be pinned
                self._most = len(self.blocks)
        return len(self.blocks)

    def next(self) -> Block:
        """Return the least recently used block once its copy has finished."""
        self.turn %= self._grow(self.turn + 1)
        block = self.blocks[self.turn]
        self.turn += 1
        block.wait()
        return block

    def upload(self, parts: Sequence[Part], target: int, stream: int) -> None:
        """Copy host memory to the device; on return it has been read."""
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
        """Copy device memory to the host; complete on return.

        Each part is requested from `parts` while the previous one is being copied.
        """
        in_flight: deque[tuple[Block, int, int]] = deque()
        for offset, target, length in parts:
            for done in range(0, length, BLOCK_BYTES):
                size = min(BLOCK_BYTES, length - done)
                if len(in_flight) == self._grow(len(in_flight) + 1):
                    _copy_out(*in_flight.popleft())
                block = self.next()
                block.fetch(source + offset + done, size, stream)
                in_flight.append((block, target + done, size))
        while in_flight:
            _copy_out(*in_flight.popleft())

    def settle(self, stream: int) -> None:
        """After an error, wait for copies that no event covers."""
        if any(block.is_in_doubt for block in self.blocks):
            driver.settle(stream)
        for block in self.blocks:
            block.is_in_doubt = False


def _copy_out(block: Block, target: int, size: int) -> None:
    block.wait()
    copy(target, block.address, size)


class PinnedRings:
    """The stages of one device, shared by its calls and reused."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._idle: list[PinnedRing] = []
        self._free = threading.Semaphore(MOST_STAGES)
        self._lock = forks.Lock()

    @contextmanager
    def lend(self, stream: int) -> Iterator[PinnedRing | None]:
        """Yield a stage for copies on a stream, once one is free; None if memory is short."""
        with self._free:
            stage = self._take()
            if stage is None:
                yield None
                return
            stage.turn = 0  # start with blocks that are allocated already
            try:
                yield stage
            except BaseException:
                with suppress(Exception):  # a stage that cannot be waited for is dropped
                    stage.settle(stream)
                    self._idle.append(stage)
                raise
            self._idle.append(stage)

    def _take(self) -> PinnedRing | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            try:
                return PinnedRing(self._context)
            except MemoryError:  # no more memory can be pinned
                return None


# --- Copy lanes: streams with pinned buffers, for large strided pageable arrays.

SLOT_BYTES = 4 << 20  # size of a pinned buffer
# Per device. Upload of 256 MB: 6.5 ms with 16 lanes, 7.1 with 8, 8.3 with 4, 29 with one (H200).
MOST_LANES = 8


class CopyLane:
    """A stream with two pinned buffers: the host uses one while the other is copied."""

    __slots__ = ("slots", "stream")

    def __init__(self, new_stream: Callable[[], int]) -> None:
        first = Block(SLOT_BYTES)
        try:
            second = Block(SLOT_BYTES)
        except BaseException:
            first.free()
            raise
        self.stream, self.slots = new_stream(), (first, second)


class CopyLanes:
    """The lanes of one device, shared by its calls and reused."""

    def __init__(self, new_stream: Callable[[], int]) -> None:
        self._new_stream = new_stream
        self._idle: list[CopyLane] = []
        self._count = 0  # number of lanes created
        self._changed = threading.Condition(forks.Lock())

    @contextmanager
    def lend(self) -> Iterator[CopyLane]:
        """Yield a lane, waiting for a free one; its work is finished when it is returned.

        If no memory can be pinned for another lane, calls share the existing ones.
        """
        lane, is_idle = self._take(), False
        try:
            try:
                yield lane
                driver.synchronize(lane.stream)
            except BaseException:
                driver.settle(lane.stream)
                is_idle = True
                raise
            is_idle = True
        finally:
            with self._changed:
                if is_idle:
                    self._idle.append(lane)
                else:  # its state is unknown: drop it
                    self._count -= 1
                self._changed.notify()

    def _take(self) -> CopyLane:
        with self._changed:
            while not self._idle:
                if self._count < MOST_LANES:
                    try:
                        lane = CopyLane(self._new_stream)
                    except MemoryError:
                        if not self._count:
                            raise
                    else:
                        self._count += 1
                        return lane
                self._changed.wait()
            return self._idle.pop()
