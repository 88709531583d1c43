"""A parallel for loop over tasks; results do not depend on the assignment to threads."""

from __future__ import annotations

import _thread
import ctypes
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any

from gpualgo._base import forks

SMALL_BYTES = 1 << 16  # up to here one thread runs all, untimed
LARGE_BYTES = 1 << 24  # from here on several threads run even the cheapest operator
WAKE_SECONDS = 2e-4  # least remaining work for which a thread is woken
# Cost of each further thread: its wake-up and its use of the GIL, 10 to 120 µs depending on the
# machine. n threads take work / n + n * THREAD_SECONDS, which is least if both terms are equal.
THREAD_SECONDS = 5e-5
BYTE_SECONDS = 2.5e-10  # estimate for untimed work
_PIECE_BYTES = 1 << 26  # most work of a thread between checks for signals
_PIECES_PER_THREAD = 4

_pool: _Pool | None = None
_lock = forks.Lock()
_bounds = threading.local()  # set by `at_most`


def num_threads() -> int:
    """Return how many cores this thread may use, bounded by `at_most` and GPUALGO_NUM_THREADS."""
    cores = _num_cores()
    most = getattr(_bounds, "most", None)
    if most is not None:
        cores = min(cores, most)
    bound = check_environment()
    return cores if bound is None else min(cores, bound)


def check_environment() -> int | None:
    """Return the value of GPUALGO_NUM_THREADS, None if it is not set."""
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
    """Bound how many cores this thread's calls use; None removes the bound."""
    before = getattr(_bounds, "most", None)
    _bounds.most = most
    try:
        yield
    finally:
        _bounds.most = before


def best_threads(seconds: float) -> int:
    """Return the best number of threads for work that takes one thread `seconds`."""
    return min(num_threads(), 1 + int((seconds / THREAD_SECONDS) ** 0.5))


def most_for(num_bytes: int) -> int:
    if num_bytes <= SMALL_BYTES:
        return 1
    return num_threads() if num_bytes < LARGE_BYTES else best_threads(num_bytes * BYTE_SECONDS)


