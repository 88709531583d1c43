"""Threads that stand by: every task is run once, by whoever, and nobody outlives a call or all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import run_python

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import launch, team
from gpualgo._cpu.kernels import Kernel, get_kernel, status_function
from gpualgo._cpu.launch import CostEstimate
from gpualgo._cpu.memory import MEMORY_BYTES, Memory, address, take_scratch
from gpualgo._cpu.plan import JOB_INSIDE
from gpualgo._cpu.team import Team

FAILS = 77  # the word of a task that fails


def _write() -> Callable[..., None]:
    from numba import types

    from gpualgo._cpu.packing import load, pointer_to, store

    words = pointer_to(types.intp)

    def counted(table: int, scratch: int, first: int, last: int) -> None:
        p, own = words(table), words(scratch)
        for i in range(first, last):
            store(own, 0, load(p, i))
            if load(own, 0) == FAILS:
                raise ValueError
            store(p, i, load(own, 0) + 1)

    return counted


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return get_kernel(("tests", "counted"), _write)


@pytest.fixture
def leader() -> Iterator[Team]:
    made = Team()
    yield made
    made.stop()
    assert not any(member.thread.is_alive() for member in made._members)


def _run(leader: Team, kernel: Any, table: Any, most: int = 4) -> int:
    memory, entry = Memory(MEMORY_BYTES), kernel.address
    return leader.run(entry, address(table), memory.address, len(table), 1e-3, most)


def test_every_task_is_run_once(
    leader: Team, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(team, "SPINS", 300)  # so that some sleep before the next one
    for most in (2, 3, 5):
        for size in rng.integers(2, 300, 400):
            table = np.zeros(size, np.int64)
            assert _run(leader, kernel, table, most) == min(most, size)
            assert (table == 1).all()
    assert len(leader._members) == 4


def test_a_task_that_fails(leader: Team, kernel: Kernel) -> None:
    for at in (0, 5, 299):
        table = np.zeros(300, np.int64)
        table[at] = FAILS
        assert _run(leader, kernel, table) == -4
        assert table[at] == FAILS
        assert set(np.delete(table, at)) <= {0, 1}
    assert _run(leader, kernel, np.zeros(300, np.int64)) == 4


def test_one_leads_at_a_time(leader: Team, kernel: Kernel) -> None:
    leader._calls.add("another")
    assert _run(leader, kernel, np.zeros(9, np.int64)) == 0
    leader._calls.discard("another")
    assert _run(leader, kernel, np.zeros(9, np.int64)) == 4


def test_the_leader_waits_for_who_is_inside(
    leader: Team, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, done = leader.job.words, threading.Event()
    monkeypatch.setattr(team, "SPINS", 100)
    words[JOB_INSIDE] = 1
    table = np.zeros(20, np.int64)

    def call() -> None:
        _run(leader, kernel, table, 1)
        done.set()

    caller = threading.Thread(target=call)
    caller.start()
    while not (table == 1).all():
        time.sleep(0)
    assert not done.wait(0.02)
    words[JOB_INSIDE] = 0
    caller.join(10)
    assert done.is_set()


def test_a_call_that_is_interrupted_leaves_nothing(
    leader: Team, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for name in ("_wake", "_lead"):
        with monkeypatch.context() as patch:
            patch.setattr(leader, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                _run(leader, kernel, np.zeros(9, np.int64))
        assert _run(leader, kernel, np.zeros(9, np.int64)) == 4
    for _ in range(3):  # an open gate stays open
        leader._members[0].open()
    assert _run(leader, kernel, np.zeros(9, np.int64)) == 4


def test_no_thread_can_be_started(
    leader: Team, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    table = np.zeros(100, np.int64)
    assert _run(leader, kernel, table) == 4
    assert (table == 1).all()
    assert leader._members == []


def test_where_nothing_can_be_compiled_each_thread_works_alone(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_name: str) -> Kernel:
        raise ga.CompileError("no")

    monkeypatch.setattr(team, "_kernel", refuse)
    monkeypatch.setattr(team, "_team", None)
    monkeypatch.setattr(team, "_is_refused", False)
    monkeypatch.setattr(threads, "num_threads", lambda: 4)
    table, pace = np.zeros(100, np.int64), CostEstimate()
    pace.seconds = 1e-3
    pace.run(status_function(kernel), kernel.address, address(table), take_scratch(64), 100)
    assert (table == 1).all()
    assert team.current() is None


def test_where_threads_do_not_help_one_does_it(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, alone, shared = [0.0], [0], [0]
    monkeypatch.setattr(launch, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(threads, "num_threads", lambda: 4)
    seconds = {"alone": 1e-3, "shared": 0.4e-3}

    def run(*_: Any) -> int:
        clock[0] += seconds["shared"]
        shared[0] += 1
        return 2

    def code(*_: int) -> int:
        clock[0] += seconds["alone"]
        alone[0] += 1
        return 0

    monkeypatch.setattr(Team, "run", run)
    memory, pace = take_scratch(64), CostEstimate()

    def calls(count: int) -> tuple[int, int]:
        alone[0] = shared[0] = 0
        for _ in range(count):
            pace.run(code, 0, 0, memory, 9)
        return alone[0], shared[0]

    pace.seconds = 1e-3
    assert calls(20) == (0, 20)
    assert pace.seconds == pytest.approx(0.8e-3)
    seconds["shared"] = 1.5e-3  # the cores have become busy
    assert calls(200) == (192, 8)
    assert pace.seconds == pytest.approx(1e-3)
    seconds["shared"] = 0.4e-3
    assert calls(100)[0] <= 63
    assert calls(100) == (0, 100)
    seconds.update(alone=1.0, shared=0.6)  # another array's numbers take longer
    assert calls(2) == (1, 1)
    assert pace.seconds == pytest.approx(1.0)
    assert not pace.is_light


def test_who_runs_light_work(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    led: list[int] = []

    def run(*args: Any) -> int:
        led.append(args[-1])
        return 0  # another thread leads: it is run here

    monkeypatch.setattr(Team, "run", lambda self, *args: run(*args))
    monkeypatch.setattr(launch, "perf_counter", lambda: 0.0)
    code, table, memory = status_function(kernel), np.zeros(100, np.int64), take_scratch(64)
    given = code, kernel.address, address(table)

    def light(seconds: float, tasks: int = 100, scratch: Memory = memory) -> None:
        pace = CostEstimate()
        pace.seconds = seconds
        pace.run(*given, scratch, tasks)
        assert pace.seconds < seconds

    for count, want in ((4, [4]), (1, [])):
        monkeypatch.setattr(threads, "num_threads", lambda count=count: count)
        led.clear()
        light(1e-3)
        assert led == want
    monkeypatch.setattr(threads, "num_threads", lambda: 4)
    led.clear()
    light(team.LEAST_SECONDS / 2)
    light(1e-3, tasks=1)
    light(1e-3, scratch=Memory(2 * MEMORY_BYTES))
    assert led == []
    assert table.tolist() == [5, *[4] * 99]


def test_several_threads_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "num_threads", lambda: 3)
    monkeypatch.setattr(team, "LEAST_SECONDS", 0.0)
    x = np.arange(1 << 17, dtype=np.float64)
    with ga.default_device("cpu"):
        want = ga.reduce(x), ga.transform(lambda a: a * 2 + 1, x)

        def calls(seed: int) -> bool:
            with ga.default_device("cpu"):
                return all(
                    ga.reduce(x) == want[0]
                    and np.array_equal(ga.transform(lambda a: a * 2 + 1, x), want[1])
                    for _ in range(60)
                )

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(calls, range(4)))


AT_THE_END = """
import os, sys
import numpy as np
import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import launch, team
threads._num_cores = lambda: 3
team.LEAST_SECONDS = 0.0
ga.default_device("cpu").__enter__()
x = np.arange(1 << 17, dtype=np.float64)
want = ga.reduce(x)
assert all(ga.reduce(x) == want for _ in range(50))
assert team._team is not None and team._team._members
if hasattr(os, "fork"):
    child = os.fork()
    assert all(ga.reduce(x) == want for _ in range(50))
    if child:
        assert os.waitpid(child, 0)[1] == 0
print("done")
"""


def test_processes_end_and_fork() -> None:
    done = run_python(AT_THE_END, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"done"}
    assert done.stderr == "" or "DeprecationWarning" in done.stderr  # fork() of several threads
