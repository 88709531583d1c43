"""A kernel's launch, prepared once: packed arguments with slots for addresses.

A warm call writes addresses into a reused table and runs the kernel. It neither examines layouts
nor allocates memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from time import perf_counter
from typing import Any

import numpy as np

from gpualgo._base import log, threads
from gpualgo._cpu import plan as at
from gpualgo._cpu import team
from gpualgo._cpu.kernels import (
    Kernel,
    Step,
    check,
    get_kernel,
    launch_function,
    named,
    status_function,
)
from gpualgo._cpu.memory import FREE, MEMORY_BYTES, Memory, address, return_scratch, take_scratch
from gpualgo._cpu.plan import Array, Make, Plan, Routine

empty, pop_free, add_free = np.empty, FREE.pop, FREE.append
UNKNOWN = float("inf")


class CostEstimate:
    """Estimated single-thread time of a launch, which decides how many threads run it.

    It counts how often several threads were slower than one lately, as other processes use the
    cores. One thread runs the next 1, 3, 7, ... calls then, at most 63.
    """

    __slots__ = ("alone", "losses", "seconds")

    def __init__(self, seconds: float = UNKNOWN) -> None:
        self.seconds = seconds
        self.alone = self.losses = 0  # calls left for one thread; recent losses

    @property
    def is_light(self) -> bool:
        """Whether the work is too short to be worth waking threads."""
        return self.seconds < team.MOST_SECONDS

    def run(
        self, kernel: Callable[[int, int, int, int], int], entry: int, table: int,
        scratch: Memory, tasks: int, amount: int = 1,
    ) -> None:  # fmt: skip
        """Run light work, by the team's threads as well if there is enough of it.

        `kernel` returns a status; `entry` is the address of its code. `seconds` are those of an
        `amount` of 1.
        """
        seconds, members, leader = self.seconds * amount, 0, None
        if self.alone > 0:
            self.alone -= 1
        elif seconds >= team.LEAST_SECONDS and tasks > 1 and scratch.num_bytes <= MEMORY_BYTES:
            most = threads.num_threads()
            if most > 1:
                leader = team.current()
        start = perf_counter()
        if leader is not None:
            members = leader.run(entry, table, scratch.address, tasks, seconds, most)
        if members == 0:
            check(kernel(table, scratch.address, 0, tasks))
            self.seconds = (perf_counter() - start) / amount
        else:
            check(int(members < 0))
            elapsed = perf_counter() - start
            if elapsed > seconds:  # or the work has grown: one thread measures it again
                self.losses = min(self.losses + 1, 6)
                self.alone = (1 << self.losses) - 1
            else:
                self.losses = max(self.losses - 1, 0)
                self.seconds = min(self.seconds, elapsed * members / amount)

    def run_any(
        self, kernel: Callable[[int, int, int, int], int], entry: int, table: int,
        scratch_bytes: int, tasks: int, work: int,
    ) -> None:  # fmt: skip
        """Run work that may be light; `work` is as in `threads.run`."""
        if self.is_light:
            memory = take_scratch(scratch_bytes)
            self.run(kernel, entry, table, memory, tasks)
            return_scratch(memory)
            return

        body = _body_of(kernel, table, scratch_bytes)
        start = perf_counter()
        count = threads.run(body, tasks, work)
        self.seconds = (perf_counter() - start) * count


def run_tasks(
    kernel: Kernel,
    table: Array,
    num_tasks: int,
    work: int,
    scratch_bytes: int = 0,
    first_task: int = 0,
) -> None:
    """Run a kernel's tasks from `first_task` on by as many threads as `work` is worth."""
    run = status_function(kernel)
    threads.run(_body_of(run, address(table), scratch_bytes, first_task), num_tasks, work)


def _body_of(
    run: Callable[[int, int, int, int], int], table: int, scratch_bytes: int, first_task: int = 0
) -> Callable[[int, int], None]:
    def body(first: int, last: int) -> None:
        memory = take_scratch(scratch_bytes)
        check(run(table, memory.address, first_task + first, first_task + last))
        return_scratch(memory)

    return body


