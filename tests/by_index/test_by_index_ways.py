"""reduce_by_index: order, dtypes, layouts, plans, by tables and by sorting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
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
    sampled,
    scaled,
    summable,
)

import gpualgo as ga
from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_index.problem import ByIndex

Array = np.ndarray[Any, Any]
INDEX = ga.reduce_by_index
START = np.uint64(5 << 32 | 9)
N = scaled(30_011, emulated=3011)


def _wanted(indices: Array, x: Array, size: int, start: Any = START, op: Any = compose) -> Array:
    found = np.full(size, start, x.dtype)
    for k, element in zip(indices.ravel().tolist(), x.ravel(), strict=True):
        if 0 <= k < size:
            found[k] = op(found[k], element)
    return found


def _indices(kind: str, n: int, size: int) -> Array:
    rng = np.random.default_rng(n)
    if kind == "runs":
        return np.sort(rng.integers(0, size, n))
    if kind == "one":
        return np.full(n, size - 1)
    if kind == "in turn":
        return np.arange(n) % size
    if kind == "mostly one":
        return np.where(rng.random(n) < 0.9, 0, rng.integers(0, size, n))
    return rng.integers(0, size, n)


KINDS = ["random", "runs", "one", "in turn", "mostly one"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 32, 33, 1000])
def test_order(backend: Backend, kind: str, size: int) -> None:
    """Functions that are composed: each forgotten, doubled or exchanged would show."""
    indices, x = _indices(kind, N, size), affine(N)
    given = backend.to_device(indices), backend.to_device(x), size, START
    want = _wanted(indices, x, size)
    for _ in range(2):
        assert_same(backend.to_host(INDEX(*given, compose)), want)


@pytest.fixture
def many_shares(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cut some thousands of elements as millions are, and let no plan outlive the test."""
    monkeypatch.setattr(tuning, "SHARE_ITEMS", 64)
    monkeypatch.setattr(tuning, "ENOUGH_SHARES", 1)
    monkeypatch.setattr(tuning, "SHARE_PER_INDEX", 1)
    monkeypatch.setattr(tuning, "FEW_TABLES", 3)
    monkeypatch.setattr(tuning, "GROUP", 4)
    ByIndex.__init_subclass__()
    yield
    ByIndex.__init_subclass__()


@pytest.mark.usefixtures("many_shares")
@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_tables(backend: Backend, kind: str) -> None:
    indices, x = _indices(kind, N, 40), affine(N)
    given = backend.to_device(indices), backend.to_device(x), 40, START
    assert_same(backend.to_host(INDEX(*given, compose)), _wanted(indices, x, 40))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 2048, 2049])
def test_sizes(backend: Backend, n: int) -> None:
    """Ends of rows, of what a warp loads at once and of shares."""
    indices, x = _indices("random", n, 7), affine(n)
    given = backend.to_device(indices), backend.to_device(x)
    assert_same(backend.to_host(INDEX(*given, 7, START, compose)), _wanted(indices, x, 7))


@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last(backend: Backend, op: Any) -> None:
    indices = _indices("random", N, 50)
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    got = INDEX(
        backend.to_device(indices), backend.to_device(x), 60, None, ga.Operator(op, identity=0)
    )
    places = np.arange(N) if op(0, 1) == 1 else np.arange(N)[::-1]
    want = np.zeros(60, np.float32)
    want[indices[places]] = x[places]
    assert_same(backend.to_host(got), want)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    indices, x = _indices("random", 300, 11), summable(300, dtype)
    got = INDEX(backend.to_device(indices), backend.to_device(x), 11)
    want = _wanted(indices, x, 11, 0, lambda a, b: np.add(a, b, dtype=dtype))
    assert_same(backend.to_host(got), want, zero_signs=False)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_index(backend: Backend, dtype: np.dtype[Any]) -> None:
    indices, x = _indices("random", 500, 100).astype(dtype), affine(500)
    given = backend.to_device(indices), backend.to_device(x)
    assert_same(backend.to_host(INDEX(*given, 100, START, compose)), _wanted(indices, x, 100))


@pytest.mark.parametrize("size", [4090, 4096, 4097])
def test_tables_that_just_fit(backend: Backend, size: int) -> None:
    """And those that do not: elements are sorted first, with the same results."""
    indices, x = _indices("random", 5000, size), affine(5000)
    assert tuning.table_of(2730, x.dtype).fits
    assert not tuning.table_of(size, x.dtype).fits
    for count in (2730, size):
        part = np.minimum(indices, count - 1)
        given = backend.to_device(part), backend.to_device(x)
        got = INDEX(*given, count, START, compose)
        assert_same(backend.to_host(got), _wanted(part, x, count))


