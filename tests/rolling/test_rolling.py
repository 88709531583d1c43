"""rolling against a loop over the elements of each window."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import (
    DTYPES,
    Backend,
    a_few,
    affine,
    assert_same,
    compose,
    random_array,
    sampled,
    scaled,
    special_values,
    summable,
)

import gpualgo as ga

LONG = scaled(100_003, emulated=3_001)


def first(a: Any, b: Any) -> Any:
    return a


def last(a: Any, b: Any) -> Any:
    return b


def expected(
    x: np.ndarray[Any, Any], window: int, op: Callable[..., Any] = np.add, axis: int = -1,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return windows folded from left to right, all at once."""
    x = np.moveaxis(x.astype(dtype or x.dtype), axis, 0)
    count = len(x) - window + 1
    with np.errstate(all="ignore"):
        parts = [x[k : k + count] for k in range(window)]
        found = functools.reduce(lambda a, b: op(a, b).astype(x.dtype), parts)
    return np.moveaxis(found, 0, axis)


def test_every_short_length_and_window(backend: Backend) -> None:
    """Blocks that are whole, cut, one and many; the order of the elements."""
    for n in a_few(range(1, 14), 3):
        x = affine(n, n)
        given = backend.to_device(x)
        for window in range(1, n + 1):
            assert_same(backend.to_host(ga.rolling(given, window, compose)),
                        expected(x, window, compose))  # fmt: skip


