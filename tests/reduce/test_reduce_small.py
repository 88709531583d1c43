"""Few elements in a row without gaps, which a wave of blocks reduces; and what reduces more."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    Backend,
    a_few,
    affine,
    assert_same,
    compose,
    fold,
    random_array,
    special_values,
    summable,
)

import gpualgo as ga
from gpualgo._algorithms.reduce import tuning
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._algorithms.reduce.tuning import Small
from gpualgo._base import records

# One size of block at all lengths: of one warp, whose last block has several words to a thread, of
# several warps, of several vectors to a thread; and what reduces more elements, given few.
WAYS = {
    "warps": {1 << 30: Small(32, 1, 0)},
    "vectors": {1 << 30: Small(64, 4, 100)},
    "neighbours": {1 << 30: Small(64, 8, 100)},
    "threads": {1 << 30: Small(256, 2, 300)},
    "beyond": {},
}
LENGTHS = (1, 2, 3, 4, 5, 127, 128, 129, 1023, 2048, 2051, 4096, 9001)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reduce in one way, and let no plan outlive the test."""
    cut = tuning.small_tiling
    monkeypatch.setattr(tuning, "SMALL_POLICIES", WAYS[request.param])
    monkeypatch.setattr(tuning, "MANY_LOADS_BYTES", 1)
    found: list[Any] = []

    def noted(num_items: int, source: records.Element) -> Any:
        found.append((num_items >= tuning.row_items(source), cut(num_items, source)))
        return found[-1][1]

    monkeypatch.setattr(tuning, "small_tiling", noted)
    Reduction.problems.clear()
    yield
    Reduction.problems.clear()
    assert found
    for has_vectors, each in found:
        assert (each is None) == (request.param == "beyond" or not has_vectors)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", LENGTHS)
def test_order(cuda: Backend, n: int) -> None:
    """Twice: the first call leaves nothing behind."""
    x = affine(n)
    device = cuda.to_device(x)
    for _ in range(2):
        assert_same(cuda.to_host(ga.reduce(device, None, compose)), fold(compose, x))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(cuda: Backend, dtype: np.dtype[Any]) -> None:
    for n in (17, 2051):
        x = random_array(n, dtype)
        x[0], x[-1] = special_values(dtype)[-1], special_values(dtype)[1]
        device = cuda.to_device(x)
        assert_same(cuda.to_host(ga.reduce(device, None, lambda a, b: a)), x[0, ...])
        assert_same(cuda.to_host(ga.reduce(device, None, lambda a, b: b)), x[-1, ...])
    x = summable(255, dtype)
    assert_same(cuda.to_host(ga.reduce(cuda.to_device(x))), np.add.reduce(x, dtype=dtype))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_every_place(cuda: Backend, dtype: str) -> None:
    """Lengths and starts that are no multiples of a vector."""
    x = (np.arange(600) * 7 % 11 - 5).astype(dtype)
    whole = cuda.to_device(x)
    for start in range(16 // x.itemsize + 1):
        for n in (1, 2, 15, 16, 17, 31, 580):
            part = x[start : start + n]
            got = ga.reduce(whole[start : start + n])
            assert cuda.to_host(got) == part.sum(dtype=dtype)
            last = ga.reduce(whole[start : start + n], None, lambda a, b: b)
            assert cuda.to_host(last) == part[-1]


@pytest.mark.usefixtures("way")
def test_bits_do_not_depend_on_the_place(cuda: Backend) -> None:
    x = np.random.default_rng(0).standard_normal(9002).astype(np.float32)
    whole = cuda.to_device(x)
    for n in (1000, 4097, 9001):
        for op in (operator.add, lambda a, b: a + b):
            moved = cuda.to_host(ga.reduce(whole[1 : n + 1], None, op))
            for _ in range(3):
                again = cuda.to_host(ga.reduce(cuda.to_device(x[1 : n + 1]), None, op))
                assert again.tobytes() == moved.tobytes()
            apart = cuda.arrange("step", x[1 : n + 1])
            assert cuda.to_host(ga.reduce(apart, None, op)).tobytes() == moved.tobytes()


@pytest.mark.usefixtures("way")
def test_start(cuda: Backend) -> None:
    x = affine(2051)
    start = np.complex64(3 - 2j).astype(x.dtype) if x.dtype.kind == "c" else x.dtype.type(3)
    got = cuda.to_host(ga.reduce(cuda.to_device(x), start, compose))
    assert_same(got, fold(compose, np.concatenate([[start], x]).astype(x.dtype)))


@pytest.mark.usefixtures("way")
def test_numbers(cuda: Backend) -> None:
    """NaN goes through, and so does a zero's sign: no padding takes part."""
    x = np.full(4099, -0.0, np.float32)
    assert_same(cuda.to_host(ga.reduce(cuda.to_device(x))), np.float32(-0.0))
    for place in (0, 2050, 4097, 4098):
        y = -np.arange(1, 4100, dtype=np.float32)
        assert cuda.to_host(ga.reduce(cuda.to_device(y), None, max)) == -1
        y[place] = np.nan
        assert np.isnan(cuda.to_host(ga.reduce(cuda.to_device(y), None, max)))


@pytest.mark.usefixtures("way")
def test_another_accumulator(cuda: Backend) -> None:
    x = np.arange(-50, 5001).astype(np.int8)
    for dtype in a_few(("int64", "float32")):
        got = cuda.to_host(ga.reduce(cuda.to_device(x), dtype=dtype))
        assert_same(got, x.sum(dtype=dtype))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [1, 33, 2049, 5001])