def _num_cores() -> int:
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(body: Callable[[int, int], None], num_tasks: int, num_bytes: int) -> int:
    """Call body(first, last) for ranges that cover num_tasks tasks, num_bytes of work in all.

    Returns the number of threads: 1 if there was too little work to wake another. It returns or
    raises only after all threads have left body.
    """
    if not num_tasks:
        return 1
    if num_bytes <= SMALL_BYTES:
        body(0, num_tasks)
        return 1
    probe, remaining_seconds = 0, num_bytes * BYTE_SECONDS
    if num_bytes < LARGE_BYTES:
        # The cost of an operator is unknown: time an eighth of the work.
        probe = -(-num_tasks // 8)
        start = time.perf_counter()
        body(0, probe)
        remaining_seconds = (time.perf_counter() - start) * (num_tasks - probe) / probe
        if remaining_seconds <= WAKE_SECONDS:
            if probe < num_tasks:
                body(probe, num_tasks)
            return 1
    threads = best_threads(remaining_seconds)
    pieces = max(threads * _PIECES_PER_THREAD if threads > 1 else 1, num_bytes // _PIECE_BYTES)
    _run_pieces(body, probe, num_tasks, min(pieces, num_tasks - probe), threads)
    return threads


def _run_pieces(
    body: Callable[[int, int], None], first: int, last: int, pieces: int, threads: int
) -> None:
    """Call body for ranges of tasks, by so many threads; return after all have left body."""
    queue = _Queue(body, first, last, pieces, threads)
    failure: BaseException | None = None
    while True:
        try:
            if failure is None:
                queue.wake(1)
                queue.work()
            queue.close()
            for helper in queue.helpers:  # one writes to the caller's memory, and may add others
                helper.wait()
            break
        except BaseException as error:  # of body, or raised by a signal handler
            failure = error
    queue.forget()
    for helper in queue.helpers:
        failure, helper.error = helper.error if failure is None else failure, None
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # a frame that refers to its own error is a cycle


def run_concurrently(*makes: Callable[[], Any]) -> list[Any]:
    """Call functions concurrently, whatever bounds the threads of calls; return their results.

    If one fails, those that have not begun are not called.
    """
    results: list[Any] = [None] * len(makes)

    def body(first: int, last: int) -> None:
        results[first:last] = [function() for function in makes[first:last]]

    _run_pieces(body, 0, len(makes), len(makes), _num_cores())
    return results


class _Queue:
    """Distributes ranges of tasks ("pieces") dynamically to threads."""

    def __init__(
        self, body: Callable[[int, int], None], first: int, last: int, pieces: int, threads: int
    ) -> None:
        self.body, self.first, self.last, self.pieces = body, first, last, pieces
        self.helpers: list[_Helper] = []
        self._asleep = min(threads, pieces) - 1  # how many more helpers may be woken
        self._next = 0
        self._lock = forks.Lock()

    def wake(self, most: int) -> None:
        """Wake up to `most` helpers while pieces remain; each helper wakes two more.

        Waking one takes 10 to 100 µs, so the wake-ups form a tree. A helper appends those that it
        wakes to `helpers` before it ends.
        """
        for _ in range(most):
            with self._lock:
                if self._asleep <= 0 or self._next >= self.pieces:
                    return
                self._asleep -= 1
            try:
                self.helpers.append(_get_pool().submit(self._help))
            except RuntimeError:
                return  # no thread can be started (at interpreter exit): the others do the work

    def _help(self) -> None:
        self.wake(2)
        self.work()

    def work(self) -> None:
        """Run pieces until none remains or a thread has failed."""
        try:
            while (piece := self._next_piece()) is not None:
                self.body(self._first_task(piece), self._first_task(piece + 1))
        except BaseException:
            self.close()
            raise

    def _first_task(self, piece: int) -> int:
        return self.first + (self.last - self.first) * piece // self.pieces

    def close(self) -> None:
        with self._lock:
            self._next = self.pieces

    def forget(self) -> None:
        """Release the arrays that body references: the pool keeps its work items for a while."""
        del self.body

    def _next_piece(self) -> int | None:
        with self._lock:
            if self._next >= self.pieces:
                return None
            self._next += 1
            return self._next - 1


class _Helper:
    """A call that a thread of the pool makes, unless its caller wants it no more before it begins.

    Signal handlers may raise at any step of the caller: all of its steps may be done again.
    """

    __slots__ = ("_claims", "_ended", "_function", "error", "has_ended")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._claims: list[bool] = []  # of the pool's thread and of the caller: the first one holds
        self._ended = _thread.allocate_lock()  # released by the thread that runs it
        self._ended.acquire()
        self.has_ended = False
        self.error: BaseException | None = None

    def run(self) -> None:
        self._claims.append(True)
        if self._claims[0]:
            try:
                self._function()
            except BaseException as error:
                self.error = error
            finally:
                self.has_ended = True
                self._ended.release()

    def wait(self) -> None:
        """Cancel the call, or wait until it has ended."""
        self._claims.append(False)
        while self._claims[0] and not self.has_ended:
            self._ended.acquire()


class _Pool:
    """Threads that make calls, started when they are needed.

    A signal handler that raises leaves no lock of it held, as it could in `concurrent.futures`.
    """

    def __init__(self, most: int) -> None:
        self._most, self._started, self._free = most, 0, 0
        self._calls: SimpleQueue[_Helper] = SimpleQueue()
        self._lock = forks.Lock()

    def submit(self, function: Callable[[], Any]) -> _Helper:
        """Have a thread call a function; raise RuntimeError if none can be started."""
        helper = _Helper(function)
        with self._lock:
            if self._free <= 0 and self._started < self._most:
                _thread.start_new_thread(self._serve, ())
                self._started += 1
                self._free += 1
            self._free -= 1  # negative: calls that wait for a thread
        self._calls.put(helper)
        return helper

    def _serve(self) -> None:
        while True:
            self._calls.get().run()
            with self._lock:
                self._free += 1


def _get_pool() -> _Pool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = _Pool(max(1, _num_cores() - 1))
        return _pool


@forks.in_child
def _reset_after_fork() -> None:
    """Drop the parent's pool: the child has none of its threads."""
    global _pool
    _pool = None


# --- Allocates the physical pages of new memory with several threads, before it is written.
#
# The first write to each page causes a page fault: one thread writes 3 GB/s to new pages, 6
# GB/s to allocated ones. Threads that copy adjacent pieces also wait for the same huge page.

LEAST_BYTES = 16 << 20  # below 32 MiB the allocator mostly reuses freed memory
_POPULATED_BYTES = 4 << 20
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14 and later; changes no byte


def populate(address: int, num_bytes: int) -> None:
    """Allocate the pages of memory that is about to be written, unless they are resident.

    If the system does not support this, the writes allocate them.
    """
    if num_bytes < LEAST_BYTES or (libc := _libc()) is None:
        return
    begin, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, address + num_bytes
    end -= end % mmap.PAGESIZE
    if _are_resident(libc, begin, end):
        return

    def body(first: int, last: int) -> None:
        start, stop = begin + first * _POPULATED_BYTES, min(begin + last * _POPULATED_BYTES, end)
        libc.madvise(start, stop - start, _POPULATE_WRITE)

    run(body, -(-(end - begin) // _POPULATED_BYTES), end - begin)


def _are_resident(libc: Any, begin: int, end: int) -> bool:
    last = end - mmap.PAGESIZE
    middle = (begin + last) // 2 // mmap.PAGESIZE * mmap.PAGESIZE
    state = ctypes.c_ubyte()
    for page in (last, middle, begin):
        if libc.mincore(page, mmap.PAGESIZE, ctypes.byref(state)) or not state.value & 1:
            return False
    return True


@cache
def _libc() -> Any:
    """Return the C library with madvise and mincore, None if they are missing."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None
    return libc