@pytest.mark.parametrize("window", [2, 3, 31, 32, 33, 1000, LONG // 2 + 1, LONG - 1, LONG])
def test_order(backend: Backend, window: int) -> None:
    x = random_array(LONG, np.dtype("int32"))
    given, count = backend.to_device(x), LONG - window + 1
    assert_same(backend.to_host(ga.rolling(given, window, first)), x[:count])
    assert_same(backend.to_host(ga.rolling(given, window, last)), x[window - 1 :])


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_lengths_around_blocks(backend: Backend, blocks: int, more: int, guarded: Any) -> None:
    window = 37
    n = max(window, blocks * window + more)
    x = affine(n)
    out = guarded((n - window + 1,), x.dtype)
    assert ga.rolling(backend.to_device(x), window, compose, out=out) is out
    assert_same(backend.to_host(out), expected(x, window, compose))


@pytest.mark.parametrize("count", [511, 512, 513, 4095, 4096, 4097])
@pytest.mark.parametrize("window", [2, 3, 7, 8, 16, 17, 33, 100, 511, 512, 513])
def test_tiles_of_windows(backend: Backend, count: int, window: int, guarded: Any) -> None:
    """Lengths around those of a GPU's tiles, windows around spans, and those that do not fit."""
    x = affine(count + window - 1, count)
    out = guarded((count,), x.dtype)
    ga.rolling(backend.to_device(x), window, compose, out=out)
    assert_same(backend.to_host(out), expected(x, window, compose))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("window", [2, 29])
def test_layouts_have_the_same_bits(backend: Backend, axis: int, window: int) -> None:
    """Sums that round, of elements in any order, with gaps, computed, and into such results."""
    shape = (5, 700) if axis else (700, 5)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    want = backend.to_host(ga.rolling(backend.to_device(x), window, axis=axis))
    np.testing.assert_allclose(want, expected(x, window, axis=axis), rtol=1e-3, atol=1e-4)
    wide = np.zeros((2 * shape[0], shape[1] + 3), np.float32)
    wide[1::2, 1:-2] = x
    given = backend.to_device(wide)
    views = [
        given[1::2, 1:-2],
        backend.to_device(np.ascontiguousarray(x.T)).T,
        backend.to_device(x[::-1, ::-1].copy())[::-1, ::-1],
        ga.lazy.transform(lambda a: a, backend.to_device(x)),
    ]
    for view in views:
        assert_same(backend.to_host(ga.rolling(view, window, axis=axis)), want)
    out = backend.to_device(np.zeros(want.shape[::-1], np.float32)).T
    ga.rolling(views[0], window, axis=axis, out=out)
    assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_axes(backend: Backend, axis: int) -> None:
    """The result lies as x does."""
    x = random_array((6, 5, 7), np.dtype("int16"))
    turned, want = backend.to_device(x).transpose(2, 0, 1), x.transpose(2, 0, 1)
    got = ga.rolling(turned, 4, last, axis=axis)
    assert_same(backend.to_host(got), expected(want, 4, last, axis))
    assert np.argsort(got.strides).tolist() == np.argsort(want.strides).tolist()


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = summable(501, dtype) if dtype.kind != "b" else random_array(501, dtype)
    given = backend.to_device(x)
    assert_same(backend.to_host(ga.rolling(given, 9)), expected(x, 9))
    assert_same(backend.to_host(ga.rolling(given, 9, last)), expected(x, 9, last))


@pytest.mark.parametrize(("dtype", "acc"), [("int8", "int64"), ("float64", "float32"),
                                            ("int32", "complex64")])  # fmt: skip
@pytest.mark.parametrize("window", [1, 6])
def test_accumulator(backend: Backend, dtype: str, acc: str, window: int) -> None:
    x = summable((4, 31), np.dtype(dtype)) % 99
    got = ga.rolling(backend.to_device(x), window, dtype=acc)
    assert_same(backend.to_host(got), expected(x, window, dtype=acc))


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_special_values(backend: Backend, dtype: str) -> None:
    """NaN, infinities and zeros of both signs reach the windows that they are in, and no others."""
    values = special_values(np.dtype(dtype))
    x = np.array([[a, b] for a in values for b in values]).astype(dtype).reshape(-1)
    x = x[: scaled(len(x), emulated=400)]
    given = backend.to_device(x)
    assert_same(backend.to_host(ga.rolling(given, 2)), expected(x, 2))
    assert_same(backend.to_host(ga.rolling(given, 3, last)), x[2:])
    if x.dtype.kind == "f":
        want = expected(x, 3, np.maximum)
        assert_same(backend.to_host(ga.rolling(given, 3, max)), want, zero_signs=False)
        zeros = np.array([0.0, -0.0, -0.0, -0.0, 0.0], dtype)
        got = ga.rolling(backend.to_device(zeros), 2)
        assert_same(backend.to_host(got), expected(zeros, 2))


def test_float_sums_do_not_cancel(backend: Backend) -> None:
    x = np.ones(200, np.float32)
    x[50] = 1e30
    got = backend.to_host(ga.rolling(backend.to_device(x), 10))
    np.testing.assert_array_equal(got[51:], np.full(140, 10, np.float32))


class Pair(NamedTuple):
    a: Any
    b: Any


def test_tuples(backend: Backend) -> None:
    a, b = random_array(700, np.dtype("int32")), random_array((1,), np.dtype("float64"))
    given = Pair(backend.to_device(a), backend.to_device(b))
    got = ga.rolling(given, 6, lambda p, q: (p.a + q.a, q.b))
    assert type(got) is Pair
    assert_same(backend.to_host(got.a), expected(a, 6))
    assert_same(backend.to_host(got.b), np.broadcast_to(b, 695))
    both = ga.rolling(tuple(given), 6, lambda p, q: (p[0], q[1] + 0), dtype=("int64", "float64"))
    assert_same(backend.to_host(both[0]), a[:695].astype(np.int64))


def test_structured(backend: Backend) -> None:
    if backend.name != "cpu":
        pytest.skip("structured arrays are NumPy's")
    x = np.zeros(301, [("a", "i4"), ("b", "f8")])
    x["a"], x["b"] = np.arange(301) ** 2, np.arange(301) / 4
    got = ga.rolling(x, 7, lambda p, q: (p.a + q.a, q.b))
    np.testing.assert_array_equal(got["a"], expected(x["a"], 7))
    np.testing.assert_array_equal(got["b"], x["b"][6:])


def test_other_callables(backend: Backend) -> None:
    """Functions of NumPy, with defaults, and with more parameters than a call passes."""
    x = random_array(90, np.dtype("float64"))
    given = backend.to_device(x)
    got = backend.to_host(ga.rolling(given, 4, np.fmax))
    assert_same(got, expected(x, 4, np.fmax))

    def later(a: Any, b: Any, k: int = 0) -> Any:
        return b + k

    assert_same(backend.to_host(ga.rolling(given, 4, later)), x[3:])
    shown = ga.Operator(last, commutative=False)
    assert_same(backend.to_host(ga.rolling(given, 4, shown)), x[3:])


def test_operators_that_capture(backend: Backend) -> None:
    """A number that changes between calls, and a table, for each way to compute windows."""
    x = np.arange(1000, dtype=np.int32) % 97
    table = np.arange(97, dtype=np.int32)[::-1].copy()
    given, lookup = backend.to_device(x), backend.to_device(table)
    for window in (4, 33, 700):
        for k in (7, 100, 5):
            got = ga.rolling(given, window, lambda a, b: min(a + b, k))  # noqa: B023
            want = expected(x, window, lambda a, b: np.minimum(a + b, k))  # noqa: B023
            assert_same(backend.to_host(got), want)
        got = ga.rolling(given, window, lambda a, b: a if lookup[a] < lookup[b] else b)
        assert_same(backend.to_host(got), expected(x, window, np.maximum))
