"""Many integer keys in any order: of a narrow range by tables, of a wide one by a sort."""

from __future__ import annotations

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
from gpualgo._algorithms.by_index import cpu, problem
from gpualgo._algorithms.by_index import cuda as by_index
from gpualgo._algorithms.radix_sort import tuning

Array = np.ndarray[Any, Any]
N = scaled(30_011, emulated=3011)
WINDOW = by_index.WINDOW


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take some thousands of elements for millions."""
    for planner in (by_index, cpu):
        monkeypatch.setattr(planner, "TABLES_FROM", 100)
    monkeypatch.setattr(tuning, "MAX_ROW_WARPS", 1)  # no block sorts all keys


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
def test_order_of_elements(backend: Backend, first: int, last: int, init: Any) -> None:
    """Functions that are composed, by keys of ranges that just fit a table, and that do not."""
    keys, x = _keys(first, last), affine(N)
    want = _wanted(keys, x, compose, init)
    given = backend.to_device(keys), backend.to_device(x)
    for _ in range(2):
        _check(ga.reduce_by_key(*given, init, compose), backend, want)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_key(backend: Backend, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    for first in {int(bounds.min), max(int(bounds.min), -5), int(bounds.max) - 100}:
        keys, x = _keys(first, first + 100, dtype, 1500), affine(1500)
        given = backend.to_device(keys), backend.to_device(x)
        _check(ga.reduce_by_key(*given, None, compose), backend, _wanted(keys, x))
    # of the whole range, which only a window of 8 bits has
    keys = np.array([bounds.min, bounds.max] * 750, dtype)
    _check(
        ga.reduce_by_key(backend.to_device(keys), given[1], None, compose),
        backend,
        _wanted(keys, x),
    )


def test_shares(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements in order, and keys that few of the tables have."""
    monkeypatch.setattr(problem, "SHARE", 200)
    keys, x = np.sort(_keys(3, 20, n=2000)), affine(2000)
    given = backend.to_device(keys), backend.to_device(x)
    _check(ga.reduce_by_key(*given, None, compose), backend, _wanted(keys, x))
    monkeypatch.setattr(problem, "SHARE", 4)  # more tables than for many keys
    monkeypatch.setattr(problem, "MOST_SHARES", 2)
    forget_problems()
    keys = keys % 2
    given = backend.to_device(keys), given[1]
    _check(ga.reduce_by_key(*given, None, compose), backend, _wanted(keys, x))


def test_explained_by_the_keys() -> None:
    with ga.default_device("cpu"):
        for last, name in ((9, "by_index"), (1 << 30, "radix_sort")):
            assert name in str(ga.explain(ga.reduce_by_key, _keys(0, last), affine(N)))


def test_layouts(backend: Backend) -> None:
    """Keys and elements with gaps, reversed, in two dimensions, repeated without memory, bools."""
    keys, x = _keys(-5, 40, np.int64, 1200), affine(1200)
    for layout in (lambda a: a[::2], lambda a: a[::-1], lambda a: a.reshape(40, 30).T):
        names, want = _wanted(layout(keys).ravel(), layout(x))
        given = layout(backend.to_device(keys)), layout(backend.to_device(x))
        _check(ga.reduce_by_key(*given, None, compose), backend, (names, want))
    ones = np.broadcast_to(np.int64(1), 1200)
    for some in (keys, keys > 7, np.broadcast_to(keys[:1], 1200)):
        _check(ga.reduce_by_key(some, ones), backend, np.unique(some, return_counts=True))
    if backend.name == "cpu":
        marks = (keys % 3).astype(np.uint8)  # any byte but 0 is True
        want = np.unique(marks != 0, return_counts=True)
        _check(ga.reduce_by_key(marks.view(np.bool_), ones), backend, want)


