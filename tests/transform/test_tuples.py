"""Operators of transform that take and return tuples, and structured arrays."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import BFLOAT16, DTYPES, Backend, random_array, sampled

import gpualgo as ga

Point = namedtuple("Point", "x y")


class Reading(NamedTuple):
    """Another class of the same fields as `Point`."""

    x: Any
    y: Any


def host(backend: Backend, result: Any) -> Any:
    """Return a result's arrays on the host, in tuples as they are."""
    if isinstance(result, tuple):
        items = [host(backend, item) for item in result]
        return type(result)._make(items) if hasattr(result, "_make") else tuple(items)
    return backend.to_host(result)


def device(backend: Backend, x: Any) -> Any:
    if isinstance(x, tuple):
        items = [device(backend, item) for item in x]
        return type(x)._make(items) if hasattr(x, "_make") else tuple(items)
    return backend.to_device(x)


def assert_same(got: Any, want: Any) -> None:
    """Assert tuples of the same classes, with equal arrays of the same dtypes."""
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for mine, other in zip(got, want, strict=True):
            assert_same(mine, other)
        return
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


X = np.array([1.5, -2.0, 3.25, 100.0, 7.0], np.float32)
Y = np.array([10, 20, -30, 2**40, 50])
Z = np.array([True, False, True, True, False])

CASES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "a pair in": (lambda p: p[0] + p[1], ((X, Y),), X + Y),
    "unpacked": (lambda p: p[0] * 2 + p[-1], ((X, X),), X * 2 + X),
    "a pair out": (lambda a: (a, a * 2), (X,), (X, X * np.float32(2))),
    "literals": (lambda a: (a, 3, 2.5), (Y,), (Y, np.full(5, 3), np.full(5, 2.5))),
    "one number": (lambda p: (p[0],), ((X,),), (X,)),
    "beside arrays": (lambda p, q, k: (p[0] + k, q), ((X, Z), Y, np.int8([1] * 5)),
                      (X + np.float32(1), Y)),
    "named": (lambda p: Point(p.y, p.x), (Point(X, Y),), Point(Y, X)),
    "nested": (lambda p: (p[1], (p[0].x, p[0].y)), ((Point(X, Y), Z),), (Z, (X, Y))),
    "the argument itself": (lambda p: p, (Point(X, Z),), Point(X, Z)),
    "either": (lambda p, z: p if z else Point(-p.x, p.y), (Point(X, Y), Z),
               Point(np.where(Z, X, -X), Y)),
    "eight": (lambda p: p, ((X, Y, Z, X, Y, Z, X, Y),), (X, Y, Z, X, Y, Z, X, Y)),
    "a local function": (lambda p: _swapped(p), ((X, Y),), (Y, X)),
}  # fmt: skip


def _swapped(p: Any) -> Any:
    a, b = p
    return b, a


@pytest.mark.parametrize("name", CASES)
def test_as_python(backend: Backend, name: str) -> None:
    op, arguments, want = CASES[name]
    found = ga.transform(op, *(device(backend, x) for x in arguments))
    assert_same(host(backend, found), want)


def test_results_have_the_argument_s_class(backend: Backend) -> None:
    x = Reading(backend.to_device(X), backend.to_device(Y))
    assert type(ga.transform(lambda p: p, x)) is Reading
    assert type(ga.transform(lambda p: Point(p.y, p.x), x)) is Reading  # of the same fields


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype_goes_through(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = random_array(1003, dtype), random_array(1003, np.dtype("int8"), 1)
    found = ga.transform(lambda p: (p[1], p[0]), (backend.to_device(x), backend.to_device(y)))
    got = host(backend, found)
    assert [a.dtype for a in got] == [y.dtype, dtype]
    assert got[0].tobytes() == y.tobytes()
    assert got[1].tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, (np.float64, np.int32), "two"])
def test_dtypes(backend: Backend, dtype: Any) -> None:
    dtype = np.dtype([("a", "f8"), ("b", "i4")]) if dtype == "two" else dtype
    found = ga.transform(lambda a: (a, 3), backend.to_device(X), dtype=dtype)
    want = np.float64 if dtype is np.float64 else np.int32
    assert_same(host(backend, found), (X.astype(np.float64), np.full(5, 3, want)))


def test_out_decides_the_dtypes(backend: Backend) -> None:
    out = (backend.to_device(np.zeros(5)), backend.to_device(np.zeros(5, np.int8)))
    assert ga.transform(lambda a: (a, 3), backend.to_device(X), out=out) is out
    assert_same(host(backend, out), (X.astype(np.float64), np.full(5, 3, np.int8)))


def test_sixteen_bits(backend: Backend) -> None:
    x, y = X.astype(np.float16), X.astype(BFLOAT16)
    found = ga.transform(lambda p: (p[0] * 3, p[1] * 3), device(backend, (x, y)))
    assert_same(host(backend, found), (x * np.float16(3), y * BFLOAT16.type(3)))


# --- structured arrays, which are NumPy's -----------------------------------------------------


@pytest.mark.parametrize("align", [False, True])
def test_structured_arrays(align: bool) -> None:
    dtype = np.dtype([("flag", "?"), ("value", "f8"), ("count", "i2")], align=align)
    x = np.zeros(1000, dtype)
    x["flag"], x["value"], x["count"] = np.arange(1000) % 3 == 0, np.arange(1000), -np.arange(1000)
    found = ga.transform(lambda r: r.value if r.flag else r.count * 1.0, x)
    np.testing.assert_array_equal(found, np.where(x["flag"], x["value"], x["count"] * 1.0))
    same = ga.transform(lambda r: r, x)
    assert same.dtype == dtype
    assert same.tolist() == x.tolist()
    out = np.zeros(1000, dtype)
    assert ga.transform(lambda r: (r.flag, -r.value, r.count), x[::-1], out=out) is out
    np.testing.assert_array_equal(out["value"], -x["value"][::-1])


def test_a_structured_array_in_a_tuple() -> None:
    x = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f4")])
    found = ga.transform(lambda p: (p[0], p[1].a), (Y[:2], x))
    assert_same(found, (Y[:2], x["a"]))


# --- refused ------------------------------------------------------------------------------------
