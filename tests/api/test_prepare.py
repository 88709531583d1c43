"""prepare: plans give what the functions give, take new arrays alike, and refuse others."""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver
from support import Backend, scaled

import gpualgo as ga
from gpualgo._base import recording
from gpualgo._driver import streams

N = scaled(300_001, emulated=30_001)


def sample(n: int = N, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-1000, 1000, n).astype(np.int32)


def test_the_same_arrays_again(cuda: Backend) -> None:
    """The shortest way: for two arrays just used, while they live and stay as they are."""
    x, out = cuda.to_device(sample(1000)), cuda.xp.zeros(1000, np.int32)
    plan = ga.prepare(ga.inclusive_scan, x)
    for k in (1, 2, 3):
        x[...] = k
        assert plan(x, out=out) is out
        assert int(out[-1]) == 1000 * k
    out.shape = (10, 100)
    with pytest.raises(ValueError, match=r"^inclusive_scan: out has shape"):
        plan(x, out=out)
    out.shape = (1000,)
    plan(x, out=out)
    del out
    assert int(plan(x)[-1]) == 3000
    x.shape = (10, 100)
    with pytest.raises(ValueError, match=r"^inclusive_scan: the plan is for shape"):
        plan(x)
    del x
    with pytest.raises(TypeError, match=r"must be an array"):
        plan(None)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    return made


def test_a_repeated_call_refuses_what_the_first_refuses() -> None:
    """Calls on NumPy arrays are remembered by layout, each plan's apart from the function's."""
    x, scale = sample(100), 3
    others = (x[:50], x[::-1], x[::2], x.reshape(10, 10), x.astype(np.int64), (x, x))

    def times(a: Any) -> Any:
        return a * scale

    plan = ga.prepare(ga.transform, times, x)
    for other in others[:-1]:
        for _ in range(3):  # the function knows these layouts
            np.testing.assert_array_equal(ga.transform(times, other), other * scale)
    out, strided = np.zeros_like(x), np.zeros(200, x.dtype)[::2]
    for scale in (3, 3, 3, 5, 3, 5):
        np.testing.assert_array_equal(plan(x), x * scale)
        np.testing.assert_array_equal(plan(x, out=out), x * scale)
        np.testing.assert_array_equal(plan(x, out=strided), x * scale)
        y = x.copy()
        np.testing.assert_array_equal(plan(y, out=y), x * scale)
        for other in others:
            with pytest.raises((TypeError, ValueError), match=r"^transform: "):
                plan(other)
        with pytest.raises(ValueError, match=r"^transform: out has shape"):
            plan(x, out=out[:50])
        with pytest.raises(TypeError, match=r"takes 1 array\(s\), got 0"):
            plan()
        with pytest.raises(TypeError, match=r"takes 1 array\(s\), got 2"):
            plan(x, x)
        with pytest.raises(TypeError, match="out_count is given"):
            plan(x, out_count=np.zeros((), np.int64))


