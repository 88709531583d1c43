"""Forks while another thread imports what a first call imports, or is about to load a package."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import run_python

from gpualgo._base import forks, imports

# Python's locks of modules are never free in a child if another thread holds them at the fork.
WHILE_IMPORTING = """if True:
    import os, signal, sys, threading, time
    import gpualgo

    found = threading.Event()

    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == "gpualgo._cpu.kernels":
                found.set()
                time.sleep(0.3)

    sys.meta_path.insert(0, Slow())
    load = lambda: __import__("gpualgo._cpu.kernels")
    thread = threading.Thread(target=load)
    thread.start()
    found.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        load()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_an_import() -> None:
    done = run_python(WHILE_IMPORTING)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]


# The thread registers its locks after this fork has begun, and then holds them.
WHILE_REGISTERING = """if True:
    import os, signal, threading, time
    import numpy as np
    import gpualgo as ga
    from gpualgo._base import forks

    x, begun, seen = np.arange(1000.0), threading.Event(), threading.Event()
    is_importing = forks._is_importing

    def waits():
        begun.set()
        seen.wait(10)
        forks._is_importing = is_importing
        return is_importing()

    def compiles():
        begun.wait()
        wait_for = forks.wait_for

        def registers(*locks, **more):
            wait_for(*locks, **more)
            locks[0].acquire()
            seen.set()
            time.sleep(0.3)
            locks[0].release()

        forks.wait_for = registers
        ga.transform(lambda a: a * 1.5 + 7, x)

    forks._is_importing = waits
    thread = threading.Thread(target=compiles)
    thread.start()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        ga.transform(lambda a: a * 3 + 1, x)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_locks_that_are_registered_meanwhile(tmp_path: Path) -> None:
    done = run_python(WHILE_REGISTERING, GPUALGO_DEVICE="cpu", GPUALGO_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]


def test_nobody_loads_before_forks_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def slow(_lock: Any, around: Any = None) -> None:
        time.sleep(0.05)
        seen.append("registered")

    def load() -> None:
        with imports.loading():
            seen.append("loads")

    monkeypatch.setattr(forks, "wait_for", slow)
    monkeypatch.setattr(imports, "_is_registered", False)
    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["registered", "loads", "loads", "loads"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_holds_the_locks_of_the_forking_thread_alone() -> None:
    own, others, taken, done = forks.Lock(), forks.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with others:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    with own:
        pid = os.fork()
        if pid == 0:
            os._exit(not (own._is_owned() and others.acquire(blocking=False)))
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_child_knows_of_a_lock_that_was_lost() -> None:
    lock, taken, done = threading.RLock(), threading.Event(), threading.Event()
    assert forks._are_free([lock])

    def hold() -> None:
        with lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    assert not forks._are_free([threading.RLock(), lock])
    done.set()
    thread.join()
    assert forks._are_free([lock])
