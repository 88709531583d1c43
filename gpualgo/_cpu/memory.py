"""Memory aligned to cache lines; a pool keeps scratch memory for later calls."""

from __future__ import annotations

import numpy as np

from gpualgo._cpu.address import address

MEMORY_BYTES = 1 << 17  # size of pooled scratch memory


class Memory:
    """A block aligned to a cache line, and its address."""

    __slots__ = ("address", "array", "num_bytes", "words")

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.array = np.empty(num_bytes + 64, np.uint8)
        start = -address(self.array) % 64
        self.address = address(self.array) + start
        self.words = self.array[start:][: num_bytes // 8 * 8].data.cast("q")


FREE: list[Memory] = []  # unused blocks of MEMORY_BYTES


def take_scratch(num_bytes: int) -> Memory:
    """Return scratch memory of at least this size."""
    if num_bytes <= MEMORY_BYTES:
        try:
            return FREE.pop()
        except IndexError:
            pass
    return Memory(max(num_bytes, MEMORY_BYTES))


def return_scratch(memory: Memory) -> None:
    """Return scratch memory to the pool."""
    if memory.num_bytes == MEMORY_BYTES:
        FREE.append(memory)