def test_a_plan_says_which_of_its_arrays_is_wrong() -> None:
    x, y = sample(100), np.arange(100.0)
    plan = ga.prepare(ga.transform, lambda a, b: a + b, x, y)
    tuples = ga.prepare(ga.transform, lambda p, b: p[0] + b, (x, x), y)
    for wrong, told in (
        (lambda: plan(x, [1]), "argument 2 of the plan must be an array, got list; a plan takes"),
        (lambda: plan([1], y), "argument 1 of the plan must be an array, got list"),
        (lambda: plan(lambda a: a, y), "argument 1 of the plan must be an array, got function"),
        (lambda: tuples((x, x), [1]), "argument 2 of the plan must be an array, got list"),
        (lambda: tuples((x, [1]), y), r"argument 1 of the plan\[1\] must be an array, got list"),
        (lambda: plan(x, x), "the plan is for dtype float64, got int32 as array 2; prepare"),
        (lambda: plan(x[::-1], y), r"the plan is for shape .* as array 1; prepare another"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^transform: {told}"):
            wrong()


@pytest.mark.parametrize("kind", ["cell", "default"])
def test_a_plan_says_which_captured_value_has_no_kernel(kind: str) -> None:
    factor: Any = 2.0

    def scale(a: Any) -> Any:
        return a * factor

    def by_default(a: Any, other: Any = 2.0) -> Any:
        return a * other

    op, name = (scale, "factor") if kind == "cell" else (by_default, "other")
    x = np.arange(4.0)
    plan = ga.prepare(ga.transform, op, x)
    for wrong in ([2.0], {}, object(), (1, [2])):
        factor = wrong
        by_default.__defaults__ = (wrong,)
        told = rf"^transform: op captures a value of type \w+, .* \(variable {name}\); capture .*py"
        for call in (plan, lambda x: ga.transform(op, x)):
            with pytest.raises(TypeError, match=told):
                call(x)
    factor = 3.0
    by_default.__defaults__ = (3.0,)
    assert plan(x).tolist() == [0, 3, 6, 9]


def test_host_arrays_go_where_the_plan_was_prepared(fake: FakeDriver) -> None:
    factor = 2
    x = np.arange(5)
    with ga.default_device("cpu"):
        scaled = ga.prepare(ga.transform, lambda a: a * factor, x)
        counted = ga.prepare(ga.histogram, x, 2)  # whose range is each call's own
    factor = 3
    with ga.default_device("cuda:1"):  # where nothing can run
        assert scaled(x).tolist() == [0, 3, 6, 9, 12]
        assert counted(x + 100).tolist() == [2, 3]
    assert not fake.named("cuLaunchKernel", "cuLaunchKernelEx")


def test_an_init_in_an_array_may_change(fake: FakeDriver) -> None:
    x, total = FakeArray((8,), np.float32), FakeArray((), np.float32)
    init = np.array(1.0, np.float32)
    plan = ga.prepare(ga.reduce, x, init)

    def first_value() -> float:
        table = ctypes.c_void_p.from_address(fake.named("cuLaunchKernelEx")[-1][3])
        assert table.value is not None
        return ctypes.c_float.from_address(table.value).value

    for value in (1.0, 5.0):
        init[...] = value
        for out in (None, total, total, total):
            plan(x, out=out)
            assert first_value() == value


def test_a_value_that_changes_and_changes_back(fake: FakeDriver) -> None:
    """What is kept for the same arrays is of the value that the plan was prepared with."""
    factor = True
    x, out = FakeArray((8,), np.float32), FakeArray((8,), np.float32)
    plan = ga.prepare(ga.transform, lambda a: a * factor, x)

    def launched() -> set[int]:
        for _ in range(4):
            plan(x, out=out)
        return {id(call[2]) for call in fake.named("cuLaunchKernelEx")[-4:]}

    factor = False
    other = launched()
    factor = True
    assert launched().isdisjoint(other)
    factor = False
    assert launched() == other


class Lazy:
    """An array that is computed when it is first asked for."""

    @cached_property
    def __array_interface__(self) -> Any:
        self.made = ga.transform(lambda a: a + 1, np.arange(3))
        return self.made.__array_interface__


def test_arrays_that_are_made_by_calls() -> None:
    with ga.default_device("cpu"):
        for _ in range(2):  # the first of its class, and one more
            plan = ga.prepare(ga.inclusive_scan, Lazy())
            assert plan(Lazy()).tolist() == [1, 3, 6]
            assert ga.prepare(ga.reduce, Lazy())(np.arange(3)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(("module", "name"), [(recording, "_lock"), (streams, "_in_use_lock")])
def test_a_child_waits_for_no_lock_of_its_parent(module: Any, name: str) -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with getattr(module, name):
            held.set()
            go_on.wait(30)

    def prepare() -> None:
        with getattr(module, name):
            pass
        with ga.default_device("cpu"):
            ga.prepare(ga.reduce, np.ones(3))
        os._exit(0)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    child = os.fork()
    if child == 0:
        worker = threading.Thread(target=prepare, daemon=True)
        worker.start()
        worker.join(30)
        os._exit(1)
    go_on.set()
    thread.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_storage_that_is_refused(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    plan = ga.prepare(ga.radix_sort, x)
    size = plan.temp_storage_bytes
    memory = cuda.xp.zeros(2 * size + 1000, np.uint8)
    with pytest.raises(ValueError, match=r"contiguous"):
        plan(x, temp_storage=memory[: 2 * size : 2])
    with pytest.raises(ValueError, match=r"shares memory"):
        plan(x, out=memory[: x.nbytes].view(np.int32), temp_storage=memory)


def test_cut_storage(cuda: Backend) -> None:
    """One piece of memory serves several plans, as slices of it."""
    x = cuda.to_device(sample())
    plans = [ga.prepare(f, x) for f in (ga.reduce, ga.inclusive_scan, ga.radix_sort)]
    sizes = [-(-plan.temp_storage_bytes // 256) * 256 for plan in plans]
    whole = cuda.xp.zeros(sum(sizes), np.uint8)
    view = ga.from_pointer(whole.data.ptr, whole.shape, np.uint8, owner=whole)
    for i, plan in enumerate(plans):
        begin = sum(sizes[:i])
        got = plan(x, temp_storage=view[begin : begin + sizes[i]])
        want = plan(x)
        np.testing.assert_array_equal(cuda.to_host(got), cuda.to_host(want))


def test_streams(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    plan = ga.prepare(ga.inclusive_scan, x)
    storage = cuda.xp.zeros(plan.temp_storage_bytes, np.uint8)
    cuda.xp.cuda.Device().synchronize()
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    y = plan(x, stream=stream)
    z = plan(x, stream=stream, temp_storage=storage)
    stream.synchronize()
    want = np.cumsum(sample(), dtype=np.int32)
    np.testing.assert_array_equal(cuda.to_host(y), want)
    np.testing.assert_array_equal(cuda.to_host(z), want)


def test_threads(backend: Backend) -> None:
    plan = ga.prepare(ga.inclusive_scan, backend.to_device(sample()))

    def work(seed: int) -> None:
        host = sample(seed=seed)
        x = backend.to_device(host)
        for _ in range(scaled(20, emulated=5)):
            assert (backend.to_host(plan(x)) == np.cumsum(host, dtype=np.int32)).all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
