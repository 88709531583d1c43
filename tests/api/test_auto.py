"""The default device "auto": which device takes host arrays, by a table and by nothing else.

On fake GPUs, whose page-locked arrays are said to be so; and on a real one.
"""

from __future__ import annotations

import math
import operator
import os
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import fake_driver
import numpy as np
import pytest
from contract.case import Case
from contract.cases import CASES
from fake_driver import FakeArray, FakeDriver
from support import REPOSITORY, Backend, count_gpus, run_python

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS
from gpualgo._api import explain
from gpualgo._api.explain import describe
from gpualgo._pipeline import auto

N = 1 << 16  # keys from which on sorts go to the GPU


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """Two fake GPUs with 128 GiB each, and "auto" as the default device."""
    made = fake_driver.install(monkeypatch)
    fake_driver.stub_kernels(monkeypatch)
    fake_driver.register_arrays(monkeypatch)
    with ga.default_device("auto"):
        yield made


def locked(fake: FakeDriver, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that counts as page-locked."""
    copy = x.copy()
    fake.page_locked[copy.ctypes.data] = copy.nbytes
    return copy


def where(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    return ga.explain(function, *args, **kwargs).device


def long(n: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Return an array of any length that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype), (n,))


# --- the name -----------------------------------------------------------------------------------


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
@pytest.mark.parametrize("name", ["", "auto"])
def test_without_a_gpu_it_is_the_cpu_and_costs_nothing(name: str) -> None:
    code = """if True:
        import sys, numpy as np, gpualgo as ga
        for _ in range(2):
            assert ga.reduce(np.ones(10)) == 10
            with ga.default_device("cpu"), ga.default_device("auto"):
                assert ga.reduce(np.ones(10)) == 10
        assert "gpualgo._pipeline.auto" not in sys.modules
        print(ga.explain(ga.radix_sort, np.ones(200_000)))
    """
    done = run_python(code, GPUALGO_DEVICE=name)
    assert "radix_sort on cpu: the default device is 'auto', and there is no GPU" in done.stdout


def test_only_the_default_device_may_be_auto() -> None:
    with pytest.raises(ValueError, match=r"'auto', 'cpu', 'cuda' or"), ga.default_device("nowhere"):
        pass
    for make in (lambda: ga.lazy.arange(5, device="auto"), lambda: ga.graph("auto").__enter__()):
        with pytest.raises(ValueError, match=r"unknown device 'auto'; use 'cpu', 'cuda' or"):
            make()


def test_a_named_device_decides_alone(fake: FakeDriver) -> None:
    small, large = np.zeros(10, np.float32), long(1 << 20)
    for name in ("cpu", "cuda:0", "cuda:1"):
        with ga.default_device(name):
            assert {where(ga.reduce, small), where(ga.radix_sort, large)} == {name}
            assert where(ga.reduce, locked(fake, small)) == name
            with ga.default_device("auto"):
                assert (where(ga.reduce, small), where(ga.radix_sort, large)) == ("cpu", "cuda:0")


# --- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint64", "float64"])
def test_long_sorts_run_on_the_gpu(fake: FakeDriver, dtype: str) -> None:
    for n, device in ((0, "cpu"), (1, "cpu"), (N - 1, "cpu"), (N, "cuda:0"), (N << 6, "cuda:0")):
        assert where(ga.radix_sort, long(n, dtype)) == device
    few = 1 << 13
    for n, device in ((1, "cpu"), (few - 1, "cpu"), (few, "cuda:0"), (N << 6, "cuda:0")):
        keys, values = long(n, dtype), long(n, "U5")
        assert where(ga.radix_sort, keys, values) == where(ga.argsort, keys) == device
        assert where(ga.radix_sort, (keys, keys), (keys, values)) == device
        assert where(ga.argsort, (keys, long(n, "int8"))) == device


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16"])
def test_narrow_keys_are_sorted_on_the_cpu(fake: FakeDriver, dtype: str) -> None:
    keys = long(1 << 26, dtype)
    assert where(ga.radix_sort, keys) == where(ga.argsort, keys) == "cpu"
    assert where(ga.radix_sort, keys, long(1 << 26, "float64")) == "cpu"
    assert where(ga.radix_sort, (keys,)) == "cpu"


def test_all_rows_of_an_array_count_together(fake: FakeDriver) -> None:
    x = np.broadcast_to(np.float32(0), (N // 4, 4))
    assert where(ga.radix_sort, x, axis=1) == where(ga.radix_sort, x, axis=0) == "cuda:0"
    assert where(ga.radix_sort, x[:-1], axis=1) == "cpu"


@pytest.mark.parametrize(("gib", "most"), [(128, 8), (512, 16), (16, 1)])
def test_what_the_gpu_may_not_hold_is_sorted_on_the_cpu(
    fake: FakeDriver, gib: int, most: int
) -> None:
    fake_driver.gpu(0).__dict__["memory_bytes"] = gib << 30
    n = (most << 30) // 4 + gib  # keys of which a few are too many; a layout of its own
    assert where(ga.radix_sort, long(n)) == "cpu"
    assert where(ga.radix_sort, long(n - gib)) == "cuda:0"
    assert where(ga.radix_sort, long(n - gib), long(n - gib, "i1")) == "cpu"
    fake.page_locked[0x1000] = 1 << 50
    keys = np.lib.stride_tricks.as_strided(np.asarray(_At(0x1000)), (n,), (4,))
    assert auto.memory_kind(describe("a test", ga.radix_sort, (keys,), {}).views) == (
        auto.PAGE_LOCKED
    )
    assert where(ga.radix_sort, keys) == "cpu"


class _At:
    """A float somewhere, which is not read."""

    def __init__(self, address: int) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": (1,), "typestr": "<f4", "data": (address, False),
        }  # fmt: skip


def test_every_algorithm_is_in_its_row() -> None:
    named = {name.partition(" ")[0] for row in auto.TABLE for name in row.algorithms}
    assert {function.__name__ for function in ALGORITHMS} <= named


def test_the_page_has_the_table() -> None:
    page = (REPOSITORY / "docs/devices.md").read_text(encoding="utf-8")
    for row in auto.TABLE:
        assert f"| {', '.join(row.algorithms)} | {row.rule} |" in page


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_algorithms(fake: FakeDriver, case: Case) -> None:
    """Pageable arrays: where their row says; page-locked ones that are read: the GPU."""
    call = case.on(Backend("cpu", np))
    options = call.arguments(case.samples())[1]
    if any(callable(options.get(name)) for name in ("less", "predicate", "eq")):
        return  # whose results no fake compiler tells
    with np.errstate(all="ignore"):
        args, options = call.arguments(case.samples())
        request = describe("a test", case.function, args, options)
    name, counted = type(request.problem).row_of(request.views, request.problem.params)
    row = auto._rows[name]
    assert any(case.name in each for each in row.algorithms)
    is_few = row.least_keys is None or math.prod(counted[0].shape) < row.least_keys
    device = "cpu" if is_few else "cuda:0"
    assert ga.explain(case.function, *args, **options).device == device
    arrays = [locked(fake, x) for x in case.samples()]
    if case.is_lazy or not all(x.size for x in arrays):
        return
    if case.is_tuple and case.function is ga.transform:
        return  # whose results no fake compiler tells
    args, options = call.arguments(arrays)
    found = ga.explain(case.function, *args, **options)
    assert (found.device, found.launches) == ("cuda:0", None)
    assert "page-locked" in found.why


def test_no_clock_and_no_count_is_asked(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any) -> Any:
        raise AssertionError("the choice depends on more than the call")

    arrays = [long(N), np.zeros(1000), locked(fake, np.zeros(1001))]
    with monkeypatch.context() as patch:
        for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic",
                     "monotonic_ns", "process_time", "thread_time"):  # fmt: skip
            patch.setattr(time, name, asked)
        for name in ("cpu_count", "process_cpu_count", "sched_getaffinity", "getloadavg"):
            patch.setattr(os, name, asked, raising=False)
        patch.setattr(fake, "cuMemGetInfo", asked, raising=False)
        # What is told beside the choice: how many threads would share the work.
        patch.setattr(explain, "on_cpu", lambda _: ())
        found = [where(f, x) for x in arrays for f in (ga.reduce, ga.argsort, ga.inclusive_scan)]
    assert found == ["cpu", "cuda:0", "cpu"] + ["cpu"] * 3 + ["cuda:0"] * 3


def test_new_processes_choose_and_add_alike() -> None:
    """In each process: choices with a fake GPU, then bits of a sum of floats."""
    code = """if True:
        import sys
        sys.path.insert(0, "tests")
        import numpy as np, pytest
        import fake_driver, gpualgo as ga
        x = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)
        patch = pytest.MonkeyPatch()
        fake_driver.install(patch)
        fake_driver.stub_kernels(patch)
        with ga.default_device("auto"):
            for n in (10, 1 << 17, 1 << 18):
                for f in (ga.radix_sort, ga.argsort, ga.reduce, ga.inclusive_scan, ga.argmin):
                    print(ga.explain(f, x[:n]))
            for f in (ga.reduce, ga.inclusive_scan):  # on the CPU, with a GPU beside it
                print(np.asarray(f(x, None, lambda a, b: a + b)).tobytes()[-64:].hex())
    """
    done = [
        run_python(code, PYTHONHASHSEED=str(seed), OMP_NUM_THREADS=str(seed + 1)) for seed in (0, 1)
    ]
    assert done[0].returncode == 0, done[0].stderr
    assert done[0].stdout == done[1].stdout
    assert done[0].stdout.count("on cuda:0") == 4


# --- page-locked arrays -------------------------------------------------------------------------


def test_arrays_of_one_layout_do_not_share_a_choice(fake: FakeDriver) -> None:
    x = np.arange(100.0)
    y, z = locked(fake, x), np.arange(100.0)
    for _ in range(3):
        assert [where(ga.reduce, a) for a in (x, y, z)] == ["cpu", "cuda:0", "cpu"]
        assert [where(ga.reduce, a[10:60]) for a in (x, y, z)] == ["cpu", "cuda:0", "cpu"]
        assert where(ga.transform, np.add, y, y[::-1]) == "cuda:0"
        assert where(ga.transform, np.add, y, x) == where(ga.transform, np.add, x, y) == "cpu"
    assert ga.reduce(x) == 4950
    assert not fake.named("cuLaunchKernel", "cuLaunchKernelEx")


def test_what_is_known_of_an_array_goes_with_it(fake: FakeDriver) -> None:
    x = locked(fake, np.arange(100.0))
    key = id(x)
    assert where(ga.reduce, x) == "cuda:0"
    assert key in auto._is_locked_by_id
    del x
    assert key not in auto._is_locked_by_id


def test_an_array_stays_what_it_was_at_first(fake: FakeDriver) -> None:
    x = np.arange(100.0)
    assert where(ga.reduce, x) == "cpu"
    fake.page_locked[x.ctypes.data] = x.nbytes  # registered, later
    assert where(ga.reduce, x) == "cpu"
    y = np.frombuffer(x.data, np.float64)  # another array over it
    assert where(ga.reduce, y) == "cuda:0"


def test_no_context_is_made_to_ask(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "cuDevicePrimaryCtxGetState", lambda n: (0, 0, 0), raising=False)
    monkeypatch.setattr(fake, "cuDevicePrimaryCtxRetain", None, raising=False)
    assert ga.reduce(np.arange(10)) == 45


def test_outputs_do_not_decide(fake: FakeDriver) -> None:
    x = np.arange(100.0)
    y = locked(fake, x)
    for out in (np.empty(100), locked(fake, x)):
        assert where(ga.inclusive_scan, x, out=out) == "cpu"
        assert where(ga.inclusive_scan, y, out=out) == "cuda:0"
    out = locked(fake, x)
    assert ga.inclusive_scan(x, out=out) is out
    assert out[-1] == 4950


def test_numbers_and_empty_arrays_go_with_others(fake: FakeDriver) -> None:
    x, number = locked(fake, np.arange(100.0)), np.array(2.0)
    assert where(ga.transform, np.multiply, x, 2.0) == "cuda:0"
    assert where(ga.transform, np.multiply, x, number) == "cuda:0"
    of_others = np.arange(5.0)[1:2].reshape(())
    assert where(ga.transform, np.multiply, x, of_others) == "cuda:0"
    assert where(ga.transform, np.multiply, of_others, of_others) == "cpu"
    assert where(ga.reduce, (x, 2.0), None, lambda a, b: a) == "cuda:0"
    assert where(ga.transform, np.multiply, number, number) == where(ga.reduce, number) == "cpu"
    assert where(ga.reduce, locked(fake, number)) == "cuda:0"
    assert where(ga.reduce, np.empty(0)) == where(ga.radix_sort, np.empty((0, 5))) == "cpu"
    assert ga.reduce(np.empty(0)) == 0
    for init in (1.0, np.float32(1), np.array(1.0)):  # no input
        assert where(ga.reduce, x, init) == "cuda:0"
        assert where(ga.reduce, x.copy(), init) == "cpu"


# --- other arguments ----------------------------------------------------------------------------


def test_lazy_arrays(fake: FakeDriver) -> None:
    x = np.arange(1000.0)
    y = locked(fake, x)
    assert where(ga.reduce, ga.lazy.asarray(x) * 2) == "cpu"
    assert where(ga.reduce, ga.lazy.asarray(y) * 2) == "cuda:0"
    assert where(ga.reduce, ga.lazy.asarray(y) * 2 + ga.lazy.arange(1000)) == "cuda:0"
    assert where(ga.reduce, ga.lazy.asarray(y) + x) == "cpu"
    for made in (ga.lazy.arange, lambda n, **k: ga.lazy.random(n, seed=1, **k)):
        assert where(ga.reduce, made(10**9)) == where(ga.radix_sort, made(N - 1)) == "cpu"
        assert where(ga.radix_sort, made(N)) == where(ga.argsort, made(N)) == "cuda:0"
        assert where(ga.reduce, made(10, device="cuda:1")) == "cuda:1"
        cpu = ga.explain(ga.reduce, made(10, device="cpu"))
        assert (cpu.device, cpu.why) == ("cpu", "an input was made with device='cpu'")
    assert where(ga.radix_sort, ga.lazy.arange(N), long(N, "int8")) == "cuda:0"


def test_structured_arrays(fake: FakeDriver) -> None:
    def records(n: int) -> np.ndarray[Any, Any]:
        return np.zeros(n, [("a", "i2"), ("b", "f4")])

    assert where(ga.argsort, records(1 << 13)) == "cuda:0"
    assert where(ga.argsort, records((1 << 13) - 1)) == "cpu"
    assert where(ga.transform, lambda r: r.a, records(N)) == "cpu"
    assert where(ga.argsort, locked(fake, records(9))) == "cuda:0"


def test_tuples(fake: FakeDriver) -> None:
    point = namedtuple("point", "x y")
    x = np.arange(10.0)
    y = locked(fake, x)
    op = lambda a, b: point(a.x + b.x, a.y)  # noqa: E731
    assert where(ga.reduce, point(x, y), None, op) == "cpu"
    assert where(ga.reduce, point(y, y), None, op) == "cuda:0"
    assert where(ga.histogram, (y, y), 3, ((0, 9), (0, 9))) == "cuda:0"
    assert where(ga.histogram, (y, x), 3, ((0, 9), (0, 9))) == "cpu"


def test_device_arrays_are_where_they_are(fake: FakeDriver) -> None:
    x = FakeArray((1000,), np.float32, 1)
    found = ga.explain(ga.radix_sort, x)
    assert (found.device, found.why) == ("cuda:1", "the arrays are on this device")
    assert found.temp_storage_bytes == ga.temp_storage_bytes(ga.radix_sort, x)
    assert found.launches
    assert not fake.named("cuLaunchKernel", "cuLaunchKernelEx")
    with pytest.raises(TypeError, match=r"copied to a GPU"):
        ga.temp_storage_bytes(ga.radix_sort, long(N))


def test_a_stream_is_a_gpus(fake: FakeDriver) -> None:
    x = np.arange(10.0)
    found = ga.explain(ga.reduce, x, stream=5)
    assert (found.device, found.why) == ("cuda:0", "stream= is given, which only GPUs have")
    with ga.default_device("cpu"), pytest.raises(ValueError, match="stream"):
        ga.reduce(x, stream=5)


def test_plans_stay_where_they_were_prepared(fake: FakeDriver) -> None:
    factor = 2
    x = np.arange(10)
    y = locked(fake, x)
    here = ga.prepare(ga.transform, lambda a: a * factor, x)
    there = ga.prepare(ga.transform, lambda a: a * factor, y)
    lazy = ga.prepare(ga.reduce, ga.lazy.asarray(x) * 2)
    counted = ga.prepare(ga.histogram, x, 2)
    factor = 3
    with ga.default_device("cuda:1"):
        assert here(x)[-1] == here(y)[-1] == 27
        assert lazy(ga.lazy.asarray(x) * 2) == lazy(ga.lazy.asarray(y) * 2) == 90
        assert counted(y).tolist() == [5, 5]
    assert here(y)[-1] == 27
    assert (here.temp_storage_bytes, there.temp_storage_bytes) == (0, 0)
    assert not fake.named("cuLaunchKernel", "cuLaunchKernelEx")
    there(y, out=locked(fake, x))
    assert len(fake.named("cuLaunchKernel", "cuLaunchKernelEx")) == 1
    assert ga.explain(ga.transform, lambda a: a * factor, x).device == "cpu"


def test_a_forked_child_has_the_cpu(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(float(N))
    assert where(ga.radix_sort, x) == "cuda:0"
    monkeypatch.setattr(auto, "_is_lost", True)
    found = ga.explain(ga.radix_sort, x)
    assert (found.device, found.why) == (
        "cpu", "the GPU of the parent cannot be used in a forked process",
    )  # fmt: skip
    assert ga.radix_sort(x[::-1])[0] == 0


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.fixture
def placed(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A GPU, "auto", and a table of which short sorts go there."""
    rows = {name: row._replace(least_keys=row.least_keys and 1000)
            for name, row in auto._rows.items()}  # fmt: skip
    monkeypatch.setattr(auto, "_rows", rows)
    with ga.default_device("auto"):
        yield cuda


