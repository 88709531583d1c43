"""A kernel's launch, prepared once: its arguments packed, with places for addresses.

A warm call writes the addresses into memory that is lent to it and runs the kernel: no layout is
looked at again, no memory asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import Kernel, check, get_kernel, unchecked
from gpualgo._cpu.parameters import ENTRY, STEP, TABLE, TASKS

_MEMORY_BYTES = 1 << 17  # of scratch memory that is kept


class _Memory:
    """Memory that begins at a cache line, with its address."""

    __slots__ = ("address", "array", "num_bytes", "words")

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.array = np.empty(num_bytes + 64, np.uint8)
        start = -address(self.array) % 64
        self.address = address(self.array) + start
        self.words = self.array[start:][: num_bytes // 8 * 8].data.cast("q")


_free: list[_Memory] = []  # as many as calls were under way at once


class Launch:
    """A kernel and its table of arguments but for some words, which each call brings."""

    __slots__ = (
        "_held", "_is_light", "_kernel", "_run_kernel", "_tables", "places", "scratch_bytes",
        "table", "tasks", "work",
    )  # fmt: skip

    def __init__(
        self, kernel: Kernel, table: np.ndarray[Any, Any], places: Sequence[int],
        scratch_bytes: int, tasks: int, work: int, held: Any = None,
    ) -> None:  # fmt: skip
        """`places`: where in the table words are to come; `work`: as of `threads.run`.

        `held`: code whose address is in the table.
        """
        self._kernel, self.table, self._held = kernel, table, held
        self._run_kernel = unchecked(kernel)
        self.places, self.scratch_bytes = tuple(places), scratch_bytes
        self.tasks, self.work = tasks, work
        self._tables: list[_Memory] = []  # as many as calls of it were under way at once
        self._is_light = False  # the last call was over before another thread would have helped

    @property
    def is_alone(self) -> bool:
        """Whether the next call is one thread's, as far as is known."""
        work = self.work
        return work <= threads.SMALL_BYTES or (self._is_light and work < threads.LARGE_BYTES)

    @property
    def entry(self) -> int:
        """The address of the kernel's code."""
        loaded: Any = self._kernel
        return int(loaded.loaded.address)

    def __call__(self, words: Sequence[int]) -> None:
        """Run the kernel with these words in their places."""
        try:
            table = self._tables.pop()
        except IndexError:
            table = self.filled()
        at, values, work = table.address, table.words, self.work
        for place, word in zip(self.places, words, strict=True):
            values[place] = word
        if work <= threads.SMALL_BYTES:
            self._run(at, 0, self.tasks)
        elif self._is_light and work < threads.LARGE_BYTES:
            start = perf_counter()
            self._run(at, 0, self.tasks)
            self.has_taken(perf_counter() - start)
        else:
            self._is_light = threads.run(partial(self._run, at), self.tasks, work)
        self._tables.append(table)

    def has_taken(self, seconds: float) -> None:
        """Remember whether a call by one thread was over before another would have helped."""
        self._is_light = seconds < 2 * threads.WAKE_SECONDS

    def filled(self) -> _Memory:
        """Return memory that holds the table."""
        memory = _Memory(self.table.nbytes)
        memory.words[:] = memoryview(self.table.tobytes()).cast("q")
        return memory

    def _run(self, at: int, first: int, last: int) -> None:
        memory = lent(self.scratch_bytes)
        if self._run_kernel(at, memory.address, first, last):
            check(1)
        give_back(memory)


class Steps:
    """Launches of which each reads what the one before has written: one call, by one thread.

    The words of each are one more, for the last launch alone, then where it reads, and where it
    writes.
    """

    __slots__ = (
        "_first", "_kernel", "_launches", "_made", "_may_be", "_reads", "_run_kernel",
        "_scratch_bytes", "_sizes",
    )  # fmt: skip

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        """`sizes`: of the memory that each but the last one writes to, in bytes."""
        self._launches, self._sizes = tuple(launches), sizes
        self._scratch_bytes = max(launch.scratch_bytes for launch in launches)
        self._kernel = _run_all()
        self._run_kernel = unchecked(self._kernel)
        self._made: list[_Memories] = []
        self._first, *rest = launches
        self._reads = launches[0].places[1:]
        self._may_be = all(launch.work <= threads.SMALL_BYTES for launch in rest)

    @property
    def is_alone(self) -> bool:
        """Whether the next call is one thread's, as far as is known."""
        return self._may_be and self._first.is_alone

    def __call__(self, word: int, starts: Sequence[int], outs: Sequence[int]) -> None:
        """Run all of them, from these addresses to those."""
        last = self._launches[-1].places
        try:
            made = self._made.pop()
        except IndexError:
            made = _Memories(self._launches, self._sizes)
        words = made.first
        for place, at in zip(self._reads, starts, strict=False):
            words[place] = at
        words = made.last
        words[last[0]] = word
        for place, at in zip(last[-len(outs) :], outs, strict=True):
            words[place] = at
        memory = lent(self._scratch_bytes)
        start = perf_counter()
        if self._run_kernel(made.address, memory.address, 0, len(self._launches)):
            check(1)
        self._first.has_taken(perf_counter() - start)
        give_back(memory)
        self._made.append(made)


class _Memories:
    """What the kernel of steps reads: each launch's code, table and tasks; what lies between."""

    __slots__ = ("address", "first", "held", "last")

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        tables = [launch.filled() for launch in launches]
        between = [[_Memory(size) for size in each] for each in sizes]
        for i, each in enumerate(between):
            for k, memory in enumerate(each):
                writes, reads = launches[i].places, launches[i + 1].places
                tables[i].words[writes[k - len(each)]] = memory.address
                tables[i + 1].words[reads[1 + k]] = memory.address
        head = _Memory(8 * STEP * len(launches))
        for i, (launch, table) in enumerate(zip(launches, tables, strict=True)):
            head.words[STEP * i + ENTRY] = launch.entry
            head.words[STEP * i + TABLE] = table.address
            head.words[STEP * i + TASKS] = launch.tasks
        self.address, self.first, self.last = head.address, tables[0].words, tables[-1].words
        self.held = head, tables, between


def _run_all() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._cpu.sequence_kernel import run_all

        return run_all

    return get_kernel(("sequence",), write)


def lent(num_bytes: int) -> _Memory:
    """Return scratch memory."""
    if num_bytes <= _MEMORY_BYTES:
        try:
            return _free.pop()
        except IndexError:
            pass
    return _Memory(max(num_bytes, _MEMORY_BYTES))


def give_back(memory: _Memory) -> None:
    """End a loan."""
    if memory.num_bytes == _MEMORY_BYTES:
        _free.append(memory)
