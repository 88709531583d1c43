"""Small pageable arrays on a GPU: later calls use what the first decided, wherever they lie."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, forget_problems

import gpualgo as ga
from gpualgo._pipeline import host_small


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call on arrays of the host was one of small ones."""
    found: list[bool] = []
    run = host_small.run

    def spied(*args: Any) -> bool:
        found.append(run(*args))
        return found[-1]

    monkeypatch.setattr(host_small, "run", spied)
    return found


def calls(x: np.ndarray[Any, Any], k: float) -> list[tuple[Any, Any]]:
    scaled = np.float64(k)
    return [
        (ga.reduce(x), x.sum()),
        (ga.reduce(x, 5), x.sum() + 5),
        (ga.inclusive_scan(x), np.cumsum(x)),
        (ga.transform(lambda a: a * scaled, x), x * k),
        (ga.transform(lambda a, b: a + b, x, 2.0), x + 2),
        (ga.radix_sort(x), np.sort(x)),
        (ga.argsort(x), np.argsort(x, kind="stable")),
        (ga.histogram(x, 7, (0, 50)), np.histogram(x, 7, (0, 50))[0]),
        (ga.reduce((x, x), None, lambda a, b: (a[0] + b[0], max(a[1], b[1])))[1], x.max()),
    ]


def test_again_and_elsewhere(cuda: Backend, small: list[bool]) -> None:
    random = np.random.default_rng(0)
    with ga.default_device("cuda"):
        for n, k in ((1, 2.0), (1000, 2.0), (1000, 3.0), (1001, 3.0), (1000, 2.0)):
            memory = random.integers(0, 50, n + 3).astype("f8")
            for x in (memory[:n], memory[3:]):
                for got, want in calls(x, k):
                    assert_same(np.asarray(got), np.asarray(want))
    assert all(small)