def test_elements_of_several_numbers(backend: Backend) -> None:
    keys, x = _keys(-4, 6, n=1300), np.arange(1300)
    given = [backend.to_device(array) for array in (keys, x, x.astype(np.float32))]
    names, (firsts, lasts) = ga.reduce_by_key(
        given[0], tuple(given[1:]), (-1, 0.0), lambda a, b: (a[0] if a[0] >= 0 else b[0], b[1])
    )
    want, first = np.unique(keys, return_index=True)
    last = 1299 - np.unique(keys[::-1], return_index=True)[1]
    for got, other in ((names, want), (firsts, x[first]), (lasts, x[last].astype(np.float32))):
        assert_same(backend.to_host(got), other)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_element(backend: Backend, dtype: np.dtype[Any]) -> None:
    keys, x = _keys(-4, 6, n=1300), summable(1300, dtype)
    want = _wanted(keys, x, lambda a, b: np.add(a, b, dtype=dtype))
    got = ga.reduce_by_key(backend.to_device(keys), backend.to_device(x))
    for mine, other in zip(got, want, strict=True):
        assert_same(backend.to_host(mine), other, zero_signs=False)


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
def test_outputs(backend: Backend, room: int, last: int) -> None:
    """They may be too short or have gaps; the count is that of all."""
    keys, x = _keys(0, 9), affine(N)
    keys[keys == 9] = last
    names, sums = _wanted(keys, x)
    wholes = [backend.to_device(np.full(2 * room, 77, a.dtype)) for a in (names, sums)]
    outs, count = tuple(whole[::2] for whole in wholes), backend.to_device(np.zeros((), np.int64))
    given = backend.to_device(keys), backend.to_device(x)
    ga.reduce_by_key(*given, None, compose, out=outs, out_count=count)
    assert int(backend.to_host(count)) == 10
    for whole, want in zip(wholes, (names, sums), strict=True):
        filled = np.full(2 * room, 77, want.dtype)
        filled[::2][:10] = want[:room]
        assert_same(backend.to_host(whole), filled)


def test_in_a_graph_and_prepared(backend: Backend) -> None:
    """Each launch decides by the keys that it finds: it takes turns of tables and of the sort."""
    x, keys = backend.to_device(affine(N)), backend.to_device(_keys(0, 9))
    outs = backend.to_device(np.zeros(N, np.int32)), backend.to_device(np.zeros(N, np.uint64))
    count = backend.to_device(np.zeros((), np.int64))
    plan = ga.prepare(ga.reduce_by_key, keys, x, None, compose)
    with ga.graph() as graph:
        ga.reduce_by_key(keys, x, None, compose, out=outs, out_count=count)
    for last in (9, 90_000, 1000, 1 << 30, 0):
        now = _keys(-1, last, seed=last)
        keys[:] = backend.to_device(now)
        want = _wanted(now, backend.to_host(x))
        graph.launch()
        found = int(backend.to_host(count))
        _check([out[:found] for out in outs], backend, want)
        _check(plan(keys, x), backend, want)


# --- scans --------------------------------------------------------------------------------------


def _scanned(keys: Array, x: Array, op: Any, init: Any, is_exclusive: bool) -> Array:
    last: dict[Any, Any] = {}
    found = []
    for key, element in zip(keys.ravel().tolist(), x.ravel(), strict=True):
        previous = last.get(key, init)
        last[key] = element if previous is None else op(previous, element)
        found.append(previous if is_exclusive else last[key])
    return np.array(found, x.dtype)


SCANS = [
    (ga.inclusive_scan_by_key, None), (ga.inclusive_scan_by_key, np.uint64(5 << 32 | 9)),
    (ga.exclusive_scan_by_key, np.uint64(7 << 32 | 3)),
]  # fmt: skip