class Launch:
    """A kernel and its table of arguments, with slots that each call fills."""

    __slots__ = (
        "_held", "_run_kernel", "_tables", "at_once", "entry", "kernel", "pace", "scratch_bytes",
        "slots", "table", "tasks", "work",
    )  # fmt: skip

    def __init__(
        self, kernel: Kernel, table: np.ndarray[Any, Any], places: Sequence[int],
        scratch_bytes: int, tasks: int, work: int, held: Any = None,
    ) -> None:  # fmt: skip
        """`places`: indices of the slots in the table; `work`: as in `threads.run`.

        `held`: code whose address is in the table.
        """
        self.kernel, self.table, self._held = kernel, table, held
        self._run_kernel = status_function(kernel)
        self.slots, self.scratch_bytes = tuple(places), scratch_bytes
        self.tasks, self.work = tasks, work
        self._tables: list[Memory] = []  # unused ones
        self.pace = CostEstimate()
        self.entry = kernel.address  # of its code
        # f(scratch, *words) for little work, by one thread
        self.at_once: Callable[..., int] | None = None
        if work <= threads.SMALL_BYTES and scratch_bytes <= MEMORY_BYTES:
            self.at_once = launch_function([self.step], self.slots)

    @property
    def step(self) -> Step:
        return Step(self.kernel, self.table, self.tasks, self._held)

    def __call__(self, words: Sequence[int | np.ndarray[Any, Any]]) -> None:
        """Run the kernel with these words in the slots: ints, or arrays for their addresses."""
        if self.at_once is not None:
            _run_at_once(self.at_once, *words)
            return
        try:
            table = self._tables.pop()
        except IndexError:
            table = Memory(self.table.nbytes)
            table.words[:] = memoryview(self.table.tobytes()).cast("q")
        head, values = table.address, table.words
        for slot, word in zip(self.slots, words, strict=True):
            values[slot] = address(word) if isinstance(word, np.ndarray) else word
        run, entry = self._run_kernel, self.entry
        self.pace.run_any(run, entry, head, self.scratch_bytes, self.tasks, self.work)
        self._tables.append(table)

    def plan(self, routine: Routine) -> Plan:
        """Return the plan of this launch, whose slots are init, inputs, results."""
        if self.at_once is not None:
            return _plan_at_once(self.at_once, routine)
        return Plan(lambda arrays, results, init: self((init, *arrays, *results)), [routine])


def _run_at_once(launch: Callable[..., int], *words: Any) -> None:
    """Call a function of `launch_function`."""
    memory = take_scratch(0)
    if launch(memory.address, *words):
        check(1)
    add_free(memory)


def _plan_at_once(launch: Callable[..., int], routine: Routine) -> Plan:
    """Return the plan that calls a function of `launch_function`."""

    def maker(shape: tuple[int, ...], dtype: np.dtype[Any], is_scalar: bool) -> Make:
        def make(arrays: Sequence[Array], init: int) -> Any:
            try:
                memory = pop_free()
            except IndexError:
                memory = take_scratch(0)
            result = empty(shape, dtype)
            if len(arrays) == 1:  # arguments in a fixed number are passed faster
                status = launch(memory.address, init, arrays[0], result)
            else:
                status = launch(memory.address, init, *arrays, result)
            if status:
                check(status)
            add_free(memory)
            return result[()] if is_scalar else result

        return make

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        _run_at_once(launch, init, *arrays, *results)

    return Plan(run, [routine], maker)


def plan_in_sequence(
    launches: Sequence[Launch], sizes: Sequence[Sequence[int]], most_work: int, routine: Routine
) -> Plan | None:
    """Return the plan of launches that each read the previous one's results.

    One native call runs them by one thread; None if that is too much work or memory. The slots of
    each launch are: init, which only the last one is given; inputs; results. `sizes`: of the
    results of each launch except the last one, in bytes. `most_work`: as `work` of `threads.run`.
    """
    offset = _round_to_lines(max(launch.scratch_bytes for launch in launches))
    between_bytes = sum(_round_to_lines(size) for each in sizes for size in each)
    if launches[0].work > most_work or offset + between_bytes > MEMORY_BYTES:
        return None
    starts = [0, *accumulate(len(launch.table) for launch in launches)]
    slots_of = [
        [start + slot for slot in launch.slots]
        for start, launch in zip(starts, launches, strict=False)
    ]
    first, last = slots_of[0], slots_of[-1]
    slots = [last[0], *first[1 : -len(sizes[0])], *last[1 + len(sizes[-1]) :]]
    inner = []
    for i, outputs in enumerate(sizes):
        for k, size in enumerate(outputs):
            inner += [(slots_of[i][k - len(outputs)], offset), (slots_of[i + 1][1 + k], offset)]
            offset += _round_to_lines(size)
    run = launch_function([launch.step for launch in launches], slots, inner)
    return None if run is None else _plan_at_once(run, routine)


def _round_to_lines(num_bytes: int) -> int:
    return -(-num_bytes // 64) * 64


# --- Copies of memory, for transfers to and from a GPU.

LEAST_BYTES = 256 << 10  # the least that is worth several threads
PIECE_BYTES = 64 << 10
_copies = CostEstimate(2e-10)  # of a byte


@cache
def _copier() -> Kernel | None:
    """Return the kernel that copies, None if it can be neither loaded nor compiled."""
    try:
        return get_kernel(*named("_cpu.direct_kernels", "copy_pieces"))
    except RuntimeError as error:
        log.log(log.INFO, "copies use one thread: %s", error)
        return None


def copy(target: int, source: int, size: int) -> None:
    """Copy memory that does not overlap."""
    is_long = size >= LEAST_BYTES and size * _copies.seconds >= team.LEAST_SECONDS
    kernel = _copier() if is_long and threads.num_threads() > 1 else None
    if kernel is None:
        ctypes.memmove(target, source, size)
        return
    table, memory = Memory(8 * at.COPY_WORDS), take_scratch(0)
    words = table.words
    words[at.TARGET], words[at.SOURCE] = target, source
    words[at.SIZE_OF_ALL], words[at.PIECE] = size, PIECE_BYTES
    run, tasks = status_function(kernel), -(-size // PIECE_BYTES)
    _copies.run(run, kernel.address, table.address, memory, tasks, size)
    return_scratch(memory)
