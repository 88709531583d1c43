"""Page-locked buffers that pageable memory travels through; they are kept for the next call."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpualgo._driver import driver
from gpualgo._driver.driver import check

CHUNK_BYTES = 32 << 20  # of each page-locked buffer; larger gains nothing on PCIe 5
NUM_SLOTS = 3


class Slot:
    """A page-locked buffer and the event that says when the GPU is done with it."""

    __slots__ = ("address", "bytes", "event")

    def __init__(self) -> None:
        api = driver.api()
        # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
        self.address = int(check(api.cuMemHostAlloc(CHUNK_BYTES, 1), "allocating pinned memory"))
        raw = (ctypes.c_ubyte * CHUNK_BYTES).from_address(self.address)
        self.bytes: np.ndarray[Any, Any] = np.ctypeslib.as_array(raw)
        self.event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing

    def array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> np.ndarray[Any, Any]:
        """Return the buffer's bytes from an offset on as an array."""
        size = math.prod(shape) * dtype.itemsize
        return self.bytes[offset : offset + size].view(dtype).reshape(shape)

    def wait(self) -> None:
        """Wait until what was queued before the last record has run."""
        check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")

    def free(self) -> None:
        """Give the page-locked memory back; nothing may use the slot any more."""
        check(driver.api().cuEventDestroy(self.event), "cuEventDestroy")
        check(driver.api().cuMemFreeHost(self.address), "cuMemFreeHost")

    def record(self, stream: int) -> None:
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")


class Slots:
    """The page-locked buffers of one device that no call uses, kept for the next one."""

    def __init__(self) -> None:
        self._idle: list[Slot] = []
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, count: int) -> Iterator[list[Slot]]:
        """Lend page-locked buffers."""
        with self._lock:
            lent = [self._idle.pop() for _ in range(min(count, len(self._idle)))]
        try:
            while len(lent) < count:
                lent.append(Slot())
            yield lent
        finally:
            for slot in lent:  # after an error, too: the GPU may be reading it
                slot.wait()
            with self._lock:
                self._idle.extend(lent)
                surplus = self._idle[2 * NUM_SLOTS :]
                del self._idle[2 * NUM_SLOTS :]
            for slot in surplus:
                slot.free()
