"""Lanes: streams on which pieces of pageable arrays travel, by page-locked memory of their own."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpualgo._driver import driver
from gpualgo._driver.driver import check

SLOT_BYTES = 4 << 20  # of a page-locked buffer
# Of a device: 256 MB go up in 6.5 ms by 16 lanes, in 7.1 by 8, 8.3 by 4, 29 by one (one H200).
MOST_LANES = 8


class Slot:
    """A page-locked buffer and the event that says when the GPU is done with it."""

    __slots__ = ("address", "bytes", "event")

    def __init__(self) -> None:
        api = driver.api()
        # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
        self.address = int(check(api.cuMemHostAlloc(SLOT_BYTES, 1), "allocating pinned memory"))
        raw = (ctypes.c_ubyte * SLOT_BYTES).from_address(self.address)
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

    def record(self, stream: int) -> None:
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")

    def free(self) -> None:
        """Give it back; nothing may use it any more."""
        check(driver.api().cuEventDestroy(self.event), "cuEventDestroy")
        check(driver.api().cuMemFreeHost(self.address), "cuMemFreeHost")


class Lane:
    """A stream and two page-locked buffers: one is filled or emptied while the other travels."""

    __slots__ = ("slots", "stream")

    def __init__(self, new_stream: Callable[[], int]) -> None:
        first = Slot()
        try:
            second = Slot()
        except BaseException:
            first.free()
            raise
        self.stream, self.slots = new_stream(), (first, second)


class Lanes:
    """The lanes of one device, which its calls share; they are kept for the next call."""

    def __init__(self, new_stream: Callable[[], int]) -> None:
        self._new_stream = new_stream
        self._idle: list[Lane] = []
        self._count = 0  # that there are
        self._changed = threading.Condition()

    @contextmanager
    def lend(self) -> Iterator[Lane]:
        """Lend a lane, as soon as there is one; its work has run when it is given back.

        Where no memory can be locked for a further one, those that there are have to do.
        """
        lane, is_idle = self._taken(), False
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
                else:  # nobody knows what it still does
                    self._count -= 1
                self._changed.notify()

    def _taken(self) -> Lane:
        with self._changed:
            while not self._idle:
                if self._count < MOST_LANES:
                    try:
                        lane = Lane(self._new_stream)
                    except MemoryError:
                        if not self._count:
                            raise
                    else:
                        self._count += 1
                        return lane
                self._changed.wait()
            return self._idle.pop()
