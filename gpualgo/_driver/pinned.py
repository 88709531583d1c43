"""Page-locked buffers for host arrays: one small buffer, and a ring of blocks."""

from __future__ import annotations

import ctypes
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from gpualgo._base import forks
from gpualgo._driver import driver
from gpualgo._driver.driver import Context, check

# --- What calls borrow: each thing is used by one call at a time, and returned for later ones.


class Lendable(Protocol):
    def settle(self) -> None:
        """After an error, wait for queued work that may still use it."""


Thing = TypeVar("Thing", bound=Lendable)


class Lender(Generic[Thing]):
    """The things of one kind on one device; up to `most` are made when none is unused."""

    def __init__(self, context: Context, make: Callable[[], Thing], most: int) -> None:
        self._context, self._make, self._most = context, make, most
        self._idle: list[Thing] = []
        self._in_doubt: list[Thing] = []  # after errors: queued work may still use them
        self._count = 0  # number made
        self._changed = threading.Condition(forks.Lock())

    def take(self) -> Thing | None:
        """Return an unused one; None if all are in use, or no memory is left for another."""
        try:
            return self._idle.pop()
        except IndexError:
            with suppress(MemoryError):
                return self._new()
            return None

    def give_back(self, thing: Thing) -> None:
        self._idle.append(thing)

    def give_back_in_doubt(self, thing: Thing) -> None:
        """Return one after an error; it is lent again once its work could be waited for."""
        self._in_doubt.append(thing)
        with suppress(Exception), self._changed:
            self._settle()

    @contextmanager
    def lend(self) -> Iterator[Thing]:
        """Yield one, after waiting while all are in use; MemoryError if not even one is made."""
        with self._changed:
            while (thing := self._idle.pop() if self._idle else self._new()) is None:
                if self._count == len(self._in_doubt):  # nobody will return one
                    self._settle()
                else:
                    self._changed.wait()
        try:
            yield thing
        except BaseException:
            self.give_back_in_doubt(thing)
            raise
        else:
            self.give_back(thing)
        finally:
            with self._changed:
                self._changed.notify_all()  # after errors, none may be left for those that wait

    def _settle(self) -> None:
        """Wait for the work of those returned after errors; raise if waiting fails."""
        with self._context.current():
            for thing in list(self._in_doubt):
                thing.settle()
                self._in_doubt.remove(thing)
                self._idle.append(thing)

    def _new(self) -> Thing | None:
        """Return one more; None if all are in use."""
        with self._changed:
            if self._in_doubt:
                with suppress(Exception):
                    self._settle()
                    return self._idle.pop()
            if self._count >= self._most:
                return None
            try:
                with self._context.outside_capture():  # exempt from captures of other threads
                    thing = self._make()
            except MemoryError:
                if self._count == len(self._in_doubt):
                    raise
                return None
            self._count += 1
            return thing


# --- Trays: reusable buffers for calls on small host arrays, page-locked memory plus device
# memory.
#
# If none is left, a call allocates its own memory.

TRAY_BYTES = 1 << 20  # all arrays of a call, in host and device memory each
MOST_TRAYS = 8  # per device


class SmallBuffer:
    """A host and a device buffer; kernels access the host buffer at its host address."""

    __slots__ = ("device", "host")

    def __init__(self, num_bytes: int) -> None:
        api = driver.api()
        # 3: CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP: every context, mapped for kernels.
        self.host = int(check(api.cuMemHostAlloc(num_bytes, 3), "allocating pinned memory"))
        try:
            self.device = int(check(api.cuMemAlloc(num_bytes), f"allocating {num_bytes} bytes"))
        except BaseException:
            api.cuMemFreeHost(self.host)
            raise

    def settle(self) -> None:
        driver.settle(0)


# --- Stages: rings of pinned blocks that copy contiguous pageable arrays to a GPU and back.
#
# The host fills or empties one block while others are being copied. `_pipeline/host_whole.py`
# replaces `copy` by a multithreaded function (docs/adr/0032-threads-that-stand-by.md).

BLOCK_BYTES = 4 << 20
FIRST_BYTES = 512 << 10  # smaller first block of an upload, so that the bus starts early
MOST_BLOCKS = 8  # per stage, allocated on demand
MOST_STAGES = 4  # per device

Copy: TypeAlias = Callable[[int, int, int], object]
Part: TypeAlias = tuple[int, int, int]  # device address, host address, bytes

copy: Copy = ctypes.memmove  # copies host memory: target, source, size


class Block:
    """A pinned buffer, and an event that is recorded after its last copy."""

    __slots__ = ("address", "bytes", "event", "is_in_doubt", "is_used")

    def __init__(self, size: int) -> None:
        api = driver.api()
        # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
        self.address = int(check(api.cuMemHostAlloc(size, 1), "allocating pinned memory"))
        self.is_used = self.is_in_doubt = False  # in doubt: a copy that the event does not cover
        try:
            self.event = driver.new_event()
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
        driver.record(stream, self.event)
        self.is_used, self.is_in_doubt = True, False

    def free(self) -> None:
        """Free the buffer, which must be unused."""
        check(driver.api().cuEventDestroy(self.event), "cuEventDestroy")
        check(driver.api().cuMemFreeHost(self.address), "cuMemFreeHost")


class PinnedRing:
    """Blocks that one call uses in turn."""

    __slots__ = ("_context", "_most", "_stream", "blocks", "turn")

    def __init__(self, context: Context) -> None:
        self._context, self._most = context, MOST_BLOCKS
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

    def _begin(self, stream: int) -> None:
        self._stream, self.turn = stream, 0  # start with blocks that are allocated already

    def upload(self, parts: Iterable[Part], stream: int) -> None:
        """Copy host memory to the device; on return it has been read."""
        self._begin(stream)
        size = FIRST_BYTES
        for target, source, length in parts:
            done = 0
            while done < length:
                size = min(size, length - done)
                block = self.next()
                copy(block.address, source + done, size)
                block.send(target + done, size, stream)
                done += size
                size = BLOCK_BYTES

    def download(self, parts: Iterable[Part], stream: int) -> None:
        """Copy device memory to the host; complete on return.

        Each part is requested from `parts` while the previous one is being copied.
        """
        self._begin(stream)
        in_flight: deque[tuple[Block, int, int]] = deque()
        for source, target, length in parts:
            for done in range(0, length, BLOCK_BYTES):
                size = min(BLOCK_BYTES, length - done)
                if len(in_flight) == self._grow(len(in_flight) + 1):
                    _copy_out(*in_flight.popleft())
                block = self.next()
                block.fetch(source + done, size, stream)
                in_flight.append((block, target + done, size))
        while in_flight:
            _copy_out(*in_flight.popleft())

    def settle(self) -> None:
        """Wait for copies that no event covers."""
        if any(block.is_in_doubt for block in self.blocks):
            driver.settle(self._stream)
        for block in self.blocks:
            block.is_in_doubt = False


def _copy_out(block: Block, target: int, size: int) -> None:
    block.wait()
    copy(target, block.address, size)


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

    def settle(self) -> None:
        driver.settle(self.stream)
