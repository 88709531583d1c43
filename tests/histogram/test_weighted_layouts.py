"""histogram with weights: axes, layouts, tables, rows; neither order nor threads matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from exact_sums import by_loop, some_weights, weighted
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
        assert_same(got[index], by_loop(flat, one[2], 6).reshape(3, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_layouts(backend: Backend, guarded: Any, layout: str, axis: int | None) -> None:
    x, weights = random_array((33, 40), np.dtype("f4")), random_array((33, 40), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 5, (-9, 9), axis=axis)
    out = guarded(want.shape, "float64", layout)
    for first, second in ((layout, layout), (layout, "contiguous"), ("contiguous", layout)):
        given = backend.arrange(first, x), backend.arrange(second, weights)
        ga.histogram(given[0], 5, (-9, 9), weights=given[1], axis=axis, out=out)
        assert_same(backend.to_host(out), want)


TABLES = {"replicas": 3, "one": 3000, "global": 40_000}


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
        assert_same(got[i : i + 1], by_loop(np.where(x == i, 0, -1), weights, 1))


def test_many_rows(backend: Backend) -> None:
    x = random_array((900, 7), np.dtype("i1"))
    weights = random_array((900, 7), np.dtype("f8"), 1)
    want = weighted(backend, x, weights, 4, (-128, 128), axis=1)
    for row in (0, 450, 899):
        places = (x[row].astype(int) + 128) // 64
        assert_same(want[row], by_loop(places, weights[row], 4))


@pytest.mark.parametrize("is_first_zero", [False, True])
@pytest.mark.parametrize(("dtype", "power"), [("float32", 45), ("float64", 300), ("complex64", 45)])
def test_bins_whose_weights_lie_far_apart(
    backend: Backend, dtype: str, power: int, is_first_zero: bool
) -> None:
    """On a GPU a block has a window of digits for all bins: others' are beside it."""
    size = scaled(30_000, emulated=6000)
    x = np.random.default_rng(8).random(size) * 5
    scale = np.exp2(power * (np.floor(x) - 2.0)).astype(np.dtype(dtype).type(0).real.dtype)
    weights = (some_weights(size, np.dtype(dtype), 3) * scale).astype(dtype)
    if is_first_zero:
        weights[: size // 2] = 0
    got = weighted(backend, x, weights, 5, (0, 5))
    assert_same(got, by_loop(x.astype(int), weights, 5))


def test_order_does_not_matter(backend: Backend) -> None:
    rng = np.random.default_rng(9)
    x, weights = rng.random(5000), some_weights(5000, np.dtype("float64"), 300)
    want = weighted(backend, x, weights, 9, (0, 1))
    for _ in range(3):
        order = rng.permutation(5000)
        assert_same(weighted(backend, x[order], weights[order], 9, (0, 1)), want)


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


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_carries_between_many_threads(
    dtype: str, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digits are carried on before their words are full: here as if those were narrow."""
    from gpualgo._algorithms.histogram import cpu_joint
    from gpualgo._algorithms.histogram.problem import Histogram

    rng = np.random.default_rng(4)
    spread = {"float16": 4, "float32": 40, "float64": 500}[dtype]
    weights = sign * np.abs(some_weights(200_000, np.dtype(dtype), spread))
    if dtype == "float16":
        weights = weights % np.float16(0.25)
    x = rng.random(200_000)
    want = ga.histogram(x, 3, (0, 1), weights=weights)
    rows = ga.histogram(x.reshape(4, -1), 3, (0, 1), weights=weights.reshape(4, -1), axis=1)
    places = (x * 3).astype(int)
    exact = [math.fsum(weights[places == i].astype(float)) for i in range(3)]
    assert_same(want, np.array(exact).astype(dtype))
    monkeypatch.setattr(cpu_joint, "MANY", 1 << 15)
    Histogram.__init_subclass__()  # forgets plans
    assert_same(ga.histogram(x, 3, (0, 1), weights=weights), want)
    again = ga.histogram(x.reshape(4, -1), 3, (0, 1), weights=weights.reshape(4, -1), axis=1)
    assert_same(again, rows)
    Histogram.__init_subclass__()


def test_tables_of_which_little_is_touched() -> None:
    """A thread's sums of 2^22 bins would take 2.3 GB; weights reach three words of each."""
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
