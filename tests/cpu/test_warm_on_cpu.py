"""Warm calls on the CPU, prepared once: nothing of an earlier call is left in a later one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._cpu import launch
from gpualgo._cpu.memory import address
from gpualgo._pipeline import host_warm

X = np.random.default_rng(0).standard_normal(1000)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


def _add(a: Any, b: Any) -> Any:
    return a + b


def _double(a: Any) -> Any:
    return a * 2 + 1


CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reduce": (lambda x: ga.reduce(x, 0.0, max), lambda x: max(0.0, x.max())),
    "reduce an axis": (
        lambda x: ga.reduce(x.reshape(10, -1), None, max, axis=1),
        lambda x: x.reshape(10, -1).max(1),
    ),
    "reduce long rows": (
        lambda x: ga.reduce(np.tile(x, 9), None, min, axis=0, keepdims=True),
        lambda x: x.min(keepdims=True),
    ),
    "transform": (lambda x: ga.transform(_double, x), lambda x: x * 2 + 1),
    "transform to two": (
        lambda x: ga.transform(lambda a: (a * 2, -a), x)[1],
        lambda x: -x,
    ),
    "inclusive_scan": (lambda x: ga.inclusive_scan(x, None, max), np.maximum.accumulate),
    "reverse": (
        lambda x: ga.inclusive_scan(x, None, max, reverse=True),
        lambda x: np.maximum.accumulate(x[::-1])[::-1],
    ),
    "exclusive_scan": (
        lambda x: ga.exclusive_scan(x, -9.0, max),
        lambda x: np.maximum.accumulate(np.append(-9.0, x[:-1])),
    ),
    "radix_sort": (ga.radix_sort, np.sort),
    "narrow keys": (lambda x: ga.radix_sort(x.astype("f2")), lambda x: np.sort(x.astype("f2"))),
    "argsort": (ga.argsort, lambda x: np.argsort(x, kind="stable")),
    "values": (
        lambda x: ga.radix_sort(x, np.arange(len(x)))[1],
        lambda x: np.argsort(x, kind="stable"),
    ),
    "histogram": (
        lambda x: ga.histogram(x, 7, (-2, 2)),
        lambda x: np.histogram(x, 7, (-2, 2))[0],
    ),
    "edges": (
        lambda x: ga.histogram(x, (-1.0, 0.5, 3.0)),
        lambda x: np.histogram(x, (-1.0, 0.5, 3.0))[0],
    ),
}
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x.copy(),
    "read-only": lambda x: _frozen(x.copy()),
    "misaligned": lambda x: _misaligned(x),
    "gaps": lambda x: np.repeat(x, 3)[::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
}


def _frozen(x: Any) -> Any:
    x.flags.writeable = False
    return x


def _misaligned(x: Any) -> Any:
    place = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype)
    place[...] = x
    return place


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_each_array_has_its_own_result(name: str, layout: str) -> None:
    call, want = CALLS[name]
    arrays = [LAYOUTS[layout](X * factor) for factor in (1, -1, 0.5, 3)]
    results = [call(x) for x in arrays]
    for x, result in zip(arrays, results, strict=True):  # all are there still
        np.testing.assert_array_equal(result, want(np.array(x)))


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, want = CALLS[name]
    monkeypatch.setattr(threads, "SMALL_BYTES", -1)
    monkeypatch.setattr(threads, "THREAD_SECONDS", 1e-15)  # all of them, for however little
    for count in (1, 3, 2):
        monkeypatch.setattr(threads, "LARGE_BYTES", 0 if count > 1 else 1 << 24)
        monkeypatch.setattr(threads, "num_threads", lambda count=count: count)
        np.testing.assert_array_equal(call(X), want(X))


def test_results_lie_as_the_first_one_did() -> None:
    x = np.asfortranarray(X.reshape(10, 5, 20))
    calls: list[Callable[[], Any]] = [
        lambda: ga.transform(_double, x),
        lambda: ga.inclusive_scan(x, None, max, axis=1),
        lambda: ga.radix_sort(x, axis=1),
        lambda: ga.argsort(x, axis=0, dtype=np.int32),
        lambda: ga.reduce(x, None, max, axis=1),
        lambda: ga.transform(lambda a: (a * 2, a > 0), x.transpose(1, 0, 2))[1],
    ]
    for call in calls:
        first, *others = (call() for _ in range(3))
        for other in others:
            assert other.strides == first.strides
            np.testing.assert_array_equal(other, first)


def test_warm_calls_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [call for call, _ in CALLS.values()]
    for call in calls:
        call(X)
    from gpualgo._pipeline import host

    monkeypatch.setattr(host, "run", None)
    for call in calls:
        call(X)


def test_numbers_and_arrays_that_an_operator_captures() -> None:
    def scaled(number: Any) -> Any:
        return ga.transform(lambda a: a * number, X)

    def greatest(number: Any) -> Any:
        return ga.reduce(X, 0.0, lambda a, b: max(a, b) + 0 * number)

    def looked_up(table: Any) -> Any:
        return ga.transform(lambda i: table[i], places)

    for number in (2.0, 3.0, -1.0, 2.0):
        np.testing.assert_array_equal(scaled(number), X * number)
        assert greatest(number) == max(0.0, X.max())
    places, table = np.array([0, 2, 1]), np.arange(3.0)
    for given in (table, table + 1, table - 1, table):
        np.testing.assert_array_equal(looked_up(given), given[places])
    table[1] = 77.0
    np.testing.assert_array_equal(looked_up(table), table[places])


def test_init_is_each_calls_own() -> None:
    ints = np.arange(5)
    for init in (0, 10, -3, 10, np.int64(4), np.array(6), np.array([7])):
        assert ga.reduce(ints, init, _add) == 10 + int(np.asarray(init).reshape(()))
    changing = np.array(1)
    for value in (1, 2, 3):
        changing[...] = value
        assert ga.reduce(ints, changing, _add) == 10 + value
    with pytest.raises(TypeError, match=r"init 0\.5 does not fit"):
        ga.reduce(ints, 0.5, _add)
    with pytest.raises(ValueError, match="out of range"):
        ga.reduce(ints, 1 << 70, _add)
    assert ga.reduce(ints, 0, _add) == 10


def test_init_of_a_call_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's call with its own start value may come wherever the lock is let go of."""
    x, op = np.arange(10.0), _add
    for _ in range(3):
        assert ga.reduce(x, 1.0, op) == 46
    others: list[Any] = []

    def empty(*args: Any) -> Any:
        if not others:
            others.append(None)
            others.append(ga.reduce(x, 1000.0, op))
        return np.empty(*args)

    monkeypatch.setattr(launch, "empty", empty)
    assert ga.reduce(x, 1.0, op) == 46
    assert others == [None, 1045]


