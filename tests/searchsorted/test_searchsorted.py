"""searchsorted beside NumPy's, and beside a loop where the order is another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import namedtuple
from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few

import gpualgo as ga

Host = np.ndarray[Any, Any]
Point = namedtuple("Point", ["x", "y"])
SIDES = ("left", "right")
NUMBERS = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16",
           "float32", "float64"]  # fmt: skip
ODD = [np.nan, -np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan]


def some(shape: Any, dtype: Any, seed: int) -> Host:
    """Return numbers of which many are equal."""
    found = np.random.default_rng(seed).integers(0, 100, shape)
    if np.dtype(dtype).kind in "if":
        found = found - 50
    return (found % 2 if dtype == "bool" else found).astype(dtype)


def check(backend: Backend, a: Any, v: Any, want: Host, **options: Any) -> None:
    got = backend.to_host(ga.searchsorted(a, v, **options))
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(got, want)


def by_loop(a: Host, v: Host, side: str, falls: bool) -> Host:
    """Count the numbers that come before each query."""

    def before(x: Any, y: Any) -> bool:
        if x != x or y != y:
            return bool(x == x)
        return bool(x > y if falls else x < y)

    found = [
        sum(before(x, q) if side == "left" else not before(q, x) for x in a) for q in v.ravel()
    ]
    return np.array(found, np.int64).reshape(v.shape)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("length", [0, 1, 2, 31, 32, 33, 127, 128, 4095, 4096, 4097, 10_007])
def test_every_length(backend: Backend, length: int, side: str) -> None:
    a, v = np.sort(some(length, "int32", 1)), some(37, "int32", 2)
    want = np.searchsorted(a, v, side=side)  # type: ignore[call-overload]
    check(backend, backend.to_device(a), backend.to_device(v), want, side=side)


@pytest.mark.parametrize("count", [0, 1, 31, 33, 63, 65, 1023, 1024, 1025, 9001])
def test_every_number_of_queries(backend: Backend, count: int) -> None:
    a, v = np.sort(some(5000, "float32", 1)), some(count, "float32", 2)
    check(backend, backend.to_device(a), backend.to_device(v), np.searchsorted(a, v))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_dtype(backend: Backend, dtype: str) -> None:
    a, v = np.sort(some(601, dtype, 1)), some((5, 7), dtype, 2)
    given = backend.to_device(a), backend.to_device(v)
    check(backend, *given, np.searchsorted(a, v))
    check(backend, *given, np.searchsorted(a, v, side="right"), side="right")


def test_bfloat16(backend: Backend) -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    a, v = np.sort(some(601, "float32", 1)), some(77, "float32", 2)
    host = Backend(backend.name, np) if backend.xp is not np else backend
    if backend.xp is not np:
        pytest.skip("CuPy has none")
    check(host, a.astype(bfloat16), v.astype(bfloat16), np.searchsorted(a, v))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_zeros_infinities_and_nan(backend: Backend, dtype: str, falls: bool, side: str) -> None:
    rng = np.random.default_rng(0)
    a = np.sort(rng.choice(np.array(ODD, dtype), 90))
    numbers = a[~np.isnan(a)]
    if falls:
        a = np.concatenate([numbers[::-1], a[numbers.size :]])
    for some_of in (a, numbers[::-1] if falls else numbers, a[numbers.size :]):
        v = np.array([*ODD, 1.0, -9.0], dtype)
        want = by_loop(some_of, v, side, falls)
        given = backend.to_device(some_of.copy()), backend.to_device(v)
        check(backend, *given, want, side=side, descending=falls)


PAIRS = [("int64", "float64"), ("uint64", "int64"), ("int32", "float32"), ("int8", "uint8"),
         ("float16", "float32"), ("bool", "int16"), ("float64", "int64")]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_dtypes_that_differ(backend: Backend, first: str, second: str) -> None:
    a, v = np.sort(some(601, first, 1)), some(77, second, 2)
    if second == "float64":
        v = v + 0.5
    check(backend, backend.to_device(a), backend.to_device(v), np.searchsorted(a, v))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"])
def test_dtypes_of_places(backend: Backend, dtype: str) -> None:
    a, v = np.sort(some(127, "int32", 1)), some((3, 70), "int32", 2)
    given = backend.to_device(a), backend.to_device(v)
    want = np.searchsorted(a, v).astype(dtype)
    check(backend, *given, want, dtype=dtype)
    out = backend.to_device(np.zeros(v.shape, dtype))
    assert ga.searchsorted(*given, out=out) is out
    np.testing.assert_array_equal(backend.to_host(out), want)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("falls", [False, True])
def test_by_a_function(backend: Backend, falls: bool, side: str) -> None:
    tens = backend.to_device(np.array([10]))
    a, v = some(400, "int32", 1), some(61, "int32", 2)
    a = a[np.argsort(-(a // 10) if falls else a // 10, kind="stable")]
    want = by_loop(a // 10, v // 10, side, falls)
    given = backend.to_device(a), backend.to_device(v)
    check(backend, *given, want, side=side, descending=falls,
          less=lambda p, q: p // tens[0] < q // tens[0])  # fmt: skip


def falling(ways: tuple[bool, ...]) -> Any:
    def compare(p: Any, q: Any) -> int:
        for x, y, way in zip(p, q, ways, strict=True):
            if x != y:
                return -1 if (x > y if way else x < y) else 1
        return 0

    return cmp_to_key(compare)


@pytest.mark.parametrize("ways", [(False, False), (False, True), (True, False)])
def test_tuples(backend: Backend, ways: tuple[bool, bool]) -> None:
    key = falling(ways)
    x, y = some(300, "int8", 1) // 10, some(300, "float32", 2) // 10
    pairs = sorted(zip(x.tolist(), y.tolist(), strict=True), key=key)
    p, q = some((5, 9), "int8", 3) // 10, some((1, 9), "float32", 4) // 10
    wanted = list(zip(p.ravel().tolist(), np.broadcast_to(q, p.shape).ravel(), strict=True))
    a = Point(*[backend.to_device(np.array(n)) for n in zip(*pairs, strict=True)])
    v = Point(backend.to_device(p), backend.to_device(q))
    for side, bisect in zip(SIDES, (bisect_left, bisect_right), strict=True):
        want = np.array([bisect(pairs, key(w), key=key) for w in wanted]).reshape(p.shape)
        check(backend, a, v, want, side=side, descending=Point(*ways))
    if ways == (False, False):
        want = np.array([bisect_left(pairs, w) for w in wanted]).reshape(p.shape)
        check(backend, a, v, want,
              less=lambda p, q: p.x < q.x or (p.x == q.x and p.y < q.y))  # fmt: skip


def test_records() -> None:
    kind = np.dtype([("x", "i2"), ("y", "f8")])
    a = np.sort(np.rec.fromarrays([some(200, "i2", 1), some(200, "f8", 2)], dtype=kind))
    v = np.rec.fromarrays([some(50, "i2", 3), some(50, "f8", 4)], dtype=kind)
    want = [bisect_left(a.tolist(), w) for w in v.tolist()]
    with ga.default_device("cpu"):
        np.testing.assert_array_equal(ga.searchsorted(np.array(a), np.array(v)), want)


def test_of_no_order(backend: Backend) -> None:
    """Places are within the array, or its length."""
    for dtype in a_few(("int32", "float32")):
        a, v = some(3001, dtype, 1), some(999, dtype, 2)
        if dtype == "float32":
            a[::7] = v[::5] = np.nan
        for side in SIDES:
            found = ga.searchsorted(backend.to_device(a), backend.to_device(v), side=side)
            found = backend.to_host(found)
            assert found.min() >= 0
            assert found.max() <= a.size
