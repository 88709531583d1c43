"""reduce_by_index: order, dtypes, layouts, plans, by tables of all results and of buckets."""

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
    ByIndex.problems.clear()
    yield
    ByIndex.problems.clear()


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


@pytest.mark.parametrize("size", [4097, 4100])
def test_tables_that_just_fit(backend: Backend, size: int) -> None:
    """And those that do not, but have buckets, with the same results."""
    indices, x = _indices("random", 5000, size), affine(5000)
    assert tuning.table_of(4096, x.dtype).fits
    assert not tuning.table_of(size, x.dtype).fits
    for count in (4096, size):
        part = np.minimum(indices, count - 1)
        given = backend.to_device(part), backend.to_device(x)
        got = INDEX(*given, count, START, compose)
        assert_same(backend.to_host(got), _wanted(part, x, count))


@pytest.fixture
def small_tables(many_shares: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few results have many buckets, of few results each, and cut buckets into shares."""
    monkeypatch.setattr(tuning, "TABLE_BYTES", 32 * 16)
    monkeypatch.setattr(tuning, "SHARE_UNIT", 32)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [33, 64, 1000, 20_000])
def test_buckets(cuda: Backend, kind: str, size: int) -> None:
    """Elements of a bucket in one share and in many, empty buckets, and one of all elements."""
    indices, x = _indices(kind, N, size), affine(N)
    assert tuning.bucket_bits(size, x.dtype)[0] == 5
    given = cuda.to_device(indices.astype(np.int32)), cuda.to_device(x), size, START
    want = _wanted(indices, x, size)
    for _ in range(2):
        assert_same(cuda.to_host(INDEX(*given, compose)), want)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("n", [1, 31, 32, 33, 63, 64, 65, 127, 129, 1025])
def test_sizes_of_buckets(cuda: Backend, n: int) -> None:
    indices, x = _indices("random", n, 70), affine(n)
    given = cuda.to_device(indices), cuda.to_device(x)
    assert_same(cuda.to_host(INDEX(*given, 70, START, compose)), _wanted(indices, x, 70))


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_indices_of_no_bucket(cuda: Backend, dtype: np.dtype[Any]) -> None:
    """They may have the digit of any bucket, or of one behind the last."""
    info = np.iinfo(dtype)
    wide = np.arange(-300, 900).repeat(2)[::-1]
    ends = [info.min, info.max, info.max - 64, info.min + 64]
    clipped = np.clip(wide, max(info.min, -300), min(info.max, 900)).astype(dtype)
    indices = np.concatenate([clipped, np.array(ends, dtype)])
    x = affine(len(indices))
    got = INDEX(cuda.to_device(indices), cuda.to_device(x), 150, START, compose)
    assert_same(cuda.to_host(got), _wanted(indices, x, 150))


@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
def test_first_and_last_of_buckets(cuda: Backend, op: Any) -> None:
    """Of pairs of which one is strided, into a strided output, from starts."""
    n, size = 5000, 9000
    indices = np.random.default_rng(1).integers(0, 3000, n, np.int32) * 3
    x = np.random.default_rng(0).integers(1, 99, (2, n)).astype(np.int16)
    given, start = cuda.to_device(x), np.full(size, -1, np.int16)
    pair = lambda a, b: (op(a[0], b[0]), op(b[1], a[1]))  # noqa: E731
    outs = cuda.to_device(np.zeros((size, 2), np.int16))
    starts = cuda.to_device(start), cuda.to_device(start)
    INDEX(
        cuda.to_device(indices), (given[0], cuda.to_device(np.ascontiguousarray(x[1:].T))[:, 0]),
        size, starts, pair, out=(outs[:, 0], outs[:, 1]),
    )  # fmt: skip
    for column, is_last, begins in ((0, op(0, 1) == 1, True), (1, op(0, 1) == 0, False)):
        want, places = start.copy(), np.arange(n) if is_last else np.arange(n)[::-1]
        want[indices[places]] = x[column][places]
        if (op(0, 1) == 0) == begins:  # the start is the first
            want = start
        assert_same(cuda.to_host(outs)[:, column].copy(), want)


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype_in_buckets(cuda: Backend, dtype: np.dtype[Any]) -> None:
    indices, x = _indices("random", 300, 5000), summable(300, dtype)
    got = INDEX(cuda.to_device(indices), cuda.to_device(x), 9000)
    want = _wanted(indices, x, 9000, 0, lambda a, b: np.add(a, b, dtype=dtype))
    assert_same(cuda.to_host(got), want, zero_signs=False)


def test_bits_of_buckets() -> None:
    """One pass of a sort while tables fit, else two or three; a warp's results are of a bucket."""
    for dtype, least in (("float32", 9), ("complex128", 9), ("V64", 5)):
        acc = np.dtype(dtype)
        for bits in range(1, 31):
            for size in {1 << bits, (1 << bits) + 1}:
                first, end = tuning.bucket_bits(size, acc)
                assert tuning.LEAST_BUCKET_BITS <= first < end
                assert size <= 1 << end
                assert tuning.table_of(1 << first, acc).fits
                if size > 1 << 9:
                    assert first >= least
                assert end - first <= 8 or not tuning.table_of(1 << end - 8, acc).fits
    assert tuning.bucket_bits(100_000, np.dtype("float32")) == (9, 17)
    assert tuning.bucket_bits(1 << 20, np.dtype("float32")) == (12, 20)
    assert tuning.bucket_bits(1 << 20, np.dtype("float64")) == (12, 20)
    assert tuning.bucket_bits(1 << 24, np.dtype("float32")) == (9, 24)


@pytest.mark.usefixtures("backend")
def test_host_arrays_of_several_tasks() -> None:
    n = 5 << 16
    indices, x = _indices("random", n, 77), affine(n)
    assert_same(INDEX(indices, x, 77, START, compose), _wanted(indices, x, 77))


@pytest.mark.parametrize("size", [20, 9000])
def test_what_reads_no_array(backend: Backend, size: int) -> None:
    """It is computed where the arrays beside it lie, of one bucket and of many."""
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
def test_buckets_are_a_plan(cuda: Backend, starts: bool) -> None:
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
