"""Inside the CPU backend: bits and threads, fork, one build per key, vector code."""

from __future__ import annotations

import os
import platform
import re
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import run_python

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._base.memo import Memo
from gpualgo._base.strides import dense_strides
from gpualgo._cpu import kernels, layout, team


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share out the smallest work, so that small tests see every thread."""
    monkeypatch.setattr(threads, "SMALL_BYTES", -1)
    monkeypatch.setattr(threads, "THREAD_SECONDS", 1e-15)  # all of them, for however little
    monkeypatch.setattr(threads, "LARGE_BYTES", 0)


def _use(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Run on `count` threads, however many cores there are."""
    monkeypatch.setattr(threads, "num_threads", lambda: count)
    monkeypatch.setattr(threads, "_num_cores", lambda: count)
    monkeypatch.setattr(threads, "_pool", None)


LAYOUTS = {
    "flat": ((300_007,), "C", None),
    "rows": ((37, 9_001), "C", 1),
    "short rows": ((9_001, 37), "C", 1),
    "columns": ((5_003, 61), "C", 0),
    "wide columns": ((61, 5_003), "C", 0),
    "against the order": ((61, 5_003), "F", None),
    "middle": ((7, 1_009, 41), "C", 1),
    "outside": ((7, 1_009, 41), "C", (0, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.usefixtures("eager")
def test_the_same_bits_on_any_number_of_threads(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, order, axis = LAYOUTS[name]
    layout: Any = order
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype, order=layout)
    results = set()
    with ga.default_device("cpu"):
        for count in (1, 2, 3, 5, 8):
            _use(monkeypatch, count)
            for _ in range(2):
                result = ga.reduce(x, 0.5, lambda a, b: a + b, axis=axis)
                results.add(np.asarray(result).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("num_tasks", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("num_bytes", [1, 1 << 20, 1 << 30])
def test_every_task_runs_once(
    count: int, num_tasks: int, num_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, count)
    done: list[int] = []
    threads.run(lambda first, last: done.extend(range(first, last)), num_tasks, num_bytes)
    assert sorted(done) == list(range(num_tasks))


def test_several_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 3)
    together = threading.Barrier(3, timeout=10)

    def meet(first: int, last: int) -> None:
        together.wait()

    threads.run(meet, 3, 1 << 30)


@pytest.mark.parametrize("place", ["helper", "caller"])
def test_an_error_stops_all_and_is_raised(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 2)
    caller = threading.get_ident()
    running: list[int] = []

    def body(first: int, last: int) -> None:
        running.append(first)
        time.sleep(0.01)
        running.remove(first)
        if (threading.get_ident() == caller) == (place == "caller"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.run(body, 1000, 1 << 30)
    assert not running


@pytest.mark.parametrize("most", [0, 1])
def test_without_a_thread_to_be_had_the_caller_works(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    _use(monkeypatch, 2)

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._thread, "start_new_thread", refuse)
    monkeypatch.setattr(threads, "_pool", threads._Pool(most))
    done: list[int] = []
    threads.run(lambda first, last: done.extend(range(first, last)), 100, 1 << 30)
    assert sorted(done) == list(range(100))


def test_functions_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 2)
    here, both = threading.get_ident(), threading.Barrier(2, timeout=30)

    def name() -> bool:
        both.wait()
        return threading.get_ident() == here

    assert sorted(threads.run_concurrently(name, name)) == [False, True]
    ended = []

    def fail() -> None:
        both.wait()
        raise ZeroDivisionError

    def end() -> None:
        both.wait()
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(ZeroDivisionError):
        threads.run_concurrently(fail, end)
    assert ended
    assert threads.run_concurrently() == []


def test_functions_run_where_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    _use(monkeypatch, 2)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert threads.run_concurrently(lambda: 1, lambda: 2, lambda: 3) == [1, 2, 3]


def test_environment_bounds_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUALGO_NUM_THREADS", raising=False)
    cores = threads.num_threads()
    assert cores >= 1
    for text, count in {"1": 1, "100000": cores, "": cores}.items():
        monkeypatch.setenv("GPUALGO_NUM_THREADS", text)
        assert threads.num_threads() == count


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²"])
def test_a_bad_bound_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUALGO_NUM_THREADS", text)
    with pytest.raises(
        ValueError, match=re.escape(f"GPUALGO_NUM_THREADS must be a positive integer, got {text!r}")
    ):
        threads.num_threads()


def test_a_bad_bound_is_told_whatever_the_size() -> None:
    code = """if True:
        import numpy as np, gpualgo as ga
        for n in (0, 3, 100_000):
            for f in (ga.inclusive_scan, ga.radix_sort, ga.argsort, ga.copy, ga.minmax, ga.reduce):
                for _ in range(2):
                    try:
                        f(np.zeros(n))
                    except ValueError as error:
                        print(error)
        """
    done = run_python(code, GPUALGO_NUM_THREADS="zero", GPUALGO_DEVICE="cpu")
    assert done.stdout.count("GPUALGO_NUM_THREADS must be a positive integer, got 'zero'") == 36


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("eager")
def test_a_forked_child_has_its_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 2)
    x = np.ones(1 << 20, np.float32)

    def total() -> float:
        with ga.default_device("cpu"):
            return float(ga.reduce(x, 0.0, lambda a, b: a + b))

    assert total() == x.size
    child = os.fork()
    if child == 0:
        for _ in range(100):  # after calls in which threads did not pay, one thread runs up to 63
            if total() != x.size:
                os._exit(2)
            if threads._pool is not None or team._team is not None:
                os._exit(0)
        os._exit(1)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert ended[1] == 0


def test_one_build_per_key(monkeypatch: pytest.MonkeyPatch) -> None:
    builds: list[int] = []
    monkeypatch.setattr(kernels, "_load", lambda _key, write, _applied: write())
    monkeypatch.setattr(kernels, "_kernels", Memo(8))

    def build() -> Any:
        builds.append(1)
        time.sleep(0.05)
        return lambda *args: None

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: kernels.get_kernel(("a key",), build), range(8)))
    assert len(found) == len(builds) == 1


def test_kernels_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_load", lambda _key, write, _applied: write())
    monkeypatch.setattr(kernels, "_kernels", Memo(3))
    for key in range(10):
        kernels.get_kernel((key,), lambda: lambda *args: None)
    assert list(kernels._kernels) == [(7,), (8,), (9,)]


def test_dimensions_merge() -> None:
    assert layout.merge([(2, 60, 12), (1, 7, 7), (3, 20, 4), (5, 4, 0)]) == [(6, 20, 4), (5, 4, 0)]
    assert layout.merge([(1, 4)]) == []
    assert layout.is_dense([(6, 20, 4), (5, 4, 0)], 0, 4)
    assert not layout.is_dense([(6, 20, 4), (5, 4, 0)], 1, 4)
    assert dense_strides([2, 3, 5], 4) == (60, 20, 4)
    assert dense_strides([], 4) == ()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 code")
@pytest.mark.parametrize("call", ["tile", "column", "map", "map in place"])
def test_operators_become_vector_code(
    call: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gpualgo._cpu import compiler

    def listed(*bitcodes: Any) -> Any:
        module, machine = joined(*bitcodes)
        found.append(machine.emit_assembly(module))
        return module, machine

    found: list[str] = []
    joined = compiler.link_modules
    monkeypatch.setattr(compiler, "link_modules", listed)
    monkeypatch.setattr(kernels, "_kernels", Memo(8))
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))  # nothing is found there
    x = np.ones((100, 100), np.float32)
    with ga.default_device("cpu"):
        if call.startswith("map"):
            ga.transform(lambda a: a + a, x, out=x if call == "map in place" else None)
        else:
            ga.reduce(x, None, lambda a, b: a + b, axis=0 if call == "column" else None)
    assert any(re.search(r"\bv?addps\b", code) for code in found)


@pytest.mark.usefixtures("eager")
def test_the_pool_keeps_no_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a call that the pool has not got to, as others keep it busy, holds nothing."""
    _use(monkeypatch, 2)
    busy = threading.Event()
    waiting = [
        threads._get_pool().submit(lambda: busy.wait(30)) for _ in range(2)
    ]  # more than it has
    x = np.arange(1 << 20, dtype=np.float32)
    with ga.default_device("cpu"):
        assert ga.histogram((x, x), 1).tolist() == [[x.size]]
    held = weakref.ref(x)
    del x
    assert held() is None
    assert not any(each.has_ended for each in waiting)
    busy.set()
    while not all(each.has_ended for each in waiting):
        time.sleep(0.001)
    assert not any(each.error for each in waiting)
