"""Memos: bounded, made once, in any thread and any child; and what keys of operators hold."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray

import gpualgo as ga
from gpualgo._algorithms.transform.problem import Transformation
from gpualgo._arrays import view as views
from gpualgo._base import memo as memos
from gpualgo._base.memo import Memo
from gpualgo._cpu import kernels
from gpualgo._cpu import memory as captured
from gpualgo._cuda import build
from gpualgo._operators import key
from gpualgo._operators.captured import Key
from gpualgo._operators.tokens import digest_of

WAIT = 30  # seconds; what takes longer hangs


def test_the_oldest_goes_first() -> None:
    memo: Memo[int] = Memo(3)
    for n in range(10):
        assert memo.made(n, lambda n=n: 10 * n) == 10 * n  # type: ignore[misc]
    assert list(memo) == [7, 8, 9]
    assert [memo.get(n) for n in (6, 7, 9)] == [None, 70, 90]
    memo.add(7, 71)  # is the newest then
    memo.add(10, 100)
    assert list(memo) == [9, 7, 10]
    assert memo.values() == [90, 71, 100]
    memo.clear()
    assert len(memo) == 0


def test_a_value_lives_as_long_as_somebody_holds_it() -> None:
    memo: Memo[set[int]] = Memo(1)
    seen = weakref.ref(memo.add("first", {1}))
    held = memo.get("first")
    memo.add("second", {2})
    assert memo.get("first") is None
    assert seen() is held is not None
    del held
    assert seen() is None


def test_unhashable_keys_are_not_kept() -> None:
    memo: Memo[str] = Memo(3)
    assert memo.get([1]) is None
    assert memo.add([1], "value") == "value"
    assert memo.made(([1],), lambda: "made") == "made"
    assert len(memo) == 0


class _Heavy:
    """A value that weighs something."""


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "MOST_BYTES", 100 << 10)
    monkeypatch.setattr(memos, "_weighed", {})


def test_memos_share_one_budget_of_bytes(budget: None) -> None:
    first: Memo[_Heavy] = Memo(100)
    second: Memo[_Heavy] = Memo(100)
    for n in range(4):
        for memo in (first, second):
            memo.weigh(memo.add(n, _Heavy()), 20 << 10)
    assert (list(first), list(second)) == ([2, 3], [1, 2, 3])  # the oldest went first
    oldest = second.get(1)
    assert oldest is not None
    second.weigh(oldest, 40 << 10)  # has become heavier, and is the newest
    assert (list(first), list(second)) == ([3], [1, 2, 3])


def test_what_weighs_most_of_all_stays_until_the_next(budget: None) -> None:
    memo: Memo[_Heavy] = Memo(100)
    memo.weigh(memo.add("small", _Heavy()), 10 << 10)
    seen = weakref.ref(memo.add("great", _Heavy()))
    memo.weigh(memo.get("great"), 1 << 30)  # type: ignore[arg-type]
    assert list(memo) == ["great"]
    memo.weigh(memo.add("next", _Heavy()), 10 << 10)
    assert list(memo) == ["next"]
    assert seen() is None


def test_few_bytes_and_what_has_gone_do_not_count(budget: None) -> None:
    memo: Memo[_Heavy] = Memo(1000)
    for n in range(200):
        memo.weigh(memo.add(n, _Heavy()), 4 << 10)
    assert len(memo) == 200
    memo.clear()
    for n in range(3):
        memo.weigh(_Heavy(), 90 << 10)  # that is not kept
        memo.weigh(memo.add(n, _Heavy()), 30 << 10)
    assert list(memo) == [0, 1, 2]


def test_plans_for_other_outputs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memos, "MOST_BYTES", 1 << 16)
    monkeypatch.setattr(memos, "_weighed", {})
    Transformation.problems.clear()
    x, memory, negative = np.ones(40), np.empty(1000), lambda a: -a
    for n in range(20, 40):
        for step in range(2, 22):
            out = ga.transform(negative, x[:n], out=memory[::step][:n])
            assert (out == -1).all()
    kept = [len(problem.cpu_plans) for problem in set(Transformation.problems.values())]
    assert 20 <= sum(kept) <= 40


def test_made_once_by_many_threads() -> None:
    memo: Memo[object] = Memo(100)
    made: list[int] = []
    barrier = threading.Barrier(16)

    def ask(number: int) -> object:
        def make() -> object:
            made.append(number % 4)
            time.sleep(0.02)
            return object()

        barrier.wait(WAIT)
        return memo.made(number % 4, make)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(16)))
    assert sorted(made) == [0, 1, 2, 3]
    assert all(value is memo.get(i % 4) for i, value in enumerate(found))


def test_keys_do_not_wait_for_each_other() -> None:
    memo: Memo[str] = Memo(4)
    started, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert go_on.wait(WAIT)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(memo.made, "slow", slow)
        assert started.wait(WAIT)
        assert memo.made("fast", lambda: "fast") == "fast"
        go_on.set()
        assert future.result(WAIT) == "slow"


def test_an_exception_is_not_kept() -> None:
    memo: Memo[int] = Memo(4)
    tries: list[int] = []
    barrier = threading.Barrier(4)

    def make() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return 7

    def ask(_: int) -> int:
        barrier.wait(WAIT)
        try:
            return memo.made("key", make)
        except ValueError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(ask, range(4))) == [0, 0, 7, 7]
    assert len(tries) == 3
    assert not memo._making


def test_making_may_ask_for_other_values() -> None:
    memo: Memo[int] = Memo(100)

    def power(n: int) -> int:
        return memo.made(n, lambda: 1 if n == 0 else 2 * power(n - 1))

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(power, n % 20) for n in range(40)]
        assert [future.result(WAIT) for future in futures] == [2 ** (n % 20) for n in range(40)]
    assert power(50) == 2**50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_waits_for_no_thread_of_its_parent() -> None:
    memo: Memo[str] = Memo(4)
    started, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert go_on.wait(WAIT)
        return "parent"

    def hold() -> None:
        with memo._lock:
            held.set()
            assert go_on.wait(WAIT)

    held = threading.Event()
    targets = lambda: memo.made("key", slow), hold
    threads = [threading.Thread(target=target) for target in targets]
    for thread, is_there in zip(threads, (started, held), strict=True):
        thread.start()
        assert is_there.wait(WAIT)
    child = os.fork()
    if child == 0:
        worker = threading.Thread(
            target=lambda: os._exit(memo.made("key", lambda: "child") != "child")
        )
        worker.start()
        worker.join(WAIT)
        os._exit(2)
    go_on.set()
    for thread in threads:
        thread.join(WAIT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memo.get("key") == "parent"


# --- keys of operators --------------------------------------------------------------------


def test_a_key_lives_as_long_as_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key, "codes", Memo(2))

    def new() -> Key:
        return ga.Operator(eval("lambda a, b: a * 12345 + b", {})).key  # no frame's locals

    first = new()
    others = {ga.Operator(eval(f"lambda a, b: a + b * {number}", {})).key for number in range(4)}
    is_alone, is_same = first not in others, new() is first  # though its code was given up
    assert is_alone
    assert is_same
    digest, seen = digest_of(first), weakref.ref(first)
    assert len(digest) == 64
    del first
    key.codes.clear()
    gc.collect()
    assert seen() is None
    assert digest_of(new()) == digest


def test_one_key_for_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        monkeypatch.setattr(key, "codes", Memo(1))
        barrier = threading.Barrier(8)

        def ask(_: int, number: int = number, barrier: threading.Barrier = barrier) -> Key:
            barrier.wait(WAIT)
            return ga.Operator(eval(f"lambda a, b: a * 54321 + b * {number}", {})).key

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(ask, range(8)))) == 1


def test_what_changes_while_a_call_begins_is_of_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    factor, keys = 1, []
    stub, view = build.kernel, views._viewers[FakeArray]

    def kernel(spec: Any, ordinal: int) -> Any:
        keys.append(spec.op.key)
        return stub(spec, ordinal)

    class Changing(FakeArray):
        """An output that is looked at after the operator, as another thread could run then."""

    def look(x: Changing) -> Any:
        nonlocal factor
        factor = 2
        return view(x)

    def op(a: Any, b: Any) -> Any:
        return a * factor + b

    monkeypatch.setattr(build, "kernel", kernel)
    monkeypatch.setitem(views._viewers, Changing, look)
    x, total = FakeArray((8,), np.float32), FakeArray((), np.float32)
    first = ga.Operator(op).key
    ga.reduce(x, 0, op, out=Changing((), np.float32))
    assert factor == 2
    ga.reduce(x, 0, op, out=total)
    second = ga.Operator(op).key
    assert keys == [first, second]
    factor = 1
    ga.reduce(x, 0, op, out=total)
    assert set(keys[2:]) <= {first}  # kept, or made anew


def _lookup(table: Any) -> Callable[..., Any]:
    return lambda i: table[i] * 31 + 4711


def test_words_of_captured_arrays_go_with_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    holders = ((key, "codes"), (kernels, "_kernels"), (kernels, "_compiled"),
               (Transformation, "problems"))  # fmt: skip
    for owner, name in holders:
        monkeypatch.setattr(owner, name, Memo(8))
    gc.collect()
    before = len(captured._states)
    with ga.default_device("cpu"):
        for start in (0.0, 7.0):  # what was given up is made anew
            table = np.arange(start, start + 5)
            found = ga.transform(_lookup(table), np.arange(5))
            np.testing.assert_array_equal(found, table * 31 + 4711)
            assert len(captured._states) == before + 1
            for owner, name in holders:
                getattr(owner, name).clear()
            gc.collect()
            assert len(captured._states) == before