@pytest.mark.parametrize(("scan", "init"), SCANS)
@pytest.mark.parametrize(("first", "last"), [(0, 9), (7, 7), (-300, 70), (5, 1 << 30)])
def test_scans_in_order(backend: Backend, scan: Any, init: Any, first: int, last: int) -> None:
    keys, x = _keys(first, last, n=3011), affine(3011)
    want = _scanned(keys, x, compose, init, scan is ga.exclusive_scan_by_key)
    given = backend.to_device(keys), backend.to_device(x)
    for _ in range(2):
        assert_same(backend.to_host(scan(*given, init, compose)), want)
    out = backend.to_device(np.full(2 * 3011, 77, x.dtype))
    assert scan(*given, init, compose, out=out[::2]) is not None
    assert_same(backend.to_host(out)[::2], want)
    assert_same(backend.to_host(out)[1::2], np.full(3011, 77, x.dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_scans_by_every_key(backend: Backend, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    for first in {int(bounds.min), max(int(bounds.min), -5), int(bounds.max) - 100}:
        keys, x = _keys(first, first + 100, dtype, 1500), affine(1500)
        got = ga.inclusive_scan_by_key(backend.to_device(keys), backend.to_device(x), None, compose)
        assert_same(backend.to_host(got), _scanned(keys, x, compose, None, False))


def test_scans_of_layouts(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, x = _keys(-5, 40, np.int64, 1200), affine(1200)
    layouts = [lambda a: a[::2], lambda a: a[::-1], lambda a: a.reshape(40, 30).T]
    for layout in layouts:
        got = ga.inclusive_scan_by_key(
            layout(backend.to_device(keys)), layout(backend.to_device(x)), None, compose
        )
        assert_same(
            backend.to_host(got),
            _scanned(layout(keys).copy(), layout(x).copy(), compose, None, False),
        )
    ones = np.broadcast_to(np.int64(1), 1200)
    for some in (keys, keys > 7, np.broadcast_to(keys[:1], 1200)):
        got = ga.exclusive_scan_by_key(some, ones)
        assert_same(got, _scanned(some, ones, lambda a, b: a + b, np.int64(0), True))
    marks = (keys % 3).astype(np.uint8)  # any byte but 0 is True
    for least in (100, 1 << 20) if backend.name == "cpu" else ():  # by a table, and by a sort
        monkeypatch.setattr(cpu, "TABLES_FROM", least)
        forget_problems()
        got = ga.exclusive_scan_by_key(marks.view(np.bool_), ones)
        assert_same(got, _scanned(marks != 0, ones, lambda a, b: a + b, np.int64(0), True))
        _check(ga.reduce_by_key(marks.view(np.bool_), ones), backend,
               np.unique(marks != 0, return_counts=True))  # fmt: skip


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_scans_of_every_element(backend: Backend, dtype: np.dtype[Any]) -> None:
    keys, x = _keys(-4, 6, n=1300), summable(1300, dtype)
    want = _scanned(keys, x, lambda a, b: np.add(a, b, dtype=dtype), None, False)
    got = ga.inclusive_scan_by_key(backend.to_device(keys), backend.to_device(x))
    assert_same(backend.to_host(got), want, zero_signs=False)


def test_scans_of_several_numbers(backend: Backend) -> None:
    keys, x = _keys(-4, 6, n=1300), np.arange(1300)
    pairs = backend.to_device(x), backend.to_device(x.astype(np.float32))
    firsts, lasts = ga.exclusive_scan_by_key(
        backend.to_device(keys), pairs, (-1, -2.0), lambda a, b: (a[0] if a[0] >= 0 else b[0], b[1])
    )
    before = [np.flatnonzero(keys[:i] == keys[i]) for i in range(1300)]
    assert_same(backend.to_host(firsts), np.array([x[i[0]] if i.size else -1 for i in before]))
    want = np.array([x[i[-1]] if i.size else -2 for i in before], np.float32)
    assert_same(backend.to_host(lasts), want)


def test_scans_that_are_prepared(backend: Backend) -> None:
    """Each call decides by the keys that it finds."""
    x, keys = backend.to_device(affine(2000)), backend.to_device(_keys(0, 9, n=2000))
    plan = ga.prepare(ga.inclusive_scan_by_key, keys, x, None, compose)
    for last in (9, 90_000, 100, 1 << 30, 0):
        now = _keys(-1, last, n=2000, seed=last)
        keys[:] = backend.to_device(now)
        want = _scanned(now, backend.to_host(x), compose, None, False)
        assert_same(backend.to_host(plan(keys, x)), want)
