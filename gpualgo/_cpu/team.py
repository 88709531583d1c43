"""Threads that stand by for work of some tens of microseconds, less than waking one may take.

A member looks for jobs in compiled code, without the interpreter's lock, and goes to sleep when
none has come for a while (`SPINS`): a tenth of a millisecond or so after the last call. Who runs a
task never changes what it computes. Longer work goes by `threads.run`. See ADR 32.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable

from gpualgo._base import forks
from gpualgo._cpu.kernels import Kernel, get_kernel, unchecked
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
    """A thread, and whether it looks for jobs."""

    def __init__(self, team: Team, number: int) -> None:
        self.is_awake, self.gate = False, threading.Semaphore(0)
        self.thread = threading.Thread(
            target=self._run, args=(team, number), name=f"gpualgo-{number}", daemon=True
        )
        self.thread.start()

    def wake(self) -> None:
        if not self.is_awake:
            self.is_awake = True
            self.gate.release()

    def _run(self, team: Team, number: int) -> None:
        memory = Memory(MEMORY_BYTES)
        while True:
            self.gate.acquire()
            if team.is_stopped:
                return
            team.serve(team.job.address, memory.address, number, SPINS)
            self.is_awake = False


class Team:
    """Members, and the job that they share with whoever leads."""

    def __init__(self) -> None:
        self.job, self.is_stopped = Memory(8 * JOB_WORDS), False
        self.job.words[:] = memoryview(bytes(self.job.words.nbytes)).cast("q")
        self._kernels = _kernel("lead"), _kernel("serve")
        self._lead, self.serve = map(unchecked, self._kernels)
        self._members: list[_Member] = []
        self._lock = threading.Lock()

    def run(
        self, entry: int, table: int, scratch: int, tasks: int, seconds: float, most: int
    ) -> int:
        """Run a kernel's tasks, work of so many seconds for one thread, and wait for all of them.

        Returns by how many threads it was, `most` at most, negative if the kernel has failed; 0:
        another thread leads, and nothing was run.
        """
        if not self._lock.acquire(blocking=False):
            return 0
        try:
            members = min(most, 1 + int((seconds / MEMBER_SECONDS) ** 0.5), tasks)
            self._wake(members - 1)
            words = self.job.words
            words[JOB_ENTRY], words[JOB_TABLE], words[JOB_TASKS] = entry, table, tasks
            words[JOB_PIECE] = max(1, tasks // (members * _PIECES_PER_MEMBER))
            words[JOB_MEMBERS], words[JOB_NEXT], words[JOB_FAILED] = members, 0, 0
            try:
                self._lead(self.job.address, scratch, SPINS, 0)
            finally:
                self._settle()
            return -members if words[JOB_FAILED] else members
        finally:
            self._lock.release()

    def _settle(self) -> None:
        """Wait until nobody is inside, whatever a signal's handler raises: they use its arrays."""
        interrupt: BaseException | None = None
        while self.job.words[JOB_INSIDE]:
            try:
                time.sleep(0)  # a member's core may be ours
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _wake(self, count: int) -> None:
        while len(self._members) < count:
            try:
                self._members.append(_Member(self, len(self._members) + 1))
            except RuntimeError:  # no thread can be started: fewer do it
                break
        for member in self._members[:count]:
            member.wake()

    def stop(self) -> None:
        """Let all members end: none may look at memory that the interpreter gives back."""
        self.is_stopped = True
        self.job.words[JOB_STOPPED] = 1
        for member in self._members:
            member.gate.release()
        for member in self._members:
            member.thread.join(1)


_team: Team | None = None
_making = threading.Lock()


def current() -> Team:
    """Return the team of this process."""
    global _team
    if _team is None:
        with _making:
            if _team is None:
                made = Team()
                atexit.register(made.stop)
                _team = made
            return _team
    return _team


@forks.in_child
def _forget() -> None:
    """Forget the parent's team: its threads do not exist in the child."""
    global _team, _making
    if _team is not None:
        atexit.unregister(_team.stop)
    _team, _making = None, threading.Lock()


def _kernel(name: str) -> Kernel:
    def write() -> Callable[..., None]:
        from gpualgo._cpu import team_kernels

        found: Callable[..., None] = getattr(team_kernels, name)
        return found

    return get_kernel(("team", name), write)
