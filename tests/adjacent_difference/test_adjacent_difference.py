"""adjacent_difference against NumPy's slices and a loop."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import (
    DTYPES,
    Backend,
    a_few,
    assert_same,
    random_array,
    sampled,
    scaled,
    special_values,
)

import gpualgo as ga

TILE = 256 * 4  # float32, which a block takes in packs of four
SIZES = [0, 1, 2, 31, 32, 33, TILE - 1, TILE, TILE + 1, scaled(300_007, emulated=5_003)]
SHAPES = [((0, 4), 0), ((4, 0), 1), ((37, 211), 1), ((211, 37), 0), ((64, 48), 0), ((600, 3), 1),
          ((5, 7, 6), 1), ((5, 7, 8), -3), ((5, 1, 6), 1), ((1, 33), -2)]  # fmt: skip


def later(a: Any, b: Any) -> Any:
    return a * 3 - b


def expected(x: np.ndarray[Any, Any], axis: int = -1, op: Callable[..., Any] = later) -> Any:
    """Return what NumPy makes of slices."""
    x = np.moveaxis(x, axis, 0)
    with np.errstate(all="ignore"):
        rest = op(x[1:], x[:-1])
        return np.moveaxis(np.concatenate([x[:1].astype(rest.dtype), rest]), 0, axis)


def same(backend: Backend, got: Any, want: Any) -> None:
    got = backend.to_host(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    bits = [np.ascontiguousarray(x).view(np.uint8) for x in (got, want)]
    np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(backend: Backend, n: int, guarded: Any) -> None:
    x = random_array((n,), np.dtype("float32"))
    given, want = backend.to_device(x), expected(x, op=np.subtract)
    same(backend, ga.adjacent_difference(given), want)
    out = guarded((n,), np.dtype("float32"))
    assert ga.adjacent_difference(given, out=out) is out
    same(backend, out, want)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_shapes(backend: Backend, shape: tuple[int, ...], axis: int) -> None:
    x = random_array(shape, np.dtype("int16"))
    given = backend.to_device(x)
    for _ in range(2):  # a warm call, too
        same(backend, ga.adjacent_difference(given, later, axis=axis), expected(x, axis))


def test_order_of_axes(backend: Backend) -> None:
    """The result lies as x does."""
    x = random_array((6, 5, 40), np.dtype("int32"))
    turned, want = backend.to_device(x).transpose(2, 0, 1), x.transpose(2, 0, 1)
    for axis in range(3):
        got = ga.adjacent_difference(turned, later, axis=axis)
        same(backend, got, expected(want, axis))
        assert tuple(got.strides) == want.strides


@pytest.mark.parametrize("dtype", sampled(DTYPES, ("bool", "int8", "bfloat16", "complex64")),
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("shape", [(5003,), (13, 32)], ids=str)
def test_dtypes(backend: Backend, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Sums, as NumPy has no differences of bools; unsigned ones wrap."""
    x = random_array(shape, dtype)
    given = backend.to_device(x)
    axis = len(shape) - 1
    op = np.add if dtype.kind == "b" else np.subtract
    got = ga.adjacent_difference(given, op, axis=0)
    assert_same(backend.to_host(got), expected(x, 0, op))
    got = ga.adjacent_difference(given, lambda a, b: b, axis=axis)
    same(backend, got, expected(x, axis, lambda a, b: b))


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int8"])
def test_special_values(backend: Backend, dtype: str) -> None:
    """NaN, infinities and zeros of both signs: in first place and behind each other."""
    values = special_values(np.dtype(dtype))
    x = np.array([[a, b] for a in values for b in values]).astype(dtype)
    given = backend.to_device(x)
    for axis in a_few((0, 1)):
        got = ga.adjacent_difference(given, axis=axis)
        assert_same(backend.to_host(got), expected(x, axis, np.subtract))


CONVERSIONS: list[tuple[str, str, Callable[..., Any]]] = [
    ("int8", "float64", lambda a, b: np.float64(a) / 3 + b),
    ("float64", "int16", lambda a, b: np.int16(a) - np.int16(b)),
    ("float32", "bool", lambda a, b: a != b),
    ("float32", "complex64", lambda a, b: a + np.complex64(1j) * b),
    ("uint8", "float16", lambda a, b: np.float16(a) - np.float16(b)),
    ("int32", "int32", lambda a, b: a - b * 2),  # a literal is weak
]


