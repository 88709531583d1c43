"""Closures of one code, called first by many threads: what each captures is decided once a call."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, scaled

import gpualgo as ga
from gpualgo._operators import key as keys
from gpualgo._operators.operator import as_operator, operator_key
from gpualgo._pipeline import problem

N = 32


@pytest.fixture(autouse=True)
def often_interrupted() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def factory(expression: str) -> Callable[[Any], Callable[..., Any]]:
    """Return a maker of closures over k of new code, of which nothing is known yet."""
    made: Callable[[Any], Callable[..., Any]] = eval(f"lambda k: lambda a: {expression}")
    return made


def summed(op: Any, x: Any) -> Any:
    return ga.reduce(ga.lazy.transform(op, x), np.float64(0))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce": summed,
    "transform": lambda op, x: ga.transform(op, x, dtype=np.float64),
    "plan": lambda op, x: ga.prepare(ga.transform, op, x, dtype=np.float64)(x),
    "scan": lambda op, x: ga.inclusive_scan(ga.lazy.transform(op, x), dtype=np.float64),
    "explained": lambda op, x: (
        str(ga.explain(ga.transform, op, x, dtype=np.float64)),
        ga.transform(op, x, dtype=np.float64),
    )[1],
}
WANTED: dict[str, Callable[[Any], Any]] = {"reduce": np.sum, "scan": np.cumsum}


@pytest.mark.parametrize("expression", ["a * k", "a * (1 / k)"])  # the second needs k itself
@pytest.mark.parametrize("kind", [np.int32, float])
@pytest.mark.parametrize("name", CALLS)
def test_nobody_changes_anything(backend: Backend, name: str, kind: Any, expression: str) -> None:
    x = backend.to_device(np.arange(N, dtype=np.int32))
    make, num_threads = factory(expression), scaled(8, emulated=4)
    few = num_threads if expression == "a * k" else 2  # values, each of which is compiled
    barrier, errors = threading.Barrier(num_threads), list[BaseException]()

    def work(i: int) -> None:
        k = kind(2 + i % few)
        barrier.wait()
        try:
            with ga.default_device(backend.name):
                found = backend.to_host(CALLS[name](make(k), x))
            each = np.arange(N, dtype=np.int32) * (k if expression == "a * k" else 1 / k)
            want = WANTED.get(name, lambda y: y)(np.asarray(each, np.float64))
            np.testing.assert_allclose(found, want, rtol=1e-14)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def closure(k: Any, table: Any) -> Any:
    return lambda a: a * k + table[0]


def test_what_is_learnt_meanwhile_changes_no_call_that_began() -> None:
    """Which numbers are data is what the call began with."""
    op, other = closure(2.5, np.zeros(3)), closure(7.5, np.ones(3))
    hot = operator_key(op)
    places, added = keys.make_constant(op, hot[0])  # as a call of another thread may find it needs
    try:
        assert not operator_key(other)[0].numbers
        found = as_operator(op, "transform", 1, hot)
        assert found.key is hot[0]
        assert np.frombuffer(found.words)[0] == 2.5
    finally:
        keys.make_data(op, added)
    assert len(places) == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("k", "text", "the variable k"),
        ("k", 1j, "the variable k"),
        ("table", np.zeros((2, 2)), "the variable table"),
        ("table", np.zeros(3), "the variable table"),  # of the same layout, elsewhere
    ],
)
def test_a_change_is_told_by_name(name: str, value: Any, told: str) -> None:
    op = closure(2.5, np.zeros(3))
    hot = operator_key(op)
    cells = dict(zip(op.__code__.co_freevars, op.__closure__, strict=True))
    cells[name].cell_contents = value
    with pytest.raises(RuntimeError, match=f"^transform: another thread changed {told}, which op"):
        as_operator(op, "transform", 1, hot)


def test_a_change_while_a_call_is_prepared_is_taken_up(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is prepared once more, of what is captured then."""
    op = closure(2.5, backend.to_device(np.ones(3, np.int32)))
    cells = dict(zip(op.__code__.co_freevars, op.__closure__, strict=True))
    values: list[Any] = [np.int32(7)]

    def changing(*args: Any) -> Any:
        if values:
            cells["k"].cell_contents = values.pop()
        return as_operator(*args)

    monkeypatch.setattr(problem, "as_operator", changing)
    x = np.arange(N, dtype=np.int32)
    found = backend.to_host(ga.transform(op, backend.to_device(x)))
    assert not values
    np.testing.assert_array_equal(found, x * 7 + 1)
    assert found.dtype == np.int32
