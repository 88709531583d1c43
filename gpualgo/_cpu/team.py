"""Standby threads for work of some tens of microseconds, less than waking a thread may take.

A member polls for jobs in compiled code, without the GIL, and sleeps when none has come for a while
(`SPINS`): about 0.1 ms after the last call. The number of threads never changes results. Longer
work is run by `threads.run`. See ADR 32.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import threading

from gpualgo._base import forks, log
from gpualgo._cpu import plan as at
from gpualgo._cpu.kernels import Kernel, get_kernel, named, status_function
from gpualgo._cpu.memory import MEMORY_BYTES, Memory

# Range of one thread's time that is worth sharing; above it, sleeping threads do as well.
LEAST_SECONDS, MOST_SECONDS = 3e-5, 4e-3
SPINS = 4000  # polls, of 10 to 45 ns each
MEMBER_SECONDS = 1e-5  # what a further member costs all others
_PIECES_PER_MEMBER = 8


class _Member:
    """A thread that polls for jobs each time its gate is opened."""

    def __init__(self, team: Team, number: int) -> None:
        self.is_awake = False
        self.gate = threading.Lock()  # noqa: TID251  # one thread closes it, another opens it
        self.gate.acquire()
        scratch = Memory(MEMORY_BYTES)
        self.thread = threading.Thread(
            target=self._run, args=(team, scratch, number), name=f"gpualgo-{number}", daemon=True
        )
        self.thread.start()

    def wake(self) -> None:
        """Open the gate of a sleeping member; at worst, it polls once more in vain."""
        if not self.is_awake and self.gate.locked():
            self.open()

    def open(self) -> None:
        """Open the gate in one step, which no signal handler can interrupt."""
        with contextlib.suppress(RuntimeError):  # it is open already
            self.gate.release()

    def _run(self, team: Team, scratch: Memory, number: int) -> None:
        while True:
            self.gate.acquire()
            if team.is_stopped:
                return
            self.is_awake = True
            team.serve(team.job.address, scratch.address, number, SPINS)
            self.is_awake = False


class Team:
    """Members, and the job that they share with the leading thread."""

    def __init__(self) -> None:
        self.job, self.is_stopped = Memory(8 * at.JOB_WORDS), False
        self.job.words[:] = memoryview(bytes(self.job.words.nbytes)).cast("q")
        self._kernels = _kernel("lead"), _kernel("serve")
        self._lead, self.serve = map(status_function, self._kernels)
        self._members: list[_Member] = []
        self._calls: set[object] = set()  # running calls; a call that finds itself alone leads

    def run(
        self, entry: int, table: int, scratch: int, tasks: int, seconds: float, most: int
    ) -> int:
        """Run a kernel's tasks, which take one thread so many seconds, and wait for all of them.

        Returns the number of threads used, at most `most`; negative if the kernel has failed; 0 if
        another thread leads and nothing was run.
        """
        call = object()
        try:  # not a lock: a signal handler that raises could leave it held
            self._calls.add(call)
            if len(self._calls) > 1:
                return 0
            members = min(most, 1 + int((seconds / MEMBER_SECONDS) ** 0.5), tasks)
            self._wake(members - 1)
            words = self.job.words
            words[at.JOB_ENTRY], words[at.JOB_TABLE], words[at.JOB_TASKS] = entry, table, tasks
            words[at.JOB_PIECE] = max(1, tasks // (members * _PIECES_PER_MEMBER))
            words[at.JOB_MEMBERS], words[at.JOB_NEXT], words[at.JOB_FAILED] = members, 0, 0
            self._lead(self.job.address, scratch, SPINS, _YIELD)
            return -members if words[at.JOB_FAILED] else members
        finally:
            self._calls.discard(call)

    def _wake(self, count: int) -> None:
        while len(self._members) < count:
            try:
                self._members.append(_Member(self, len(self._members) + 1))
            except (RuntimeError, MemoryError):  # no thread can be started: use fewer
                break
        for member in self._members[:count]:
            member.wake()

    def stop(self) -> None:
        """End all members, so that none reads memory that the interpreter frees."""
        self.is_stopped = True
        self.job.words[at.JOB_STOPPED] = 1
        for member in self._members:
            member.open()
        for member in self._members:
            member.thread.join(1)


def _address_of_yield() -> int:
    """Return the address of the C library's `sched_yield`, 0 if there is none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # Windows
        return 0


_YIELD = _address_of_yield()
_team: Team | None = None
_is_refused = False  # the kernels cannot be compiled in this process
_making = forks.Lock()


def current() -> Team | None:
    """Return this process's team, None if its kernels can be neither loaded nor compiled."""
    global _team, _is_refused
    if _team is None and not _is_refused:
        with _making:
            try:
                team = Team() if _team is None else _team
            except RuntimeError as error:
                log.log(log.INFO, "small calls use no worker threads: %s", error)
                _is_refused = True
                return None
            if _team is None:
                atexit.register(team.stop)
                _team = team
    return _team


@forks.in_child
def _forget() -> None:
    """Forget the parent's team: its threads do not exist in the child."""
    global _team
    if _team is not None:
        atexit.unregister(_team.stop)
        _team.job.words[at.JOB_INSIDE] = 0  # a signal handler may fork while this thread leads
    _team = None


def _kernel(name: str) -> Kernel:
    return get_kernel(*named("_cpu.direct_kernels", name))
