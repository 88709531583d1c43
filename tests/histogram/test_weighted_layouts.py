"""histogram with weights: tables, rows, what is converted; threads do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from sums_of_weights import assert_sums, some_weights, weighted
from support import Backend, random_array, run_python, scaled

import gpualgo as ga

TABLES = {"small": 3, "large": 3000, "sorted": 40_000}


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("bins", TABLES.values(), ids=TABLES)
def test_every_table(backend: Backend, bins: int, dtype: str) -> None:
    """Whatever the table, the sums are those of few bins of it."""
    rng = np.random.default_rng(3)
    size = scaled(300_000, emulated=20_000)
    x = (rng.random(size) ** 4 * bins).astype(np.int32)  # a few bins have many
    weights = some_weights(size, np.dtype(dtype), 40)
    got = weighted(backend, x, weights, bins, (0, bins))
    for i in (0, 1, 2, bins // 2, bins - 1):
        assert_sums(got[i : i + 1], np.where(x == i, 0, -1), weights)


def test_many_rows(backend: Backend) -> None:
    x = random_array((900, 7), np.dtype("i1"))
    weights = random_array((900, 7), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 4, (-128, 128), axis=1)
    for row in (0, 450, 899):
        places = (x[row].astype(int) + 128) // 64
        assert_sums(want[row], places, weights[row])


@pytest.mark.parametrize("dtype", ["float64", "uint8"])
@pytest.mark.parametrize("size", [1025, 70_000])
def test_weights_that_are_rounded_first_are_read_by_each_call(dtype: str, size: int) -> None:
    """Converted weights lie in memory of one call: a later call converts its own."""
    x, weights = np.arange(size) % 7, (np.arange(size) % 3).astype(dtype)
    for factor in (1, 0, 1):
        own = weights * weights.dtype.type(factor)
        got = ga.histogram(x, 7, (0, 7), weights=own[::-1], dtype=np.float16)
        want = np.bincount(x, own[::-1]).astype(np.float16)
        np.testing.assert_array_equal(got, want)
        np.full(3 * size, np.nan, np.float16)  # reuses what a call has freed


def test_threads_do_not_matter() -> None:
    code = """
import numpy as np, gpualgo as ga
rng = np.random.default_rng(0)
n = 3_000_000
x, w = rng.random(n, np.float32), rng.standard_normal(n) * np.exp2(rng.integers(-200, 200, n))
few = ga.histogram(x, 100, (0, 1), weights=w)
rows = ga.histogram(x.reshape(3, -1), 50_000, (0, 1), weights=w.reshape(3, -1), axis=1)
print(hash(few.tobytes() + rows.tobytes()), float(few.sum()))
"""
    results = {
        run_python(code, GPUALGO_NUM_THREADS=str(n), PYTHONHASHSEED="0").stdout for n in (1, 2, 5)
    }
    assert len(results) == 1
    assert results != {""}


def test_many_bins_of_few_samples() -> None:
    side = 1 << 11
    x, y = (np.random.default_rng(i).random(5000) for i in range(2))
    weights = some_weights(5000, np.dtype("float64"), 3)
    got = ga.histogram((x, y), side, ((0, 1), (0, 1)), weights=weights)
    assert got.sum() == pytest.approx(weights.sum())
    places = (x * side).astype(int), (y * side).astype(int)
    want = np.zeros((side, side))
    np.add.at(want, places, weights)
    np.testing.assert_allclose(got, want, rtol=1e-12)
