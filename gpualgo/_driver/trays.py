"""Trays: reusable buffers for calls on small host arrays, page-locked memory plus device memory.

Trays for larger calls have device memory only. A call owns a tray until its work has finished;
trays are reused.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from gpualgo._driver import driver
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check

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
        self._lock = threading.Lock()

    def take(self) -> SmallBuffer | None:
        """Return an unused tray; None if no further one can be allocated."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()

    def give_back(self, tray: SmallBuffer) -> None:
        """Return a tray whose work has finished."""
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
