"""A thread's sums of a joint or weighted histogram on the CPU, and their merge."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import cpu_joint_parameters as jk

Array = np.ndarray[Any, Any]

MANY = 1 << 28  # samples after which carries are propagated; words have room for 2^29
_MAP_NORESERVE = 0x4000  # Linux's; mmap has no name for it


class Tables:
    """A thread's memory, and the sums in it as [part][digit][slot of all rows]."""

    def __init__(self, memory: Array, at: int, parts: int, planes: int, span: int) -> None:
        self.memory, self.num_samples = memory, 0
        words = memory[at:].view(np.int64)
        self.head = words[: jk.HEAD]
        self.sums = words[jk.HEAD :].reshape(parts, planes, -1)
        self.is_float, self.span = planes > 1, span

    def join(self, other: Tables) -> None:
        """Add another thread's sums."""
        if not self.is_float:
            self.sums += other.sums
            return
        if self.num_samples + other.num_samples >= MANY:
            self.carry()
            other.carry()
        low, high = int(other.head[jk.LOW]), int(other.head[jk.HIGH])
        if high >= low:
            self.sums[:, low : high + self.span] += other.sums[:, low : high + self.span]
        if other.head[jk.SPECIALS]:
            self.sums[:, -1] |= other.sums[:, -1]
            self.head[jk.SPECIALS] = 1
        self._reach(low, high)

    def carry(self) -> None:
        """Propagate carries, leaving less than 32 bits in each word."""
        self.num_samples = 0
        if not self.is_float:
            return
        low, high = int(self.head[jk.LOW]), int(self.head[jk.HIGH])
        last = self.sums.shape[1] - 2  # the highest digit
        for digit in range(low, min(high + self.span, last)):
            word = self.sums[:, digit]
            self.sums[:, digit + 1] += word >> 32
            word &= 0xFFFF_FFFF
        if high >= low:
            self._reach(low, min(high + 1, last + 1 - self.span))

    def _reach(self, low: int, high: int) -> None:
        self.head[jk.LOW] = min(low, int(self.head[jk.LOW]))
        self.head[jk.HIGH] = max(high, int(self.head[jk.HIGH]))


def unreserved(num_bytes: int) -> Array:
    """Return zeroed bytes whose memory is allocated and accounted for when touched."""
    if sys.platform != "linux":
        return np.zeros(num_bytes, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, num_bytes, flags), np.uint8)
    except OSError:
        raise MemoryError(f"histogram: no {num_bytes} bytes of address space") from None
