"""The default device "auto": which device takes host arrays, by a table and by nothing else."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import Any

import fake_driver
import numpy as np
import pytest
from contract.case import Case
from contract.cases import CASES
from fake_driver import FakeDriver
from placing import N, fakes, locked, long, where
from support import REPOSITORY, Backend, count_gpus, run_python

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS
from gpualgo._api import explain
from gpualgo._api.explain import describe
from gpualgo._pipeline import auto


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    with fakes(monkeypatch) as made:
        yield made


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


@pytest.mark.parametrize("n", [1, 1 << 10, N, 1 << 24, 1 << 30])
def test_one_pass_runs_on_the_cpu(fake: FakeDriver, n: int) -> None:
    x = long(n)
    assert where(ga.reduce, x, 0.0, lambda a, b: a + b) == "cpu"
    assert where(ga.reduce, x, None, np.maximum) == "cpu"
    assert where(ga.inclusive_scan, x) == where(ga.exclusive_scan, x) == "cpu"
    assert where(ga.transform, np.sqrt, x) == where(ga.transform, lambda a: a, x) == "cpu"
    assert where(ga.argmin, x) == where(ga.minmax, x) == "cpu"


def test_histograms_of_many_samples_run_on_the_gpu(fake: FakeDriver) -> None:
    for n, device in ((1, "cpu"), (N - 1, "cpu"), (N, "cuda:0"), (1 << 24, "cuda:0")):
        x = long(n)
        assert where(ga.histogram, x, 9, (0, 1)) == device
        assert where(ga.histogram, long(n, "u1"), 9, (0, 1)) == device
        assert where(ga.histogram, (x, x), 9, ((0, 1), (0, 1))) == device
        assert where(ga.histogram, x, 9, (0, 1), weights=x) == device


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
