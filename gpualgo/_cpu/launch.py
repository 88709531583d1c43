"""A kernel's launch, prepared once: its arguments packed, with places for addresses.

A warm call writes the addresses into memory that is lent to it and runs the kernel: no layout is
looked at again, no memory asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import Kernel

_MEMORY_BYTES = 1 << 17  # of memory that is kept: arguments and a thread's scratch memory
_put = struct.Struct("q").pack_into


class _Memory:
    """Memory that begins at a cache line, with its address."""

    __slots__ = ("address", "array", "num_bytes", "words")

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.array = np.empty(num_bytes + 64, np.uint8)
        start = -address(self.array) % 64
        self.address = address(self.array) + start
        self.words = self.array[start:].data


_free: list[_Memory] = []  # as many as calls were under way at once


class Launch:
    """A kernel and its table of arguments but for some words, which each call brings."""

    __slots__ = (
        "_is_light", "_kernel", "_places", "_scratch_at", "_size", "_table", "_table_bytes",
        "_tasks", "_work",
    )  # fmt: skip

    def __init__(
        self, kernel: Kernel, table: np.ndarray[Any, Any], places: Sequence[int],
        scratch_bytes: int, tasks: int, work: int,
    ) -> None:  # fmt: skip
        """`places`: where in the table words are to come; `work`: as of `threads.run`."""
        self._kernel, self._table = kernel, table.tobytes()
        self._places = tuple([8 * place for place in places])
        self._table_bytes = len(self._table)
        self._scratch_at = -(-self._table_bytes // 64) * 64
        self._size = self._scratch_at + scratch_bytes
        self._tasks, self._work = tasks, work
        self._is_light = False  # the last call was over before another thread would have helped

    def __call__(self, words: Sequence[int]) -> None:
        """Run the kernel with these words in their places."""
        memory = _lent(self._size)
        table, at, work = memory.words, memory.address, self._work
        table[: self._table_bytes] = self._table
        for place, word in zip(self._places, words, strict=True):
            _put(table, place, word)
        if work <= threads.SMALL_BYTES:
            self._kernel(at, at + self._scratch_at, 0, self._tasks)
        elif self._is_light and work < threads.LARGE_BYTES:
            start = perf_counter()
            self._kernel(at, at + self._scratch_at, 0, self._tasks)
            self._is_light = perf_counter() - start < 2 * threads.WAKE_SECONDS
        else:
            self._is_light = threads.run(partial(self._run, at), self._tasks, work)
        _give_back(memory)

    def _run(self, at: int, first: int, last: int) -> None:
        memory = _lent(self._size)
        self._kernel(at, memory.address + self._scratch_at, first, last)
        _give_back(memory)


def _lent(num_bytes: int) -> _Memory:
    if num_bytes <= _MEMORY_BYTES:
        try:
            return _free.pop()
        except IndexError:
            pass
    return _Memory(max(num_bytes, _MEMORY_BYTES))


def _give_back(memory: _Memory) -> None:
    if memory.num_bytes == _MEMORY_BYTES:
        _free.append(memory)