def test_what_is_not_small(
    cuda: Backend, small: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, table = np.arange(3000.0), np.arange(5.0)
    pinned = ga.empty_pinned(3000, np.float64)
    pinned[:] = x
    with ga.default_device("cuda"):
        assert ga.reduce(x[::2]) == x[::2].sum()
        assert ga.reduce(pinned) == x.sum()
        assert ga.reduce(ga.lazy.arange(3000)) == 3000 * 2999 // 2
        assert_same(ga.transform(lambda a: table[int(a) % 5], x), table[np.arange(3000) % 5])
        assert not any(small)
        monkeypatch.setattr(host_small, "MOST_BYTES", 24_000)
        forget_problems()
        assert_same(ga.inclusive_scan(x), np.cumsum(x))
        assert not any(small)
        out = np.zeros(3000)
        ga.inclusive_scan(x, out=out)
        assert_same(out, np.cumsum(x))
        assert ga.reduce(x[:2000]) == x[:2000].sum()
    assert small[-1]


@pytest.fixture(params=["in place", "by a tray", "by copies"])
def way(request: pytest.FixtureRequest, cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take one way for arrays of all sizes."""
    from gpualgo._driver import device, pinned

    device.get(0)  # its buffers have the usual size
    if request.param != "in place":
        monkeypatch.setattr(host_small, "IN_PLACE_BYTES", 0)
    if request.param == "by copies":
        monkeypatch.setattr(pinned, "TRAY_BYTES", 0)
    return str(request.param)


def test_every_way(cuda: Backend, way: str) -> None:
    random = np.random.default_rng(1)
    with ga.default_device("cuda"):
        for n in (1, 3, 1000, 1000):
            x = random.integers(0, 50, n).astype("f8")
            for _ in range(2):
                for got, want in calls(x, 3.0):
                    assert_same(np.asarray(got), np.asarray(want))


def test_into_outputs(cuda: Backend, way: str) -> None:
    """Those that are the inputs as well, or lie as no new result would."""
    x = np.arange(1000.0)
    with ga.default_device("cuda"):
        for _ in range(2):
            same, apart, wide = x.copy(), np.zeros(1000), np.zeros((1000, 2))
            pinned = ga.empty_pinned(1000, np.float64)
            for out in (same, apart, wide[:, 1], pinned):
                given = same if out is same else x
                assert ga.inclusive_scan(given, out=out) is out
                assert_same(np.array(out), np.cumsum(x))
            assert not wide[:, 0].any()
            whole = np.arange(1500.0)
            with pytest.raises(ValueError, match="overlap"):
                ga.inclusive_scan(whole[:1000], out=whole[500:])
            apart.flags.writeable = False
            with pytest.raises(ValueError, match="read-only"):
                ga.inclusive_scan(x, out=apart)


LENGTHS = (None, 30, 2000, 1000, 3, None, 25, 26)


@pytest.mark.parametrize("step", [1, 2])
def test_outputs_of_any_length(cuda: Backend, way: str, step: int) -> None:
    """Nothing is written past the end of outputs, nor behind what they hold then."""
    keys, x = (
        np.repeat(np.arange(25), 40 * step)[::step],
        np.repeat(np.arange(1000.0), step)[::step],
    )
    wanted = np.arange(25), x.reshape(25, 40).sum(1)
    with ga.default_device("cuda"):
        for n in LENGTHS:
            if n is None:
                for got, want in zip(ga.reduce_by_key(keys, x), wanted, strict=True):
                    assert_same(got, want)
                continue
            memory = [np.full(n + 2000, 77, want.dtype) for want in wanted]
            out, count = tuple(each[1000 : 1000 + n] for each in memory), np.zeros((), np.int64)
            ga.reduce_by_key(keys, x, out=out, out_count=count)
            assert count == 25
            for each, want in zip(memory, wanted, strict=True):
                held = np.full(n + 2000, 77, want.dtype)
                held[1000 : 1000 + min(n, 25)] = want[:n]
                assert_same(each, held)


def test_memory_is_given_back(cuda: Backend, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle leaves nothing behind, and the next call works."""
    from gpualgo._cuda.plan import Plan
    from gpualgo._driver import device

    x = np.arange(1000.0)
    lent = []
    gpu = device.get(0)
    lender, name = (gpu, "free") if way == "by copies" else (gpu.trays, "take")
    given = getattr(lender, name)

    def noted(*args: Any) -> Any:
        found = given(*args)
        lent.append(args[0] if args else found)
        return found

    monkeypatch.setattr(lender, name, noted)
    with ga.default_device("cuda"):
        assert ga.reduce(x) == x.sum()
        count = len(lent)

        def fails(*args: Any) -> None:
            raise RuntimeError("planted")

        with monkeypatch.context() as patch:
            patch.setattr(Plan, "queue", fails)
            with pytest.raises(RuntimeError, match="planted"):
                ga.reduce(x)
        assert ga.reduce(x) == x.sum()
    assert len(lent) == count + 2
    assert way == "by copies" or len(set(lent)) == 1


def test_trays_run_out(cuda: Backend, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls beyond the trays that there may be take memory of the pool."""
    from gpualgo._driver import device

    x = np.arange(1000.0)
    with ga.default_device("cuda"):
        assert ga.reduce(x) == x.sum()
        monkeypatch.setattr(device.get(0).trays, "take", lambda: None)
        for _ in range(2):
            for got, want in calls(x, 2.0):
                assert_same(np.asarray(got), np.asarray(want))


def test_threads_have_trays_of_their_own(cuda: Backend) -> None:
    inputs = [np.arange(300.0) + i for i in range(12)]

    def work(x: Any) -> list[Any]:
        with ga.default_device("cuda"):
            return [ga.transform(lambda a: a + 1, x) for _ in range(3)]

    with ThreadPoolExecutor(len(inputs)) as pool:
        for x, found in zip(inputs, pool.map(work, inputs), strict=True):
            assert_same(found[-1], x + 1)


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["whole", "small"])
@pytest.mark.parametrize("step", [1, 2])
def test_arrays_are_let_go(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, most: int, step: int
) -> None:
    """Without the garbage collector: fresh memory for each result would cost what it takes."""
    monkeypatch.setattr(host_small, "MOST_BYTES", most)
    x, out = np.arange(3000.0), np.zeros(1500)

    def scaled(a: Any) -> Any:
        return a * 2

    gc.disable()
    try:
        with ga.default_device("cuda"):
            results = [ga.transform(scaled, x[::step]), ga.inclusive_scan(x[::step])]
            ga.transform(scaled, x[::2], out=out)
        alive = [weakref.ref(each) for each in (*results, x, out)]
        del results, x, out
        assert [each() for each in alive] == [None] * 4
    finally:
        gc.enable()