@pytest.mark.usefixtures("backend")
def test_host_arrays_of_several_tasks() -> None:
    n = 5 << 16
    indices, x = _indices("random", n, 77), affine(n)
    assert_same(INDEX(indices, x, 77, START, compose), _wanted(indices, x, 77))


@pytest.mark.parametrize("size", [20, 9000])
def test_what_reads_no_array(backend: Backend, size: int) -> None:
    """It is computed where the arrays beside it lie, by tables and before a sort."""
    places, x = _indices("random", 300, 20), np.arange(300)
    on = backend.to_device(places), backend.to_device(x)
    sums = np.bincount(places, x, size).astype(x.dtype)
    assert_same(backend.to_host(INDEX(on[0], ga.lazy.arange(300), size)), sums)
    shifted = ga.lazy.arange(300) % 7
    want = np.bincount(x % 7, x, size).astype(x.dtype)
    assert_same(backend.to_host(INDEX(shifted, on[1], size)), want)

    def op(p: Any, q: Any) -> Any:
        return p[0] + q[0], max(p[1], q[1])

    got = INDEX(on[0], (on[1], np.int64(3)), size, (0, -1), op)  # a number has no memory on a GPU
    assert_same(backend.to_host(got[0]), sums)
    is_there = np.isin(np.arange(size), places)
    assert_same(backend.to_host(got[1]), np.where(is_there, 3, -1))


@pytest.mark.usefixtures("backend")
def test_plans_look_at_host_indices() -> None:
    indices, x = np.array([0, 1, 2]), np.arange(3)
    plan = ga.prepare(INDEX, indices, x, 3)
    assert_same(plan(indices, x), x)
    with pytest.raises(ValueError, match=r"^reduce_by_index: indices hold 3, .* from 0 to 2"):
        plan(indices + 1, x)


@pytest.mark.parametrize("starts", [False, True])
def test_what_is_sorted_is_a_plan(cuda: Backend, starts: bool) -> None:
    """It is prepared, recorded and explained, and the plan serves other elements."""
    size, seeds = 5000, (1, 2)
    init = affine(size, seed=9) if starts else START
    start = cuda.to_device(init) if starts else init
    given = [(_indices("random", 500 + seed, size)[:500], affine(500, seed)) for seed in seeds]
    wanted = [_wanted(*pair, size, init) for pair in given]
    placed = [tuple(map(cuda.to_device, pair)) for pair in given]
    plan = ga.prepare(INDEX, *placed[0], size, start, compose)
    assert plan.temp_storage_bytes >= 3 * 500 * (2 + 8)
    arguments = (start,) if starts else ()
    for pair, want in zip(placed, wanted, strict=True):
        assert_same(cuda.to_host(plan(*pair, *arguments)), want)
    assert "kernels, " in str(ga.explain(INDEX, *placed[0], size, start, compose))
    indices, x = (array.copy() for array in placed[0])
    with ga.graph() as graph:
        found = INDEX(indices, x, size, start, compose)
    for pair, want in zip(placed, wanted, strict=True):
        indices[...], x[...] = pair
        graph.launch()
        assert_same(cuda.to_host(found), want)


def test_temporary_storage(cuda: Backend) -> None:
    n = 1 << 20
    x, indices = cuda.to_device(np.zeros(n, np.float32)), cuda.to_device(np.zeros(n, np.int32))
    sizes = [ga.temp_storage_bytes(INDEX, indices, x, size) for size in (16, 256, 4000)]
    assert all(a < b for a, b in pairwise(sizes))
    assert sizes[-1] < 8 * n


def test_a_graph_of_tuples(cuda: Backend) -> None:
    def op(p: Any, q: Any) -> Any:
        return p[0] + q[0], max(p[1], q[1])

    indices, x = _indices("random", 700, 9), np.arange(700)
    given = cuda.to_device(indices), (cuda.to_device(x), cuda.to_device(x * 2))
    with ga.graph() as g:
        sums, most = INDEX(*given, 9, (0, -1), op)
    given[1][0][...] = cuda.to_device(x + 1)
    g.launch()
    assert_same(cuda.to_host(sums), np.bincount(indices, x + 1, 9).astype(x.dtype))
    want = np.array([2 * x[indices == k].max() for k in range(9)])
    assert_same(cuda.to_host(most), want)
