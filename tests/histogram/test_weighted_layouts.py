"""histogram with weights: axes, layouts, tables, rows; threads do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sums_of_weights import assert_sums, some_weights, weighted
from support import LAYOUTS, Backend, assert_same, random_array, run_python, scaled

import gpualgo as ga


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), ()], ids=str)
def test_axes_and_broadcasting(backend: Backend, axis: Any) -> None:
    x = random_array((6, 5, 7), np.dtype("float32"))
    y = random_array((6, 5, 7), np.dtype("int8"), 1)
    weights = random_array((5, 1), np.dtype("float64"), 2)
    bins, ends = (3, 2), ((-9, 9), (-128, 127))
    got = weighted(backend, (x, y), weights, bins, ends, axis=axis)
    rows = range(3) if axis is None else (axis,) if isinstance(axis, int) else axis
    kept = [a for a in range(3) if a not in rows]
    full = np.broadcast_to(weights, x.shape)
    a, b, w = (array.transpose(*kept, *rows) for array in (x, y, full))
    for index in np.ndindex(*(x.shape[i] for i in kept)):
        one = [np.asarray(array[index]).ravel() for array in (a, b, w)]
        with np.errstate(invalid="ignore"):
            place = [
                np.where(abs(one[0]) <= 9, np.searchsorted([-9, -3, 3], one[0], "right") - 1, -9),
                np.searchsorted([-128, -0.5], one[1], "right") - 1,
            ]
        flat = np.where(place[0] < 0, -1, place[0] * 2 + place[1])
        assert_sums(got[index].ravel(), flat, one[2])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_layouts(backend: Backend, guarded: Any, layout: str, axis: int | None) -> None:
    x, weights = random_array((33, 40), np.dtype("f4")), random_array((33, 40), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 5, (-9, 9), axis=axis)
    out = guarded(want.shape, "float64", layout)
    for first, second in ((layout, layout), (layout, "contiguous"), ("contiguous", layout)):
        given = backend.arrange(first, x), backend.arrange(second, weights)
        ga.histogram(given[0], 5, (-9, 9), weights=given[1], axis=axis, out=out)
        np.testing.assert_allclose(backend.to_host(out), want, rtol=1e-13)


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


def test_namedtuples_and_structured_arrays() -> None:
    fields = np.zeros(99, [("a", "f4"), ("b", "i2"), ("w", "f4")])
    rng = np.random.default_rng(0)
    fields["a"], fields["b"], fields["w"] = rng.random(99), rng.integers(0, 4, 99), rng.random(99)
    want = ga.histogram((fields["a"], fields["b"]), (3, 4), ((0, 1), (0, 4)), weights=fields["w"])
    got = ga.histogram(fields[["a", "b"]], (3, 4), ((0, 1), (0, 4)), weights=fields["w"])
    assert_same(got, want)
