"""A kernel's launch, prepared once: its arguments packed, with places for addresses.

A warm call writes the addresses into memory that is lent to it and runs the kernel: no layout is
looked at again, no memory asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._cpu import team
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import launcher, unchecked
from gpualgo._cpu.kernels import Kernel, check, get_kernel
from gpualgo._cpu.memory import FREE, MEMORY_BYTES, Memory, give_back, lent
from gpualgo._cpu.parameters import ENTRY, STEP, TABLE, TASKS

UNKNOWN = float("inf")
_MOST_LOSSES = 6


class Pace:
    """What one thread takes for some work, as far as is known, and by whom it is run so."""

    __slots__ = ("_alone", "_losses", "seconds")

    def __init__(self) -> None:
        self.seconds = UNKNOWN
        self._alone, self._losses = 0, 0  # calls to be one thread's, and why

    @property
    def is_light(self) -> bool:
        """Whether no sleeping thread has to be woken for it."""
        return self.seconds < team.MOST_SECONDS

    def run(
        self, kernel: Callable[[int, int, int, int], int | None], entry: int, table: int,
        scratch: Memory, tasks: int,
    ) -> None:  # fmt: skip
        """Run light work, with the threads that stand by where there is enough for them.

        `kernel` returns a status, or raises; `entry` is the address of its code.
        """
        seconds, members, leader = self.seconds, 0, None
        if self._alone > 0:
            self._alone -= 1
        elif seconds >= team.LEAST_SECONDS and tasks > 1 and scratch.num_bytes <= MEMORY_BYTES:
            most = threads.num_threads()
            if most > 1:
                leader = team.current()
        start = perf_counter()
        if leader is not None:
            members = leader.run(entry, table, scratch.address, tasks, seconds, most)
        if members == 0:
            check(kernel(table, scratch.address, 0, tasks))
            self.seconds = perf_counter() - start
        else:
            check(members < 0)
            self._shared(perf_counter() - start, members)

    def _shared(self, taken: float, members: int) -> None:
        """Learn from a call by so many threads: if one is as fast, the next ones are one's.

        Other processes use the cores then, or the work has become more: that one's time tells.
        """
        if taken > self.seconds:
            self._losses = min(self._losses + 1, _MOST_LOSSES)
            self._alone = (1 << self._losses) - 1
        else:
            self._losses = max(self._losses - 1, 0)
            self.seconds = min(self.seconds, taken * members)

    def run_any(
        self, kernel: Callable[[int, int, int, int], int | None], entry: int, table: int,
        scratch_bytes: int, tasks: int, work: int,
    ) -> None:  # fmt: skip
        """Run work that may be light; `work`: as of `threads.run`."""
        if self.is_light:
            memory = lent(scratch_bytes)
            self.run(kernel, entry, table, memory, tasks)
            give_back(memory)
            return

        def body(first: int, last: int) -> None:
            memory = lent(scratch_bytes)
            check(kernel(table, memory.address, first, last))
            give_back(memory)

        start = perf_counter()
        count = threads.run(body, tasks, work)
        self.seconds = (perf_counter() - start) * count


class Launch:
    """A kernel and its table of arguments but for some words, which each call brings."""

    __slots__ = (
        "_at_once", "_held", "_kernel", "_run_kernel", "_tables", "entry", "pace", "places",
        "scratch_bytes", "table", "tasks", "work",
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
        self._tables: list[Memory] = []  # as many as calls of it were under way at once
        self.pace = Pace()
        loaded: Any = kernel
        self.entry = int(loaded.loaded.address)  # of the kernel's code
        self._at_once: Callable[..., int] | None = None  # for little work, of one thread
        if work <= threads.SMALL_BYTES and scratch_bytes <= MEMORY_BYTES:
            self._at_once = launcher(kernel, table, self.places, tasks)

    @property
    def is_alone(self) -> bool:
        """Whether no thread has to be woken for the next call, as far as is known."""
        return self.work <= threads.SMALL_BYTES or self.pace.is_light

    def __call__(self, words: Sequence[int | np.ndarray[Any, Any]]) -> None:
        """Run the kernel with these words in their places: ints, or arrays for their addresses."""
        if self._at_once is not None:
            try:
                memory = FREE.pop()
            except IndexError:
                memory = lent(0)
            if self._at_once(memory.address, *words):
                check(1)
            FREE.append(memory)
            return
        try:
            table = self._tables.pop()
        except IndexError:
            table = self.filled()
        at, values = table.address, table.words
        for place, word in zip(self.places, words, strict=True):
            values[place] = address(word) if isinstance(word, np.ndarray) else word
        if self.work <= threads.SMALL_BYTES:
            memory = lent(self.scratch_bytes)
            if self._run_kernel(at, memory.address, 0, self.tasks):
                check(1)
            give_back(memory)
        else:
            run, entry = self._run_kernel, self.entry
            self.pace.run_any(run, entry, at, self.scratch_bytes, self.tasks, self.work)
        self._tables.append(table)

    def run_light(self, table: int, scratch: Memory) -> None:
        """Run all tasks of a table, in memory that is there."""
        self.pace.run(self._run_kernel, self.entry, table, scratch, self.tasks)

    def filled(self) -> Memory:
        """Return memory that holds the table."""
        memory = Memory(self.table.nbytes)
        memory.words[:] = memoryview(self.table.tobytes()).cast("q")
        return memory


class Steps:
    """Launches of which each reads what the one before has written: one call, by one thread.

    The words of each are one more, for the last launch alone, then where it reads, and where it
    writes.
    """

    __slots__ = (
        "_between_bytes", "_first", "_kernel", "_launches", "_made", "_may_be", "_reads",
        "_run_kernel", "_scratch_bytes", "_sizes",
    )  # fmt: skip

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        """`sizes`: of the memory that each but the last one writes to, in bytes."""
        self._launches, self._sizes = tuple(launches), sizes
        self._between_bytes = sum(_lines(size) for each in sizes for size in each)
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
        between = lent(self._between_bytes)  # of each call: results may be as many as elements
        for writes, place, reads, source, offset in made.between:
            writes[place] = reads[source] = between.address + offset
        memory, first = lent(self._scratch_bytes), 0
        if self._first.work > threads.SMALL_BYTES:
            self._first.run_light(made.first_table, memory)
            first = 1
        if self._run_kernel(made.address, memory.address, first, len(self._launches)):
            check(1)
        give_back(memory)
        give_back(between)
        self._made.append(made)


class _Memories:
    """What the kernel of steps reads: each launch's code, table and tasks.

    `between`: where each address of what lies between launches is written, and its offset there.
    """

    __slots__ = ("address", "between", "first", "first_table", "held", "last")

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        tables = [launch.filled() for launch in launches]
        self.between: list[tuple[Any, int, Any, int, int]] = []
        offset = 0
        for i, each in enumerate(sizes):
            for k, size in enumerate(each):
                place, source = launches[i].places[k - len(each)], launches[i + 1].places[1 + k]
                self.between.append((tables[i].words, place, tables[i + 1].words, source, offset))
                offset += _lines(size)
        head = Memory(8 * STEP * len(launches))
        for i, (launch, table) in enumerate(zip(launches, tables, strict=True)):
            head.words[STEP * i + ENTRY] = launch.entry
            head.words[STEP * i + TABLE] = table.address
            head.words[STEP * i + TASKS] = launch.tasks
        self.address, self.first, self.last = head.address, tables[0].words, tables[-1].words
        self.first_table, self.held = tables[0].address, (head, tables)


def _lines(num_bytes: int) -> int:
    """Return how many bytes the cache lines of so many take."""
    return -(-num_bytes // 64) * 64


def _run_all() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._cpu.sequence_kernel import run_all

        return run_all

    return get_kernel(("sequence",), write)