def test_arrays_of_other_classes_keep_their_way() -> None:
    class Own(np.ndarray[Any, Any]):
        pass

    for x in (X, X.view(Own), memoryview_array(X), X):
        assert ga.reduce(x, None, max) == X.max()
    with pytest.raises(TypeError, match="masked"):
        ga.reduce(np.ma.masked_array(X), None, max)


def memoryview_array(x: np.ndarray[Any, Any]) -> Any:
    """Return an object that NumPy takes for an array, and is none."""

    class Holder:
        __array_interface__ = x.__array_interface__

    return Holder()


def test_operators_that_are_equal_but_for_identity() -> None:
    empty = np.zeros((3, 0))
    for identity in (0.0, 5.0):
        op = ga.Operator(_add, identity=identity)
        np.testing.assert_array_equal(ga.reduce(empty, op=op, axis=1), [identity] * 3)
        first = ga.exclusive_scan(X, op=op)[0]
        assert first == identity
    assert ga.reduce(X[:3], None, operator.add) == pytest.approx(X[:3].sum())


def test_what_is_prepared_is_not_for_arrays_that_op_captures() -> None:
    table = np.arange(4.0)
    for _ in range(2):
        ga.transform(lambda i: table[i], np.array([1, 2]))
    from gpualgo._algorithms.transform.problem import Transformation

    kept = [p for p in Transformation.problems.values() if p.arrays]
    assert kept
    assert not any(isinstance(p.warm, host_warm.Warm) for p in kept)


@pytest.mark.parametrize("array", [X, X[3:], X[::-2], X[:0], X.reshape(10, -1).T[5:], np.array(1)])
def test_addresses(array: np.ndarray[Any, Any]) -> None:
    assert address(array) == array.__array_interface__["data"][0]
