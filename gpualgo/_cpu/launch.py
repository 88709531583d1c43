"""A kernel's launch, prepared once: packed arguments with slots for addresses.

A warm call writes addresses into a reused table and runs the kernel. It neither examines layouts
nor allocates memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from time import perf_counter
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._cpu import team
from gpualgo._cpu.direct import Step, launch_function, status_function
from gpualgo._cpu.kernels import Kernel, check, get_kernel
from gpualgo._cpu.memory import FREE, MEMORY_BYTES, Memory, address, return_scratch, take_scratch
from gpualgo._cpu.parameters import ENTRY, STEP, TABLE, TASKS
from gpualgo._cpu.plan import Array, Run

UNKNOWN = float("inf")
_MOST_LOSSES = 6  # limits the runs of one thread in a row to 63


class CostEstimate:
    """Estimated single-thread time of a launch, which decides how many threads run it."""

    __slots__ = ("_alone", "_losses", "seconds")

    def __init__(self) -> None:
        self.seconds = UNKNOWN
        self._alone, self._losses = 0, 0  # calls left for one thread; recent failures of several

    @property
    def is_light(self) -> bool:
        """Whether the work is too short to be worth waking threads."""
        return self.seconds < team.MOST_SECONDS

    def run(
        self, kernel: Callable[[int, int, int, int], int | None], entry: int, table: int,
        scratch: Memory, tasks: int,
    ) -> None:  # fmt: skip
        """Run light work, by the team's threads as well if there is enough of it.

        `kernel` returns a status or raises; `entry` is the address of its code.
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
            self._learn_from_team(perf_counter() - start, members)

    def _learn_from_team(self, elapsed: float, members: int) -> None:
        """Update the estimate from a call by several threads.

        If they were not faster than one, the next calls use one thread: either other processes use
        the cores, or the work has grown and one thread's time has to be measured again.
        """
        if elapsed > self.seconds:
            self._losses = min(self._losses + 1, _MOST_LOSSES)
            self._alone = (1 << self._losses) - 1
        else:
            self._losses = max(self._losses - 1, 0)
            self.seconds = min(self.seconds, elapsed * members)

    def run_any(
        self, kernel: Callable[[int, int, int, int], int | None], entry: int, table: int,
        scratch_bytes: int, tasks: int, work: int,
    ) -> None:  # fmt: skip
        """Run work that may be light; `work` is as in `threads.run`."""
        if self.is_light:
            memory = take_scratch(scratch_bytes)
            self.run(kernel, entry, table, memory, tasks)
            return_scratch(memory)
            return

        def body(first: int, last: int) -> None:
            memory = take_scratch(scratch_bytes)
            check(kernel(table, memory.address, first, last))
            return_scratch(memory)

        start = perf_counter()
        count = threads.run(body, tasks, work)
        self.seconds = (perf_counter() - start) * count


class Launch:
    """A kernel and its table of arguments, with slots that each call fills."""

    __slots__ = (
        "_at_once",
        "_held",
        "_kernel",
        "_run_kernel",
        "_tables",
        "entry",
        "pace",
        "scratch_bytes",
        "slots",
        "table",
        "tasks",
        "work",
    )  # fmt: skip

    def __init__(
        self, kernel: Kernel, table: np.ndarray[Any, Any], places: Sequence[int],
        scratch_bytes: int, tasks: int, work: int, held: Any = None,
    ) -> None:  # fmt: skip
        """`places`: indices of the slots in the table; `work`: as in `threads.run`.

        `held`: code whose address is in the table.
        """
        self._kernel, self.table, self._held = kernel, table, held
        self._run_kernel = status_function(kernel)
        self.slots, self.scratch_bytes = tuple(places), scratch_bytes
        self.tasks, self.work = tasks, work
        self._tables: list[Memory] = []  # unused ones
        self.pace = CostEstimate()
        loaded: Any = kernel
        self.entry = int(loaded.loaded.address)  # of the kernel's code
        self._at_once: Callable[..., int] | None = None  # for little work, by one thread
        if work <= threads.SMALL_BYTES and scratch_bytes <= MEMORY_BYTES:
            self._at_once = launch_function([self.step], self.slots)

    @property
    def step(self) -> Step:
        return Step(self._kernel, self.table, self.tasks)

    @property
    def is_alone(self) -> bool:
        """Whether the next call is expected to wake no thread."""
        return self.work <= threads.SMALL_BYTES or self.pace.is_light

    def __call__(self, words: Sequence[int | np.ndarray[Any, Any]]) -> None:
        """Run the kernel with these words in the slots: ints, or arrays for their addresses."""
        if self._at_once is not None:
            try:
                memory = FREE.pop()
            except IndexError:
                memory = take_scratch(0)
            if self._at_once(memory.address, *words):
                check(1)
            FREE.append(memory)
            return
        try:
            table = self._tables.pop()
        except IndexError:
            table = self.filled()
        head, values = table.address, table.words
        for slot, word in zip(self.slots, words, strict=True):
            values[slot] = address(word) if isinstance(word, np.ndarray) else word
        if self.work <= threads.SMALL_BYTES:
            memory = take_scratch(self.scratch_bytes)
            if self._run_kernel(head, memory.address, 0, self.tasks):
                check(1)
            return_scratch(memory)
        else:
            run, entry = self._run_kernel, self.entry
            self.pace.run_any(run, entry, head, self.scratch_bytes, self.tasks, self.work)
        self._tables.append(table)

    def run_of(self, takes_init: bool = True) -> Run:
        """Return the `run` of a plan: the slots are init, if taken, then inputs, then results."""
        if self._at_once is not None:
            return _run_at_once(self._at_once, takes_init)
        if takes_init:
            return lambda arrays, results, init: self((init, *arrays, *results))
        return lambda arrays, results, _: self((*arrays, *results))

    def run_light(self, table: int, scratch: Memory) -> None:
        self.pace.run(self._run_kernel, self.entry, table, scratch, self.tasks)

    def filled(self) -> Memory:
        memory = Memory(self.table.nbytes)
        memory.words[:] = memoryview(self.table.tobytes()).cast("q")
        return memory


