"""A range of tasks on all cores: who runs a task never changes what the task computes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpualgo._base import forks

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

SMALL_BYTES = 1 << 16  # not worth looking at the clock
LARGE_BYTES = 1 << 24  # worth several cores, whatever the operator
WAKE_SECONDS = 2e-4  # work left that repays waking a thread
# What a further thread costs all others: a wake-up, and its turns of the interpreter's lock. 10 to
# 120 µs, by the machine; n threads take work / n + n times it, the least where both are alike.
THREAD_SECONDS = 5e-5
BYTE_SECONDS = 2.5e-10  # of work that nobody has timed
_PIECE_BYTES = 1 << 26  # the longest a thread works without looking at signals
_PIECES_PER_THREAD = 4

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()
_bounds = threading.local()  # of calls that a thread makes for another program's scheduler


def num_threads() -> int:
    """Return how many cores this thread may use, bounded by GPUALGO_NUM_THREADS."""
    cores = _num_cores()
    most = getattr(_bounds, "most", None)
    if most is not None:
        cores = min(cores, most)
    bound = check_environment()
    return cores if bound is None else min(cores, bound)


def check_environment() -> int | None:
    """Return what GPUALGO_NUM_THREADS says, which no core is asked for; None: it is not set."""
    text = os.environ.get("GPUALGO_NUM_THREADS")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(
            f"GPUALGO_NUM_THREADS must be a positive integer, got {text!r}; unset it for all cores"
        )
    return int(text)


@contextmanager
def at_most(most: int | None) -> Iterator[None]:
    """Bound how many cores this thread's calls use, where others need theirs; None: not at all."""
    before = getattr(_bounds, "most", None)
    _bounds.most = most
    try:
        yield
    finally:
        _bounds.most = before


def worth(seconds: float) -> int:
    """Return how many threads, this one among them, work of so many seconds for one repays."""
    return min(num_threads(), 1 + int((seconds / THREAD_SECONDS) ** 0.5))


def most_for(num_bytes: int) -> int:
    """Return how many threads may share so many bytes of work, at most; see `run`."""
    if num_bytes <= SMALL_BYTES:
        return 1
    return num_threads() if num_bytes < LARGE_BYTES else worth(num_bytes * BYTE_SECONDS)


def _num_cores() -> int:
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(body: Callable[[int, int], None], num_tasks: int, num_bytes: int) -> int:
    """Call body(first, last) over ranges that cover num_tasks tasks; num_bytes is all their work.

    Returns how many threads it was for: 1 if it was too little to wake another. It returns, or
    raises, only when no thread runs body any longer.
    """
    if not num_tasks:
        return 1
    if num_bytes <= SMALL_BYTES:
        body(0, num_tasks)
        return 1
    probe, left = 0, num_bytes * BYTE_SECONDS
    if num_bytes < LARGE_BYTES:
        # Bytes do not tell what an operator costs: an eighth of the work, timed, does.
        probe = -(-num_tasks // 8)
        start = time.perf_counter()
        body(0, probe)
        left = (time.perf_counter() - start) * (num_tasks - probe) / probe
        if left <= WAKE_SECONDS:
            if probe < num_tasks:
                body(probe, num_tasks)
            return 1
    threads = worth(left)
    pieces = max(threads * _PIECES_PER_THREAD if threads > 1 else 1, num_bytes // _PIECE_BYTES)
    queue = _Queue(body, probe, num_tasks, min(pieces, num_tasks - probe), threads)
    try:
        queue.wake(1)
        queue.work()
    finally:
        # Until the helpers have stopped, they write to memory that the caller owns.
        queue.close()
        try:
            _wait(queue.helpers)
        finally:
            queue.forget()
    for helper in queue.helpers:
        if not helper.cancelled():
            helper.result()
    return threads


def side_by_side(*makes: Callable[[], Any]) -> list[Any]:
    """Return what functions return: the first is called here, each other by a thread of its own.

    Returns, or raises what one has raised, only when all have ended.
    """
    if len(makes) < 2 or _num_cores() == 1:
        return [make() for make in makes]
    first, *others = (_Made(make) for make in makes)
    helpers = [threading.Thread(target=each.run, name="gpualgo") for each in others]
    started = []
    try:
        for helper in helpers:
            helper.start()
            started.append(helper)
    except RuntimeError:
        pass  # no thread can be started: the caller does it all
    for each in (first, *others[len(started) :]):
        each.run()
    for helper in started:
        helper.join()
    return [each.result() for each in (first, *others)]


class _Made:
    """What a function returned or raised."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._value: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._make()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


class _Queue:
    """Hands out ranges of tasks to whichever thread asks next."""

    def __init__(
        self, body: Callable[[int, int], None], first: int, last: int, pieces: int, threads: int
    ) -> None:
        self.body, self.first, self.last, self.pieces = body, first, last, pieces
        self.helpers: list[Future[None]] = []
        self._asleep = min(threads, pieces) - 1  # helpers that may be woken yet
        self._next = 0
        self._lock = threading.Lock()

    def wake(self, most: int) -> None:
        """Wake helpers while there are pieces for them: each wakes two more before it works.

        To wake one takes 10 to 100 µs of the thread that does it, so none wakes them all. A
        helper's own are among the helpers before it ends.
        """
        for _ in range(most):
            with self._lock:
                if self._asleep <= 0 or self._next >= self.pieces:
                    return
                self._asleep -= 1
            try:
                self.helpers.append(_get_pool().submit(self._help))
            except RuntimeError:
                return  # no thread can be started (interpreter at its end): others do it all

    def _help(self) -> None:
        self.wake(2)
        self.work()

    def work(self) -> None:
        """Run pieces until none is left or a thread has failed."""
        try:
            while (piece := self._take()) is not None:
                self.body(self._start(piece), self._start(piece + 1))
        except BaseException:
            self.close()
            raise

    def _start(self, piece: int) -> int:
        return self.first + (self.last - self.first) * piece // self.pieces

    def close(self) -> None:
        with self._lock:
            self._next = self.pieces

    def forget(self) -> None:
        """Let go of the arrays: the pool holds what it runs, or was to run, for a while yet."""
        del self.body

    def _take(self) -> int | None:
        with self._lock:
            if self._next >= self.pieces:
                return None
            self._next += 1
            return self._next - 1


def _wait(helpers: list[Future[None]]) -> None:
    interrupt: BaseException | None = None
    for helper in helpers:
        while not helper.cancel() and not helper.done():
            try:
                helper.exception()
            except BaseException as error:  # what a signal's handler raises
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor  # takes milliseconds

            _pool = ThreadPoolExecutor(max(1, _num_cores() - 1), "gpualgo")
        return _pool


@forks.in_child
def _after_fork() -> None:
    """Forget the parent's threads and its lock: neither exists in the child."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()
