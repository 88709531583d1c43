"""The default device "auto": page-locked arrays, and arguments of every kind."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeArray, FakeDriver
from placing import N, fakes, locked, long, where

import gpualgo as ga
from gpualgo._pipeline import auto


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    with fakes(monkeypatch) as made:
        yield made


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