def pinned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = ga.empty_pinned(x.shape, x.dtype)
    made[...] = x
    return made


def bits(device: str, f: Callable[..., Any], *args: Any, **kwargs: Any) -> bytes:
    with ga.default_device(device):
        return np.asarray(f(*args, **kwargs)).tobytes()


def test_results_are_those_of_the_device(placed: Backend) -> None:
    x = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    y = pinned(x)
    for f in (ga.reduce, ga.inclusive_scan):
        for _ in range(2):
            assert bits("auto", f, x) == bits("cpu", f, x)
            assert bits("auto", f, y) == bits("cuda", f, y)
    assert (where(ga.radix_sort, x), where(ga.radix_sort, x[:999])) == ("cuda:0", "cpu")
    for a in (x, y, x[:999], y[:999]):
        np.testing.assert_array_equal(ga.radix_sort(a), np.sort(a))
        np.testing.assert_array_equal(ga.argsort(a), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(ga.radix_sort(ga.lazy.arange(1200)[::-1]), np.arange(1200))


def test_outputs_of_the_other_kind(placed: Backend) -> None:
    x = np.arange(1000.0)
    y = pinned(x)
    for a in (x, y):
        for out in (np.empty(1000), ga.empty_pinned(1000)):
            assert ga.inclusive_scan(a, out=out) is out
            assert out[-1] == 499500
            ga.radix_sort(a[::-1], out=out)
            np.testing.assert_array_equal(out, x)
    assert ga.reduce(y, 1.0) == ga.reduce(x, 1.0) == 499501
    for plan in (ga.prepare(ga.reduce, x), ga.prepare(ga.reduce, y)):
        assert plan(x) == plan(y) == 499500


def test_captured_arrays_decide(placed: Backend) -> None:
    """An array on the GPU takes the call there; one of the host goes with the call."""
    x = np.array([2, 0, 1])
    table = placed.to_device(np.array([10, 20, 30]))
    lookup = lambda i: table[i]  # noqa: E731
    found = ga.explain(ga.transform, lookup, x)
    assert (found.device, found.why) == ("cuda:0", "op captures an array on this device")
    assert ga.transform(lookup, x).tolist() == [30, 10, 20]
    table = np.array([1, 2, 3])
    assert where(ga.transform, lookup, x) == "cpu"
    assert ga.transform(lookup, x).tolist() == [3, 1, 2]
    assert ga.transform(lookup, pinned(x)).tolist() == [3, 1, 2]


def test_arrays_on_the_gpu_beside_host_arrays_are_refused(placed: Backend) -> None:
    x, there = np.arange(10.0), placed.to_device(np.arange(10.0))
    for call in (
        lambda: ga.inclusive_scan(x, out=there),
        lambda: ga.reduce(x, placed.to_device(np.array(1.0))),
        lambda: ga.transform(operator.add, x, there),
    ):
        messages = []
        for device in ("auto", "cuda"):
            with ga.default_device(device), pytest.raises((TypeError, ValueError)) as caught:
                call()
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_streams_of_the_gpu(placed: Backend) -> None:
    stream = placed.xp.cuda.Stream(non_blocking=True)
    x = np.arange(1000.0)
    assert ga.reduce(x, stream=stream) == 499500
    assert ga.histogram(x, 2, stream=stream).tolist() == [500, 500]
    y, out = pinned(x), ga.empty_pinned(1000)
    ga.inclusive_scan(y, out=out, stream=stream)
    stream.synchronize()
    assert out[-1] == 499500
    plan = ga.prepare(ga.reduce, x)
    assert plan(x) == plan(x, stream=stream) == 499500


def test_graphs_are_on_the_gpu(placed: Backend) -> None:
    x = pinned(np.arange(1000.0))
    out = ga.empty_pinned(())
    with ga.graph() as g:
        ga.reduce(x, out=out)
        inside = ga.explain(ga.reduce, np.arange(10.0))
    assert (inside.device, inside.why) == ("cuda:0", "recorded in a graph on a GPU")
    x[0] = 5
    g.launch()
    assert out == 499505
    with pytest.raises(RuntimeError, match=r"pageable"), ga.graph():
        ga.reduce(np.arange(10.0), out=out)
    assert where(ga.reduce, np.arange(10.0)) == "cpu"
