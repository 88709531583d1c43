"""searchsorted of sorted queries in a long array, in the part that a block's queries span."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo._algorithms.searchsorted import cuda

Host = np.ndarray[Any, Any]
SIDES = ("left", "right")
LENGTH = 40_003
TILE = cuda.policy_of(np.dtype("float32"), 1 << 20).tile_items
ROOM = 1 << cuda.MOST_LEVELS  # elements of a part that shared memory holds


@pytest.fixture(autouse=True)
def windows_of_few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "WINDOW_QUERIES", 1)


def numbers(length: int, dtype: Any, seed: int, most: int = 30_000) -> Host:
    found = np.random.default_rng(seed).integers(0, most, length)
    return (found % 128 if np.dtype(dtype).itemsize < 2 else found).astype(dtype)


def check(backend: Backend, a: Any, v: Host, want: Host, **options: Any) -> None:
    got = backend.to_host(ga.searchsorted(a, backend.to_device(v), **options))
    np.testing.assert_array_equal(got, want)


def sides(backend: Backend, a: Host, v: Host) -> None:
    for side in SIDES:
        want = np.searchsorted(a, v, side=side)  # type: ignore[call-overload]
        check(backend, backend.to_device(a), v, want, side=side)


def queries(kind: str, dtype: Any) -> Host:
    """Return queries of a few tiles in a certain order."""
    count, rng = 3 * TILE + 77, np.random.default_rng(3)
    v = np.sort(numbers(count, dtype, 2, 2500))  # a part of `a` that shared memory holds
    if kind == "falling":
        return v[::-1].copy()
    if kind == "an outlier in a tile":
        v[TILE + 40] = 120 if v.dtype.itemsize < 2 else 29_000
    elif kind == "nearly sorted":
        v = np.sort(v + rng.integers(0, 3, count).astype(dtype))
        order = np.arange(count) + rng.integers(-3, 4, count)
        v = v[np.argsort(order, kind="stable")]
    elif kind == "one tile in any order":
        v[TILE : 2 * TILE] = rng.permutation(numbers(TILE, dtype, 4))
    elif kind == "wide, narrow":
        v[: 2 * TILE] = np.sort(numbers(2 * TILE, dtype, 4))
    elif kind == "all equal":
        v[:] = v[count // 2]
    elif kind == "below all":
        v[:] = -1 if v.dtype.kind != "u" else 0
    elif kind == "above all":
        v[:] = 127 if v.dtype.itemsize < 2 else 30_000
    elif kind == "sorted rows":
        v = np.sort(v.reshape(-1)[: 3 * TILE].reshape(24, -1)).ravel()
    return v


KINDS = ["sorted", "falling", "an outlier in a tile", "nearly sorted", "one tile in any order",
         "wide, narrow", "all equal", "below all", "above all", "sorted rows"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_orders_of_queries(backend: Backend, dtype: str, kind: str) -> None:
    sides(backend, np.sort(numbers(LENGTH, dtype, 1)), queries(kind, dtype))


@pytest.mark.parametrize("count", [1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1])
def test_numbers_of_queries(backend: Backend, count: int) -> None:
    a = np.sort(numbers(min(LENGTH, 1 << 15 if count < TILE else LENGTH), "float32", 1))
    v = np.linspace(100, 2000, count).astype("float32")
    sides(backend, a, np.repeat(v, 2)[:count] if count > 2 else v)


@pytest.mark.parametrize("size", [ROOM - 3, ROOM - 2, ROOM - 1, ROOM, ROOM + 1])
@pytest.mark.parametrize("begin", [0, 1, 2, 5000, LENGTH - ROOM - 1])
def test_parts_that_just_fit(backend: Backend, begin: int, size: int) -> None:
    a = np.arange(LENGTH, dtype="float32")
    v = np.linspace(begin, min(begin + size, LENGTH), 2 * TILE).astype("float32")
    sides(backend, a, v)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_infinities_and_zeros(backend: Backend, dtype: str) -> None:
    a, v = np.sort(numbers(LENGTH, dtype, 1)), np.sort(numbers(3 * TILE, dtype, 2)) - 9
    a[:50], a[-900:-400], a[-400:] = -np.inf, np.inf, np.nan
    v[:3], v[-300:-100], v[-100:] = -np.inf, np.inf, np.nan
    sides(backend, a, v)
    v[: TILE // 2], v[TILE // 2 : TILE] = -0.0, 0.0
    v[TILE + 3] = v[2 * TILE - 1] = np.nan
    sides(backend, a, v)


def test_equal_elements(backend: Backend) -> None:
    a = np.repeat(np.arange(20, dtype="int32"), 2500)
    sides(backend, a, np.repeat(np.arange(-1, 21, dtype="int32"), 200))


def test_two_dtypes_and_gaps(backend: Backend) -> None:
    a, v = np.sort(numbers(3 * LENGTH, "int32", 1)), np.sort(numbers(3 * TILE, "float64", 2) + 0.5)
    check(backend, backend.to_device(a)[::3], v, np.searchsorted(a[::3], v))
    check(backend, backend.to_device(a)[1:], v[::-2], np.searchsorted(a[1:], v[::-2]))


def test_queries_of_two_dimensions(backend: Backend) -> None:
    a, v = np.sort(numbers(LENGTH, "float32", 1)), np.sort(numbers(4 * TILE, "float32", 2))
    rows = v.reshape(64, -1)
    want = np.searchsorted(a, rows)
    check(backend, backend.to_device(a), rows, want)
    got = ga.searchsorted(backend.to_device(a), backend.to_device(rows)[:, :50])
    np.testing.assert_array_equal(backend.to_host(got), want[:, :50])


def test_in_place(backend: Backend) -> None:
    a, v = np.sort(numbers(LENGTH, "int64", 1)), np.sort(numbers(3 * TILE, "int64", 2))
    out = backend.to_device(v.copy())
    assert ga.searchsorted(backend.to_device(a), out, out=out) is out
    np.testing.assert_array_equal(backend.to_host(out), np.searchsorted(a, v))


def test_prepared(cuda: Backend) -> None:
    a, v = np.sort(numbers(LENGTH, "int64", 1)), np.sort(numbers(3 * TILE, "int64", 2, 2500))
    v[TILE + 40] = 29_000
    given = cuda.to_device(a), cuda.to_device(v)
    plan = ga.prepare(ga.searchsorted, *given)
    for storage in (None, cuda.to_device(np.full(plan.temp_storage_bytes, 7, np.uint8))):
        for _ in range(2):  # the second call finds marks of the first one
            got = plan(*given, temp_storage=storage)
            np.testing.assert_array_equal(cuda.to_host(got), np.searchsorted(a, v))


def test_by_a_function(backend: Backend) -> None:
    sevens = backend.to_device(np.array([7]))
    a, v = np.sort(numbers(LENGTH, "int32", 1)), np.sort(numbers(3 * TILE, "int32", 2, 2000))
    got = ga.searchsorted(
        backend.to_device(a),
        backend.to_device(v),
        less=lambda x, y: x // sevens[0] < y // sevens[0],
    )
    np.testing.assert_array_equal(backend.to_host(got), np.searchsorted(a // 7, v // 7))


def test_descending(backend: Backend) -> None:
    a, v = np.sort(numbers(LENGTH, "int32", 1)), np.sort(numbers(3 * TILE, "int32", 2))
    want = LENGTH - np.searchsorted(a, v[::-1], side="right")
    check(backend, backend.to_device(a[::-1].copy()), v[::-1].copy(), want, descending=True)


def test_what_is_not_sorted_is_not_left(backend: Backend) -> None:
    a, v = numbers(LENGTH, "int32", 1), np.sort(numbers(3 * TILE, "int32", 2))
    got = backend.to_host(ga.searchsorted(backend.to_device(a), backend.to_device(v)))
    assert ((got >= 0) & (got <= len(a))).all()
