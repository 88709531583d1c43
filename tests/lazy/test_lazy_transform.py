"""gpualgo.lazy.transform and operators: beside the same steps with arrays in between."""

from __future__ import annotations

import operator
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array

import gpualgo as ga
from gpualgo._cpu import kernels as compiled

Point = namedtuple("Point", "x y")
SHIFT = (3,)  # a tuple of numbers, which another one replaces
FLOAT, INT = np.dtype("float64"), np.dtype("int32")


def helper(a: Any) -> Any:
    return a * 3 + 1


OPERATORS = {
    "lambda": (lambda a, b: a * 2 + b, 2),
    "def": (helper, 1),
    "calls another": (lambda a: helper(a) - helper(1), 1),
    "operator": (operator.mul, 2),
    "ufunc": (np.maximum, 2),
    "built-in": (min, 2),
    "branch": (lambda a, b: a if a > b else -b, 2),
    "Operator": (ga.Operator(lambda a, b: a - b), 2),
    "default": (lambda a, k=7: a + k, 1),
    "varargs": (lambda *a: a[0] + a[1], 2),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_any_kind(backend: Backend, name: str) -> None:
    op, arity = OPERATORS[name]
    host = [random_array((30, 4), INT, i) // 1000 for i in range(arity)]
    arrays = [backend.to_device(x) for x in host]
    made = ga.lazy.transform(op, *arrays)
    real = backend.to_host(ga.transform(op, *arrays))
    assert (made.shape, made.dtype) == (real.shape, real.dtype)
    assert_same(backend.to_host(ga.copy(made)), real)


def test_numbers_and_broadcasting(backend: Backend) -> None:
    rows, columns = random_array((6, 1), FLOAT), random_array((1, 5), FLOAT, 1)
    made = ga.lazy.transform(
        lambda a, b, c, d: a * b + c - d, backend.to_device(rows), 2,
        backend.to_device(columns), np.float32(0.5),
    )  # fmt: skip
    assert_same(backend.to_host(ga.copy(made)), rows * 2 + columns - np.float32(0.5))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_dtype(dtype: str) -> None:
    x = random_array(20, INT) // 1000
    made = ga.lazy.transform(lambda a: a * 2, x, dtype=dtype)
    assert made.dtype == dtype
    assert_same(ga.copy(made), ga.transform(lambda a: a * 2, x, dtype=dtype))


def test_tuples_in_and_out(backend: Backend) -> None:
    x, y = random_array(50, FLOAT), random_array(50, INT, 1)
    a, b = backend.to_device(x), backend.to_device(y)
    pair = ga.lazy.transform(lambda p: (p[1], p[0] * 2), (a, b))
    assert [pair.dtype[name] for name in pair.dtype.names or ()] == [INT, FLOAT]
    first, second = ga.copy(pair)
    assert_same(backend.to_host(first), y)
    assert_same(backend.to_host(second), x * 2)
    assert_same(backend.to_host(ga.copy(pair["1"])), x * 2)
    again = ga.lazy.transform(lambda p: p[0] + p[1], pair)
    assert_same(backend.to_host(ga.copy(again)), y + x * 2)
    both = ga.copy(ga.lazy.transform(lambda v: (v, -v), a, dtype=("float32", "float64")))
    assert [backend.to_host(one).dtype for one in both] == [np.float32, np.float64]


def test_namedtuples(backend: Backend) -> None:
    x, y = random_array(50, FLOAT), random_array(50, FLOAT, 1)
    points = Point(backend.to_device(x), backend.to_device(y))
    turned = ga.lazy.transform(lambda p: Point(-p.y, p.x), points)
    made = ga.copy(turned)
    assert type(made) is Point
    assert_same(backend.to_host(made.x), -y)
    assert_same(backend.to_host(ga.copy(turned["y"])), x)
    length = ga.lazy.transform(lambda p: p.x * p.x + p.y * p.y, turned)
    assert_same(backend.to_host(ga.copy(length)), (-y) * (-y) + x * x)
    half = turned.astype(np.float32)
    assert_same(backend.to_host(ga.copy(half).x), (-y).astype(np.float32))


def test_numbers_are_those_of_the_moment_when_it_was_made(monkeypatch: Any) -> None:
    x, k, table = np.arange(4), 10, np.array([5, 6])
    made = ga.lazy.transform(lambda a: a * k + table[a % 2], x)
    called = ga.lazy.transform(lambda a: SHIFT[0] + a, x)
    beside = ga.lazy.asarray(x) * k
    want = x * 10 + table[x % 2]
    assert_same(ga.copy(made), want)
    k = 1000
    monkeypatch.setitem(globals(), "SHIFT", (5,))
    assert_same(ga.copy(made), want)
    assert_same(ga.copy(called), x + 3)
    assert_same(ga.copy(beside), x * 10)
    table[:], x[0] = [50, 60], 4  # arrays are read when it is consumed
    assert_same(ga.copy(made), x * 10 + table[x % 2])
    assert ga.reduce(made) == np.sum(x * 10 + table[x % 2])


def _twice(a: Any) -> Any:
    return a * 2


def test_functions_are_those_of_the_moment_when_it_was_made(monkeypatch: Any) -> None:
    made = ga.lazy.transform(lambda a: _twice(a), np.arange(3))
    monkeypatch.setitem(globals(), "_twice", lambda a: a * 100)
    assert_same(ga.copy(made), np.arange(3) * 2)
    assert_same(ga.copy(ga.lazy.transform(lambda a: _twice(a), np.arange(3))), np.arange(3) * 100)


def test_captured_arrays(backend: Backend) -> None:
    table = backend.to_device(np.arange(10, 20, dtype=np.int32))
    x = backend.to_device(np.arange(30, dtype=np.int32))
    made = ga.lazy.transform(lambda a: table[a % 10] * 2, x) + ga.lazy.arange(30)
    want = (np.arange(30) % 10 + 10) * 2 + np.arange(30)
    assert_same(backend.to_host(ga.copy(made)), want)
    assert backend.to_host(ga.reduce(made)) == want.sum()


def test_one_number_changes_and_nothing_compiles_again() -> None:
    x = np.arange(5.0)

    def total(k: float) -> Any:
        return ga.reduce(ga.lazy.transform(lambda a: a * k + 1, x) * k)

    assert total(2.5) == np.sum((x * 2.5 + 1) * 2.5)
    before = list(compiled._compiled._values)
    assert [total(k + 0.5) for k in range(5)] == [
        np.sum((x * (k + 0.5) + 1) * (k + 0.5)) for k in range(5)
    ]
    assert list(compiled._compiled._values) == before


def test_depth(backend: Backend) -> None:
    x, y = random_array(40, FLOAT), random_array(40, FLOAT, 1)
    a, b = ga.lazy.asarray(backend.to_device(x)), ga.lazy.asarray(backend.to_device(y))
    for _ in range(30):  # each holds those before twice
        a, b = b, a * 0.5 + b
        x, y = y, x * 0.5 + y
    assert_same(backend.to_host(ga.copy(b)), y)
    assert len(repr(b)) < 130


def test_many_leaves() -> None:
    arrays = [random_array(9, FLOAT, i) for i in range(17)]
    made = ga.lazy.asarray(arrays[0])
    for x in arrays[1:16]:
        made = made + x
    want = arrays[0]
    for x in arrays[1:16]:
        want = want + x
    assert_same(ga.copy(made), want)
    with pytest.raises(TypeError, match=r"it would read 17 arrays, at most 16 are possible"):
        made + arrays[16]
    with pytest.raises(TypeError, match=r"reduce: x reads 16 arrays, at most 8 are possible"):
        ga.reduce(made)
    again = made
    for x in arrays[:16]:  # the same ones
        again, want = again + x, want + x
    assert_same(ga.copy(again), want)
