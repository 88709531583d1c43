"""Front memo: later calls on NumPy arrays are found at a glance, and give what first calls give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import gpualgo as ga

Array = np.ndarray[Any, Any]
X = np.array([3.0, -1.0, 4.0, -1.5, 5.0, -0.0, 2.0])
Y = np.arange(7.0)
K = 2.5


def _sum(a: Any, b: Any) -> Any:
    return a + b


# The functions with a front memo, and the module of each.
CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    "reduce": ("reduce", lambda x, **o: ga.reduce(x, **o)),
    "reduce by a function": ("reduce", lambda x, **o: ga.reduce(x, 1.0, _sum, **o)),
    "inclusive_scan": ("scan", lambda x, **o: ga.inclusive_scan(x, None, max, **o)),
    "exclusive_scan": ("scan", lambda x, **o: ga.exclusive_scan(x, 0.0, **o)),
    "transform": ("transform", lambda x, **o: ga.transform(lambda a: a * 2 + 1, x, **o)),
    "transform with a captured number": (
        "transform", lambda x, **o: ga.transform(lambda a: a * K, x, **o),
    ),
    "transform of two": ("transform", lambda x, **o: ga.transform(lambda a, b: a - b, x, Y, **o)),
    "adjacent_difference": ("adjacent_difference", lambda x, **o: ga.adjacent_difference(x, **o)),
    "radix_sort": ("radix_sort", lambda x, **o: ga.radix_sort(x, **o)),
    "argsort": ("radix_sort", lambda x, **o: ga.argsort(x, descending=True, **o)),
    "argmin": ("extremes", lambda x, **o: ga.argmin(x, **o)),
    "argmax": ("extremes", lambda x, **o: ga.argmax(x, **o)),
}  # fmt: skip
each_call = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


def _modules() -> list[Any]:
    names = {module for module, _ in CALLS.values()}
    return [import_module(f"gpualgo._algorithms.{name}") for name in names]


def _forget() -> None:
    for module in _modules():
        for thing in vars(module).values():
            if isinstance(thing, type) and hasattr(thing, "problems"):
                thing.problems.clear()


def _warm(name: str, x: Any = X, **options: Any) -> Any:
    _forget()
    call = CALLS[name][1]
    for _ in range(3):
        result = call(x, **options)
    return result


def _same(found: Any, want: Any) -> None:
    assert type(found) is type(want)
    assert found.dtype == want.dtype
    assert found.tobytes() == want.tobytes()


@pytest.fixture
def no_problems(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function from which on no call may look for its problem."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a problem is looked for")

    def start() -> None:
        for module in _modules():
            monkeypatch.setattr(module, "problem_of", refuse)

    return start


@each_call
def test_a_third_call_looks_for_no_problem(name: str, no_problems: Callable[[], None]) -> None:
    call = CALLS[name][1]
    _forget()
    want = call(X)
    other = X[::-1].copy()
    _forget()
    want_of_other = call(other)
    out = np.full(np.shape(want), 7, want.dtype)
    _warm(name, out=out)  # a problem of its own for `transform`
    for _ in range(3):
        call(X)
    no_problems()
    _same(call(X), want)
    _same(call(other), want_of_other)
    assert call(X, out=out) is out
    assert out.tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize("name", [name for name in CALLS if "transform" not in name])
def test_axes(name: str) -> None:
    call = CALLS[name][1]
    table = np.arange(12.0).reshape(3, 4) % 5
    _warm(name, table, axis=1)
    _warm(name, table, axis=0)
    for axis in (0, 1, -1, np.int64(1)):
        found = call(table, axis=axis)
        _forget()
        _same(found, call(table, axis=axis))
        _warm(name, table, axis=1)
    for axis in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="axis"):
            call(table, axis=axis)


def test_initial_values() -> None:
    zeros = np.array([-0.0, -0.0])
    _forget()
    for init, want in ((0.0, 0.0), (-0.0, -0.0), (0.0, 0.0), (float("nan"), np.nan)) * 3:
        found = ga.reduce(zeros, init)
        assert np.signbit(found) == np.signbit(want) or np.isnan(want)
        assert np.isnan(found) == np.isnan(want)
    counts = np.array([1, 1])
    for init in (1, True, None, np.float32(1), np.int64(1), 1) * 3:
        found = ga.reduce(counts, init, lambda a, b: a + b)
        _forget()
        _same(found, ga.reduce(counts, init, lambda a, b: a + b))
    many = np.ones(1 << 16)  # whose maximum NumPy finds if there is no initial value
    for init in (None, 100.0, None, 0.0):
        for _ in range(3):
            assert ga.reduce(many, init, max) == max(init or 1, 1)
    for init in ("1", 1.0, 1j):
        with pytest.raises(TypeError, match="init"):
            ga.reduce(counts, init, lambda a, b: a + b)


def test_a_number_in_place_of_an_operator() -> None:
    for _ in range(3):
        ga.reduce(X, 0.0, _sum)
    for op in (id(_sum.__code__), 3, "add", [1]):
        with pytest.raises(TypeError, match="op"):
            ga.reduce(X, 0.0, op)


def test_blocks_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _warm("reduce")
    with pytest.raises(ga.NoDeviceError), ga.default_device("cuda:77"):
        ga.reduce(X)
    assert ga.reduce(X) == X.sum()


def test_the_environment_is_read_by_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import default_device

    token = default_device.chosen.set(())
    try:
        monkeypatch.setenv("GPUALGO_DEVICE", "cpu")
        _warm("reduce")
        monkeypatch.setenv("GPUALGO_DEVICE", "no device")
        with pytest.raises(ValueError, match="no device"):
            ga.reduce(X)
        monkeypatch.setenv("GPUALGO_DEVICE", "cpu")
        assert ga.reduce(X) == X.sum()
        monkeypatch.setattr("os.environ", {"GPUALGO_DEVICE": "no device"})
        with pytest.raises(ValueError, match="no device"):
            ga.reduce(X)
    finally:
        default_device.chosen.reset(token)


def test_threads_that_begin_together() -> None:
    """Each thread's first calls meet problems that others are about to remember."""
    errors: list[BaseException] = []

    def work(number: int, start: threading.Barrier) -> None:
        x = X + number
        try:
            start.wait()
            for _ in range(50):
                for name, (_, call) in CALLS.items():
                    want = wants[number][name]
                    assert call(x).tobytes() == want
                    if len(want) == x.nbytes and "argsort" not in name:
                        assert call(x, out=np.zeros(7)).tobytes() == want
        except BaseException as error:
            errors.append(error)

    wants = [{name: call(X + n).tobytes() for name, (_, call) in CALLS.items()} for n in range(6)]
    for _ in range(3):
        _forget()
        start = threading.Barrier(6)
        threads = [threading.Thread(target=work, args=(n, start)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors, errors[0]


def test_a_problem_that_is_forgotten() -> None:
    want = _warm("reduce by a function")
    _forget()
    _same(CALLS["reduce by a function"][1](X), want)
