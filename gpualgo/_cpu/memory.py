"""Memory that begins at a cache line, some of which is kept for the next call."""

from __future__ import annotations

import numpy as np

from gpualgo._cpu.address import address

MEMORY_BYTES = 1 << 17  # of scratch memory that is kept


class Memory:
    """Memory that begins at a cache line, with its address."""

    __slots__ = ("address", "array", "num_bytes", "words")

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.array = np.empty(num_bytes + 64, np.uint8)
        start = -address(self.array) % 64
        self.address = address(self.array) + start
        self.words = self.array[start:][: num_bytes // 8 * 8].data.cast("q")


FREE: list[Memory] = []  # as many as calls were under way at once


def lent(num_bytes: int) -> Memory:
    """Return scratch memory."""
    if num_bytes <= MEMORY_BYTES:
        try:
            return FREE.pop()
        except IndexError:
            pass
    return Memory(max(num_bytes, MEMORY_BYTES))


def give_back(memory: Memory) -> None:
    """End a loan."""
    if memory.num_bytes == MEMORY_BYTES:
        FREE.append(memory)