def _run_at_once(launch: Callable[..., int], takes_init: bool) -> Run:
    """Return the `run` of a plan that calls a function of `launch_function`."""
    free = FREE

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        try:
            memory = free.pop()
        except IndexError:
            memory = take_scratch(0)
        if takes_init:
            status = launch(memory.address, init, *arrays, *results)
        else:
            status = launch(memory.address, *arrays, *results)
        if status:
            check(status)
        free.append(memory)

    return run


class LaunchSequence:
    """Launches that each read the previous one's results; one call runs them by one thread.

    The slots of each launch are: one word, which only the last launch is given; input addresses;
    output addresses.
    """

    __slots__ = (
        "_between_bytes", "_first", "_kernel", "_launches", "_made", "_may_be", "_reads",
        "_run_kernel", "_scratch_bytes", "_sizes",
    )  # fmt: skip

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        """`sizes`: of the results of each launch except the last one, in bytes."""
        self._launches, self._sizes = tuple(launches), sizes
        self._between_bytes = sum(_round_to_lines(size) for each in sizes for size in each)
        self._scratch_bytes = max(launch.scratch_bytes for launch in launches)
        self._kernel = _run_all()
        self._run_kernel = status_function(self._kernel)
        self._made: list[_StepTables] = []
        self._first, *later_launches = launches
        self._reads = launches[0].slots[1:]
        self._may_be = all(launch.work <= threads.SMALL_BYTES for launch in later_launches)

    @property
    def is_alone(self) -> bool:
        """Whether the next call is expected to be run by one thread."""
        return self._may_be and self._first.is_alone

    def run_at_once(self, most_work: int) -> Run | None:
        """Return the `run` of a plan by one native call; None if the work or the memory is larger.

        `most_work`: as `work` of `threads.run`.
        """
        offset = _round_to_lines(self._scratch_bytes)
        if self._first.work > most_work or offset + self._between_bytes > MEMORY_BYTES:
            return None
        launches, sizes = self._launches, self._sizes
        starts = [0, *accumulate(len(launch.table) for launch in launches)]
        places = [
            [start + place for place in launch.slots]
            for start, launch in zip(starts, launches, strict=False)
        ]
        slots = [places[-1][0], *places[0][1 : -len(sizes[0])], *places[-1][1 + len(sizes[-1]) :]]
        inner = []
        for i, outputs in enumerate(sizes):
            for k, size in enumerate(outputs):
                inner += [(places[i][k - len(outputs)], offset), (places[i + 1][1 + k], offset)]
                offset += _round_to_lines(size)
        run = launch_function([launch.step for launch in launches], slots, inner)
        return None if run is None else _run_at_once(run, takes_init=True)

    def __call__(self, word: int, starts: Sequence[int], outs: Sequence[int]) -> None:
        """Run all launches, from these input addresses to these output addresses."""
        last = self._launches[-1].slots
        try:
            tables = self._made.pop()
        except IndexError:
            tables = _StepTables(self._launches, self._sizes)
        words = tables.first
        for slot, target in zip(self._reads, starts, strict=False):
            words[slot] = target
        words = tables.last
        words[last[0]] = word
        for slot, target in zip(last[-len(outs) :], outs, strict=True):
            words[slot] = target
        between = take_scratch(self._between_bytes)  # each call's own: it may be large
        for writer, slot, reader, input_slot, offset in tables.between:
            writer[slot] = reader[input_slot] = between.address + offset
        memory, first = take_scratch(self._scratch_bytes), 0
        if self._first.work > threads.SMALL_BYTES:
            self._first.run_light(tables.first_table, memory)
            first = 1
        if self._run_kernel(tables.address, memory.address, first, len(self._launches)):
            check(1)
        return_scratch(memory)
        return_scratch(between)
        self._made.append(tables)


class _StepTables:
    """Tables of a call of `Steps`: each launch's code, table and number of tasks.

    `between`: for each intermediate result, the two slots of its address and its offset.
    """

    __slots__ = ("address", "between", "first", "first_table", "held", "last")

    def __init__(self, launches: Sequence[Launch], sizes: Sequence[Sequence[int]]) -> None:
        tables = [launch.filled() for launch in launches]
        self.between: list[tuple[Any, int, Any, int, int]] = []
        offset = 0
        for i, outputs in enumerate(sizes):
            for k, size in enumerate(outputs):
                slot, source = launches[i].slots[k - len(outputs)], launches[i + 1].slots[1 + k]
                self.between.append((tables[i].words, slot, tables[i + 1].words, source, offset))
                offset += _round_to_lines(size)
        head = Memory(8 * STEP * len(launches))
        for i, (launch, table) in enumerate(zip(launches, tables, strict=True)):
            head.words[STEP * i + ENTRY] = launch.entry
            head.words[STEP * i + TABLE] = table.address
            head.words[STEP * i + TASKS] = launch.tasks
        self.address, self.first, self.last = head.address, tables[0].words, tables[-1].words
        self.first_table, self.held = tables[0].address, (head, tables)


def _round_to_lines(num_bytes: int) -> int:
    return -(-num_bytes // 64) * 64


def _run_all() -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._cpu.direct_kernels import run_all

        return run_all

    return get_kernel(("sequence",), write)