def test_tuples(cuda: Backend, n: int) -> None:
    """Elements of several arrays, of one number for all, and with gaps between their numbers."""
    a = (np.arange(n) % 11 - 5).astype(np.int8)
    b = np.arange(n, dtype=np.float64)
    one, given = cuda.to_device(np.ones(1, np.float32)), tuple(map(cuda.to_device, (a, b)))
    found = ga.reduce((*given, one), None, lambda p, q: (p[0] + q[0], q[1], p[2] + q[2]))
    got = list(map(cuda.to_host, found))
    assert got == [a.sum(dtype=np.int8), b[-1], n]


@pytest.mark.usefixtures("way")
def test_storage_is_left_as_it_was(cuda: Backend) -> None:
    """Others use the same words."""
    x = np.arange(9001, dtype=np.int64)
    device = cuda.to_device(x)
    for _ in range(2):
        assert int(cuda.to_host(ga.reduce(device))) == x.sum()
        assert int(cuda.to_host(ga.reduce(device, None, max))) == 9000
        np.testing.assert_array_equal(cuda.to_host(ga.inclusive_scan(device)), np.cumsum(x))


@pytest.mark.usefixtures("way")
def test_plans_and_graphs(cuda: Backend) -> None:
    """Storage that is given may hold anything; a graph leaves its words empty."""
    x = cuda.to_device(affine(9001))
    plan = ga.prepare(ga.reduce, x, None, compose)
    storage = cuda.xp.zeros((plan.temp_storage_bytes,), np.uint8)
    assert storage.size > 0
    with ga.graph() as graph:
        recorded = ga.reduce(x, None, compose)
    for seed in (1, 2):
        values = affine(9001, seed)
        x[...] = cuda.to_device(values)
        storage.view(np.uint64)[...] = 1 << 32  # words that seem to be there
        want = fold(compose, values)
        for _ in range(2):
            graph.launch()
            assert_same(cuda.to_host(plan(x, temp_storage=storage)), want)
            assert_same(cuda.to_host(recorded), want)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("gap", [0, 4])
def test_bits_of_records(cuda: Backend, gap: int) -> None:
    """Whether numbers lie together, with gaps or not, wherever they begin, or apart."""
    n, size = 3001, 12 + gap
    rng = np.random.default_rng(0)
    columns = [rng.standard_normal(n).astype(np.float32) for _ in range(3)]

    def found(given: tuple[Any, ...]) -> list[bytes]:
        sums = ga.reduce(given, None, lambda p, q: (p[0] + q[0], q[1], p[2] + q[2]))
        return [cuda.to_host(each).tobytes() for each in sums]

    want = found(tuple(map(cuda.to_device, columns)))
    assert want[1] == columns[1][-1].tobytes()
    for start in (0, 4):
        whole = np.zeros(start + n * size, np.uint8)
        places = [start, start + 4, start + size - 4]
        for place, column in zip(places, columns, strict=True):
            np.ndarray(n, np.float32, whole, place, (size,))[...] = column
        rows = cuda.to_device(whole)[start:].reshape(n, size)
        given = tuple(rows[:, p - start : p - start + 4].view(np.float32)[:, 0] for p in places)
        assert found(given) == want
