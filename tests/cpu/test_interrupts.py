"""Calls that a signal's handler cuts short leave nothing behind that later calls wait for."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import memory

X = np.arange(5.0)


class _Lock:
    """A lock; raises as a signal's handler would, once, after it has been let go so many times."""

    def __init__(self, lock: Any) -> None:
        self.lock, self.left = lock, 0

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self.lock.release()
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def _scaled(k: float, out: Any = None) -> Any:
    with ga.default_device("cpu"):
        return ga.transform(lambda a: a * k, X, out=out)


@pytest.mark.parametrize("out", [None, np.empty(5)], ids=["warm", "out"])
def test_numbers_that_a_call_has_taken(monkeypatch: pytest.MonkeyPatch, out: Any) -> None:
    for k in (2.0, 3.0):
        _scaled(k, out)
    locks = []
    for state in list(memory._states.values()):
        locks.append(_Lock(state._lock))
        monkeypatch.setattr(state, "_lock", locks[-1])
    for when in (1, 2):  # taken, left
        for lock in locks:
            lock.left = when
        with pytest.raises(KeyboardInterrupt):
            _scaled(4.0 + when, out)
        for lock in locks:
            lock.left = 0
        other = threading.Thread(target=_scaled, args=(1.5,), daemon=True)  # with other numbers
        other.start()
        other.join(20)
        assert not other.is_alive(), "it waits for ever"
        np.testing.assert_array_equal(_scaled(1.5), X * 1.5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that signal here")
def test_what_a_signal_raises_waits_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They write to memory of the caller, who may give it up then."""
    monkeypatch.setattr(threads, "num_threads", lambda: 2)
    monkeypatch.setattr(threads, "_num_cores", lambda: 2)
    monkeypatch.setattr(threads, "_pool", None)
    caller, is_running, has_ended = threading.get_ident(), threading.Event(), threading.Event()

    def body(first: int, last: int) -> None:
        if threading.get_ident() == caller:
            assert is_running.wait(30)
        elif not is_running.is_set():
            is_running.set()
            time.sleep(0.5)  # while the caller waits for it and the signal comes
            has_ended.set()

    def late(*_: Any) -> None:
        raise TimeoutError("the signal's own")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="the signal's own"):
            threads.run(body, 8, 1 << 30)
        assert has_ended.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _use_new_pool(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(threads, "num_threads", lambda: count)
    monkeypatch.setattr(threads, "_num_cores", lambda: count)
    monkeypatch.setattr(threads, "_pool", None)


def test_a_pool_is_usable_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_new_pool(monkeypatch, 3)
    done: list[int] = []

    def run() -> None:
        done.clear()
        threads.run(lambda first, last: done.extend(range(first, last)), 100, 1 << 30)

    run()
    pool = threads._get_pool()
    lock = _Lock(pool._lock)
    monkeypatch.setattr(pool, "_lock", lock)
    lock.left = 1
    with pytest.raises(KeyboardInterrupt):
        run()
    for _ in range(3):
        run()
        assert sorted(done) == list(range(100))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that signal here")
def test_calls_between_many_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a handler raises, no thread works on after the call, and later calls return."""
    _use_new_pool(monkeypatch, 4)
    caller = threading.get_ident()
    running: list[int] = []  # in other threads
    done: list[int] = []

    def body(first: int, last: int) -> None:
        is_helper = threading.get_ident() != caller
        if is_helper:
            running.append(first)
        time.sleep(2e-5)
        done.extend(range(first, last))
        if is_helper:
            running.remove(first)

    class Late(BaseException):
        pass

    def late(*_: Any) -> None:
        raise Late

    end, interrupted = time.monotonic() + 2, 0
    before = signal.signal(signal.SIGALRM, late)
    try:
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + interrupted % 7))
                threads.run(body, 64, 1 << 30)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Late:
                interrupted += 1
            assert not running
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted
    done.clear()
    threads.run(body, 64, 1 << 30)
    assert sorted(done) == list(range(64))
