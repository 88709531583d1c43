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


@each_call
def test_arrays_of_other_layouts(name: str) -> None:
    call = CALLS[name][1]
    table = np.arange(49.0).reshape(7, 7) % 5
    misaligned = np.zeros(57, np.uint8)[1:].view(np.float64)
    misaligned[...] = X
    fixed = X.copy()
    fixed.flags.writeable = False
    others = [
        X.astype(np.float32), X.astype(np.complex64), X[:6].copy(), np.repeat(X, 2)[::2], X[::-1],
        misaligned, fixed, np.broadcast_to(X[:1], 7), table, table.T, X.view(np.recarray),
    ]  # fmt: skip
    if "two" in name:
        others = [x for x in others if x.shape != (6,)]
    if name in ("inclusive_scan", "radix_sort", "argsort", "argmin", "argmax"):
        others = [x for x in others if x.dtype.kind != "c"]  # it has no order
    for x in others:
        _forget()
        want = call(x)
        _warm(name)
        for _ in range(3):
            _same(call(x), want)


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


@each_call
def test_outputs(name: str) -> None:
    call = CALLS[name][1]
    want = _warm(name)
    x = X.copy()
    if want.shape == X.shape and want.dtype == X.dtype and "adjacent" not in name:
        for _ in range(3):  # in place, the first time too
            x[...] = X
            assert call(x, out=x) is x
            _same(x, want)
        memory = np.zeros(8)
        memory[:7] = X
        with pytest.raises(ValueError, match=r"overlaps|memory"):
            call(memory[:7], out=memory[1:])
        assert (memory[:7] == X).all()
    fixed = np.zeros(want.shape, want.dtype)
    fixed.flags.writeable = False
    narrow = np.zeros(want.shape, np.int16)
    longer = np.zeros((9, *want.shape), want.dtype)
    for out in (fixed, narrow, longer, [0.0] * 7):
        with pytest.raises((TypeError, ValueError), match=r"out|dtype"):
            call(X, out=out)
    gaps = np.zeros((*want.shape, 2), want.dtype)[..., 0]
    assert call(X, out=gaps) is gaps
    assert gaps.tobytes() == np.asarray(want).tobytes()
    part = np.zeros(want.nbytes + 8, np.uint8)[1 : 1 + want.nbytes].view(want.dtype)
    call(X, out=part.reshape(want.shape))
    assert part.tobytes() == np.asarray(want).tobytes()


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


def test_operators_with_other_variables() -> None:
    _forget()
    x = np.array([1, 2, 3])
    for factor in (2, 3, 2.5, True, 2, np.float32(3), np.arange(3.0), 1j, 2) * 2:
        if isinstance(factor, np.ndarray):
            found, want = ga.transform(lambda a: a * factor[1], x), x * factor[1]  # noqa: B023
        else:
            found, want = ga.transform(lambda a: a * factor, x), x * factor  # noqa: B023
        _same(found, want)


def test_an_operator_whose_code_or_defaults_change() -> None:
    def op(a: Any) -> Any:
        return a + 1

    for _ in range(3):
        assert ga.transform(op, Y)[0] == 1
    op.__code__ = (lambda a: a + 2).__code__
    for _ in range(3):
        assert ga.transform(op, Y)[0] == 2
    op.__code__ = (lambda a, b: a + b).__code__
    with pytest.raises(TypeError, match="argument"):
        ga.transform(op, Y)
    for number in (5.0, 6.0, 5):
        op.__defaults__ = (number,)
        for _ in range(3):
            assert ga.transform(op, Y)[0] == number
    for _ in range(3):  # its last default is not used
        assert ga.transform(op, Y, Y)[3] == 6
    op.__defaults__ = None
    assert ga.transform(op, Y, Y)[3] == 6
    with pytest.raises(TypeError, match="argument"):
        ga.transform(op, Y)


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


def test_checks_of_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    def op(a: Any, b: Any) -> Any:
        return a - b

    for _ in range(3):
        ga.reduce(X, 0.0, op)
    monkeypatch.setenv("GPUALGO_CHECK", "1")
    with pytest.raises(ValueError, match="not associative"):
        ga.reduce(X, 0.0, op)
    monkeypatch.delenv("GPUALGO_CHECK")
    ga.reduce(X, 0.0, op)


def test_calls_that_are_recorded() -> None:
    x = X.copy()
    _warm("reduce", x)
    plan = ga.prepare(ga.reduce, x)
    with ga.graph() as graph:
        result = ga.reduce(x)
    x += 1
    graph.launch()
    assert result == x.sum()
    assert plan(x) == x.sum()
    assert ga.reduce(x) == x.sum()


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
