"""Threads that stand by for work of some tens of microseconds, less than waking one may take.

A member looks for jobs in compiled code, without the interpreter's lock, and goes to sleep when
none has come for a while (`SPINS`): a tenth of a millisecond or so after the last call. Who runs a
task never changes what it computes. Longer work goes by `threads.run`. See ADR 32.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import threading
from collections.abc import Callable

from gpualgo._base import forks, log
from gpualgo._cpu.direct import unchecked
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.memory import MEMORY_BYTES, Memory
from gpualgo._cpu.parameters import (
    JOB_ENTRY,
    JOB_FAILED,
    JOB_INSIDE,
    JOB_MEMBERS,
    JOB_NEXT,
    JOB_PIECE,
    JOB_STOPPED,
    JOB_TABLE,
    JOB_TASKS,
    JOB_WORDS,
)

# Of one thread's work: what is worth sharing so, and from where sleeping threads do as well.
LEAST_SECONDS, MOST_SECONDS = 3e-5, 4e-3
SPINS = 4000  # looks, of 10 to 45 ns each
MEMBER_SECONDS = 1e-5  # what a further member costs all others
_PIECES_PER_MEMBER = 8


class _Member:
    """A thread, which looks for jobs after each time that it finds its gate open."""

    def __init__(self, team: Team, number: int) -> None:
        self.is_awake, self.gate = False, threading.Lock()
        self.gate.acquire()
        scratch = Memory(MEMORY_BYTES)
        self.thread = threading.Thread(
            target=self._run, args=(team, scratch, number), name=f"gpualgo-{number}", daemon=True
        )
        self.thread.start()

    def wake(self) -> None:
        """Open the gate of one that sleeps: at most, it looks once more than it would have."""
        if not self.is_awake and self.gate.locked():
            self.open()

    def open(self) -> None:
        """Open the gate, in one step: no signal's handler comes between it and what is known."""
        with contextlib.suppress(RuntimeError):  # it is open
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
    """Members, and the job that they share with whoever leads."""

    def __init__(self) -> None:
        self.job, self.is_stopped = Memory(8 * JOB_WORDS), False
        self.job.words[:] = memoryview(bytes(self.job.words.nbytes)).cast("q")
        self._kernels = _kernel("lead"), _kernel("serve")
        self._lead, self.serve = map(unchecked, self._kernels)
        self._members: list[_Member] = []
        self._calls: set[object] = set()  # that are under way: whoever is alone here leads

    def run(
        self, entry: int, table: int, scratch: int, tasks: int, seconds: float, most: int
    ) -> int:
        """Run a kernel's tasks, work of so many seconds for one thread, and wait for all of them.

        Returns by how many threads it was, `most` at most, negative if the kernel has failed; 0:
        another thread leads, and nothing was run.
        """
        call = object()
        try:  # not a lock, which a signal's handler that raises could leave held
            self._calls.add(call)
            if len(self._calls) > 1:
                return 0
            members = min(most, 1 + int((seconds / MEMBER_SECONDS) ** 0.5), tasks)
            self._wake(members - 1)
            words = self.job.words
            words[JOB_ENTRY], words[JOB_TABLE], words[JOB_TASKS] = entry, table, tasks
            words[JOB_PIECE] = max(1, tasks // (members * _PIECES_PER_MEMBER))
            words[JOB_MEMBERS], words[JOB_NEXT], words[JOB_FAILED] = members, 0, 0
            self._lead(self.job.address, scratch, SPINS, _GIVE_WAY)
            return -members if words[JOB_FAILED] else members
        finally:
            self._calls.discard(call)

    def _wake(self, count: int) -> None:
        while len(self._members) < count:
            try:
                self._members.append(_Member(self, len(self._members) + 1))
            except (RuntimeError, MemoryError):  # no thread can be started: fewer do it
                break
        for member in self._members[:count]:
            member.wake()

    def stop(self) -> None:
        """Let all members end: none may look at memory that the interpreter gives back."""
        self.is_stopped = True
        self.job.words[JOB_STOPPED] = 1
        for member in self._members:
            member.open()
        for member in self._members:
            member.thread.join(1)


def _address_of_yield() -> int:
    """Return where the C library has the function by which a thread gives way; 0: nowhere."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # Windows
        return 0


_GIVE_WAY = _address_of_yield()
_team: Team | None = None
_is_refused = False  # nothing can be compiled here
_making = threading.RLock()  # a signal's handler or a finalizer may come by while it is held


def current() -> Team | None:
    """Return the team of this process, None where its kernels can be neither found nor made."""
    global _team, _is_refused
    if _team is None and not _is_refused:
        with _making:
            try:
                made = Team() if _team is None else _team
            except RuntimeError as error:
                log.tell(log.INFO, "no threads stand by for light work: %s", error)
                _is_refused = True
                return None
            if _team is None:
                atexit.register(made.stop)
                _team = made
    return _team


@forks.in_child
def _forget() -> None:
    """Forget the parent's team: its threads do not exist in the child."""
    global _team, _making
    if _team is not None:
        atexit.unregister(_team.stop)
        _team.job.words[JOB_INSIDE] = 0  # if this was forked by a handler while it leads
    _team, _making = None, threading.RLock()


def _kernel(name: str) -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._cpu import team_kernels

        found: Callable[..., None] = getattr(team_kernels, name)
        return found

    return get_kernel(("team", name), write)
