"""Many integer keys in any order on a GPU: of a narrow range by tables, of a wide one by a sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    INTEGERS,
    Backend,
    affine,
    assert_same,
    compose,
    forget_problems,
    sampled,
    scaled,
    summable,
)

import gpualgo as ga
from gpualgo._algorithms.by_index import cuda as by_index
from gpualgo._algorithms.radix_sort import tuning

Array = np.ndarray[Any, Any]
N = scaled(30_011, emulated=3011)
WINDOW = by_index.WINDOW


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take some thousands of elements for millions, and let no plan outlive the test."""
    monkeypatch.setattr(by_index, "TABLES_FROM", 100)
    monkeypatch.setattr(tuning, "MAX_ROW_WARPS", 1)  # no block sorts all keys
    forget_problems()
    yield
    forget_problems()


def _keys(first: int, last: int, dtype: Any = np.int32, n: int = N, seed: int = 0) -> Array:
    """Return keys from the first to the last, both among them."""
    places = np.random.default_rng(seed).integers(0, last - first, n, endpoint=True)
    places[[n // 3, n // 2]] = 0, last - first
    return (places.astype(object) + first).astype(dtype)


def _wanted(keys: Array, x: Array, op: Any = compose, init: Any = None) -> tuple[Array, Array]:
    names, groups = np.unique(keys, return_inverse=True)
    found: list[Any] = [init] * names.size
    for k, element in zip(groups.tolist(), x.ravel(), strict=True):
        found[k] = element if found[k] is None else op(found[k], element)
    return names, np.array(found, x.dtype)


def _check(got: Any, backend: Backend, want: tuple[Array, Array]) -> None:
    for mine, other in zip(got, want, strict=True):
        assert_same(backend.to_host(mine), other)


@pytest.mark.parametrize("init", [None, np.uint64(5 << 32 | 9)], ids=["no init", "init"])
@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0, 9), (7, 7), (-3, WINDOW - 4), (5, WINDOW + 4), (-(1 << 31), WINDOW - 1 - (1 << 31)),
        ((1 << 31) - WINDOW, (1 << 31) - 1), (0, WINDOW), (-(1 << 31), (1 << 31) - 1),
        (-1, 1 << 16),
    ],
)  # fmt: skip
def test_order_of_elements(cuda: Backend, first: int, last: int, init: Any) -> None:
    """Functions that are composed, by keys of ranges that just fit a table, and that do not."""
    keys, x = _keys(first, last), affine(N)
    want = _wanted(keys, x, compose, init)
    given = cuda.to_device(keys), cuda.to_device(x)
    for _ in range(2):
        _check(ga.reduce_by_key(*given, init, compose), cuda, want)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_key(cuda: Backend, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    for first in {int(bounds.min), max(int(bounds.min), -5), int(bounds.max) - 100}:
        keys, x = _keys(first, first + 100, dtype, 1500), affine(1500)
        given = cuda.to_device(keys), cuda.to_device(x)
        _check(ga.reduce_by_key(*given, None, compose), cuda, _wanted(keys, x))
    # of the whole range, which only a window of 8 bits has
    keys = np.array([bounds.min, bounds.max] * 750, dtype)
    _check(ga.reduce_by_key(cuda.to_device(keys), given[1], None, compose), cuda, _wanted(keys, x))


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_element(cuda: Backend, dtype: np.dtype[Any]) -> None:
    keys, x = _keys(-4, 6, n=1300), summable(1300, dtype)
    want = _wanted(keys, x, lambda a, b: np.add(a, b, dtype=dtype))
    got = ga.reduce_by_key(cuda.to_device(keys), cuda.to_device(x))
    for mine, other in zip(got, want, strict=True):
        assert_same(cuda.to_host(mine), other, zero_signs=False)


def test_bits_of_tables(cuda: Backend) -> None:
    """They are those of `reduce_by_index`, however arrays lie, and those of a sort are others."""
    keys, x = _keys(-300, 500), np.random.default_rng(1).standard_normal(N).astype(np.float32)
    keys[0] = keys[1]
    given = cuda.to_device(keys), cuda.to_device(x)
    sums = cuda.to_host(ga.reduce_by_index(cuda.to_device(keys + 300), given[1], WINDOW))
    names = np.unique(keys)
    want = names, sums[names + 300]
    _check(ga.reduce_by_key(*given), cuda, want)
    apart = [cuda.to_device(np.repeat(array, 2))[::2] for array in (keys, x)]
    _check(ga.reduce_by_key(*apart), cuda, want)
    keys[0] = 1 << 20  # its sum, and that of the key that was there, are others anyway
    wide = cuda.to_host(ga.reduce_by_key(cuda.to_device(keys), given[1]).aggregates)[:-1]
    assert (wide != want[1])[names != keys[1]].any()


@pytest.mark.parametrize("room", [3, 10, 12])
@pytest.mark.parametrize("last", [9, 90_000])
def test_outputs(cuda: Backend, room: int, last: int) -> None:
    """They may be too short or have gaps; the count is that of all."""
    keys, x = _keys(0, 9), affine(N)
    keys[keys == 9] = last
    names, sums = _wanted(keys, x)
    wholes = [cuda.to_device(np.full(2 * room, 77, a.dtype)) for a in (names, sums)]
    outs, count = tuple(whole[::2] for whole in wholes), cuda.to_device(np.zeros((), np.int64))
    given = cuda.to_device(keys), cuda.to_device(x)
    ga.reduce_by_key(*given, None, compose, out=outs, out_count=count)
    assert int(cuda.to_host(count)) == 10
    for whole, want in zip(wholes, (names, sums), strict=True):
        filled = np.full(2 * room, 77, want.dtype)
        filled[::2][:10] = want[:room]
        assert_same(cuda.to_host(whole), filled)


def test_in_a_graph_and_prepared(cuda: Backend) -> None:
    """Each launch decides by the keys that it finds: it takes turns of tables and of the sort."""
    x, keys = cuda.to_device(affine(N)), cuda.to_device(_keys(0, 9))
    outs = cuda.to_device(np.zeros(N, np.int32)), cuda.to_device(np.zeros(N, np.uint64))
    count = cuda.to_device(np.zeros((), np.int64))
    plan = ga.prepare(ga.reduce_by_key, keys, x, None, compose)
    with ga.graph() as graph:
        ga.reduce_by_key(keys, x, None, compose, out=outs, out_count=count)
    for last in (9, 90_000, 1000, 1 << 30, 0):
        now = _keys(-1, last, seed=last)
        keys[:] = cuda.to_device(now)
        want = _wanted(now, cuda.to_host(x))
        graph.launch()
        found = int(cuda.to_host(count))
        _check([out[:found] for out in outs], cuda, want)
        _check(plan(keys, x), cuda, want)