@pytest.mark.parametrize(("dtype", "wanted", "op"), CONVERSIONS, ids=lambda v: str(v)[:9])
def test_first_is_converted(
    backend: Backend, dtype: str, wanted: str, op: Callable[..., Any]
) -> None:
    x = np.random.default_rng(2).integers(0, 99, (35, 7)).astype(dtype)
    x += np.array(0.5 if np.dtype(dtype).kind == "f" else 0, dtype)
    given = backend.to_device(x)
    got = backend.to_host(ga.adjacent_difference(given, op, axis=0))
    assert got.dtype == wanted
    np.testing.assert_array_equal(got[0], x[0].astype(wanted))
    for i in (1, 34):
        want = [op(a, b) for a, b in zip(x[i], x[i - 1], strict=True)]
        np.testing.assert_array_equal(got[i], np.array(want).astype(wanted))
    made = ga.transform(op, given, given)
    assert backend.to_host(made).dtype == got.dtype


class Point(NamedTuple):
    x: Any
    y: Any


def test_tuples(backend: Backend) -> None:
    x = random_array((211, 12), np.dtype("int32"), 1)
    y = random_array((1, 12), np.dtype("float32"), 2)
    given = Point(backend.to_device(x), backend.to_device(y))
    got = ga.adjacent_difference(given, lambda a, b: (a.x - b.x, a.y * 2 - b.y), axis=0)
    want = expected(np.broadcast_to(y, x.shape), 0, lambda a, b: a * 2 - b)
    assert type(got) is Point
    same(backend, got.x, expected(x, 0, np.subtract))
    same(backend, got.y, want)
    named = ga.adjacent_difference(given, lambda a, b: Point(a.x, b.y), axis=0)
    assert type(named) is Point
    same(backend, named.x, x)
    plain = ga.adjacent_difference(tuple(given), lambda a, b: (a[0], b[1] > a[1]), axis=0)
    assert type(plain) is tuple
    same(backend, plain[1], np.broadcast_to(y, x.shape) * (np.arange(211) == 0)[:, None] != 0)


def test_structured(backend: Backend) -> None:
    if backend.name != "cpu":
        pytest.skip("structured arrays are NumPy's")
    x = np.zeros(301, [("a", "i4"), ("b", "f8")])
    x["a"], x["b"] = np.arange(301) ** 2, np.arange(301) / 4
    got = ga.adjacent_difference(x, lambda p, q: (p.a - q.a, q.b))
    np.testing.assert_array_equal(got["a"], np.diff(x["a"], prepend=0))
    np.testing.assert_array_equal(got["b"][1:], x["b"][:-1])


def test_op_is_not_asked_of_the_first(backend: Backend) -> None:
    """What it would read there is out of range."""
    table = backend.to_device(np.arange(100, dtype=np.int64))
    x = np.arange(1, 3000, dtype=np.int64) % 50
    got = ga.adjacent_difference(backend.to_device(x), lambda a, b: table[a + b])
    same(backend, got, expected(x, op=np.add))


@pytest.mark.parametrize("axis", [0, 1])
def test_broadcasts_are_alike(backend: Backend, axis: int) -> None:
    """Arrays that broadcast to the same one are that one, in the first call and in those behind."""
    table, row = np.arange(12).reshape(3, 4), np.array([10, 20, 30, 40])
    given, short = backend.to_device(table), backend.to_device(row)
    want = expected(np.broadcast_to(row, (3, 4)), axis=axis, op=np.add)
    for other in (short, short.reshape(1, 4), short, short.reshape(1, 4)):
        got = ga.adjacent_difference(
            (given, other), lambda a, b: (a[0] - b[0], a[1] + b[1]), axis=axis
        )
        same(backend, got[1], want)
    one = backend.to_device(np.array([9]))
    for other in (one, one.reshape(()), one, *([9, 9] if isinstance(one, np.ndarray) else [])):
        got = ga.adjacent_difference((short, other), lambda a, b: (a[0] - b[0], a[1] + b[1]))
        same(backend, got[1], np.array([9, 18, 18, 18]))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_bools_as_of_transform(backend: Backend, n: int) -> None:
    x = backend.to_device(np.ones(n, bool))
    refusals = []
    for call in (
        lambda: ga.transform(operator.sub, x, x),
        lambda: ga.adjacent_difference(x),
    ):
        with pytest.raises(ga.CompileError) as caught:
            call()
        refusals.append(str(caught.value).partition(":")[2])
    assert refusals[0] == refusals[1]
