"""Trays: page-locked memory for a small call's arrays, and as much memory of the GPU.

Those for larger calls, whose arrays travel otherwise, are memory of the GPU alone.
A call takes a tray for itself and gives it back when its work has run; they are kept for the next.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from gpualgo._driver import driver
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check

TRAY_BYTES = 1 << 20  # of all arrays of a call, in each of both memories
MOST_TRAYS = 8  # of a device
LARGE_BYTES = 16 << 20  # of a larger one, in the GPU's memory
MOST_LARGE = 2


class Tray:
    """Memory of both sides; kernels see that of the host, if there is any, at the same address."""

    __slots__ = ("device", "host")

    def __init__(self, host_bytes: int, device_bytes: int) -> None:
        api = driver.api()
        self.host = 0
        if host_bytes:
            # 3: CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP, for every context and in place.
            self.host = int(check(api.cuMemHostAlloc(host_bytes, 3), "allocating pinned memory"))
        try:
            text = f"allocating {device_bytes} bytes"
            self.device = int(check(api.cuMemAlloc(device_bytes), text))
        except BaseException:
            if self.host:
                api.cuMemFreeHost(self.host)
            raise


class Trays:
    """The trays of one device and size, which its calls share."""

    def __init__(self, context: Context, host_bytes: int, device_bytes: int, most: int) -> None:
        self._context, self._sizes, self._most = context, (host_bytes, device_bytes), most
        self._idle: list[Tray] = []
        self._in_doubt: list[Tray] = []
        self._count = 0
        self._lock = threading.Lock()

    def take(self) -> Tray | None:
        """Return a tray that nobody uses; None: no further one can be had."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def give_back(self, tray: Tray) -> None:
        """End the use of a tray, whose work has run."""
        self._idle.append(tray)

    def give_back_in_doubt(self, tray: Tray) -> None:
        """End the use of a tray after an error: what was queued for it may be to run yet."""
        self._in_doubt.append(tray)
        with suppress(Exception), self._lock:
            self._settle()

    def _settle(self) -> None:
        """Wait for what trays are in doubt of; raise if that cannot be."""
        settled = list(self._in_doubt)
        with self._context.current():
            driver.settle(0)
        for tray in settled:
            self._in_doubt.remove(tray)
            self._idle.append(tray)

    def _new(self) -> Tray | None:
        with self._lock:
            if self._in_doubt:
                with suppress(Exception):
                    self._settle()
                    return self._idle.pop()
            if self._count >= self._most:
                return None
            try:
                with self._context.outside_capture():  # of whatever other threads record
                    tray = Tray(*self._sizes)
            except MemoryError:  # the call says so, if what it needs is not there either
                return None
            self._count += 1
            return tray
