"""histogram of tuples: samples of several dimensions, against np.histogramdd and a Python loop."""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import (
    BFLOAT16,
    LAYOUTS,
    REAL,
    Backend,
    assert_same,
    is_emulated,
    random_array,
    sampled,
    scaled,
)

import gpualgo as ga

SIZES = (0, 1, 2, 31, 33, 1023, 1024, 1025, 4095, 4097, scaled(100_003, emulated=9001))


class Point(NamedTuple):
    """Samples by name."""

    x: Any
    y: Any


def exactly(x: tuple[Any, ...], edges: list[Any]) -> np.ndarray[Any, Any]:
    """Count as the definition says, comparing Python's numbers, which are never rounded."""
    counts = np.zeros([len(one) - 1 for one in edges], np.int64)
    wide = [np.asarray(a, "f8") if np.asarray(a).dtype == BFLOAT16 else np.asarray(a) for a in x]
    for sample in zip(*(a.ravel().tolist() for a in np.broadcast_arrays(*wide)), strict=True):
        place = []
        for value, limits in zip(sample, edges, strict=True):
            if not limits[0] <= value <= limits[-1]:
                break
            place.append(min(bisect.bisect_right(limits, value), len(limits) - 1) - 1)
        else:
            counts[tuple(place)] += 1
    return counts


def counted(backend: Backend, x: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
    given = tuple(backend.to_device(np.asarray(a)) for a in x)
    return backend.to_host(ga.histogram(given, *args, **kwargs))


@pytest.mark.parametrize("size", SIZES)
def test_every_size(backend: Backend, size: int) -> None:
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=size), rng.normal(size=size).astype(np.float32)
    want = np.histogramdd((x, y), (5, 7), ((-1, 1), (-2, 1)))[0].astype(np.int64)
    assert_same(counted(backend, (x, y), (5, 7), ((-1, 1), (-2, 1))), want)


@pytest.mark.parametrize("dtype", sampled(REAL), ids=str)
def test_every_dtype(backend: Backend, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    x = random_array(2003, dtype)
    x[::3] = (np.arange(0, 2003, 3) % 16).astype(dtype)
    y = random_array(2003, np.dtype("float32"), 1)
    first = np.linspace(-20, 20, 12).tolist()
    second = [-9.0, -1.0, 0.25, 8.0]
    want = exactly((x, y), [first, second])
    wide = np.float64(-20), np.float64(20)  # every dtype has float64 edges then
    assert_same(counted(backend, (x, y), (11, second), (wide, None)), want)
    assert_same(counted(backend, (y, x), (second, first)), want.T)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", [*itertools.product(REAL, REAL)], ids=str)
def test_every_pair_of_dtypes(backend: Backend, pair: Any) -> None:
    x, y = random_array(301, pair[0]), random_array(301, pair[1], 1)
    edges = [[-8.0, 0.0, 1.0, 9.0, 1e9], [-1e30, -100.0, 0.5, 1.0, 77.0]]
    assert_same(counted(backend, (x, y), tuple(edges)), exactly((x, y), edges))


@pytest.mark.parametrize("dims", range(1, 9))
def test_every_number_of_dimensions(backend: Backend, dims: int) -> None:
    x = tuple(random_array(1501, np.dtype("float32" if i % 2 else "int8"), i) for i in range(dims))
    bins = tuple([-60, 0, 3, 60] if i % 2 == 0 else 3 for i in range(dims))
    ends = tuple(None if i % 2 == 0 else (-12, 12) for i in range(dims))
    edges = [[-60, 0, 3, 60] if i % 2 == 0 else [-12, -4, 4, 12] for i in range(dims)]
    assert_same(counted(backend, x, bins, ends), exactly(x, edges))


def test_own_ranges_and_one_number_for_all(backend: Backend) -> None:
    x, y = random_array(999, np.dtype("float64")), random_array(999, np.dtype("float64"), 1)
    want = np.histogramdd((x, y), 6)[0].astype(np.int64)
    assert_same(counted(backend, (x, y), 6), want)
    assert_same(counted(backend, (x, y), np.int32(6), (None, None)), want)
    want = np.histogramdd((x, y), 6, (None, (-1, 2)))[0].astype(np.int64)
    assert_same(counted(backend, (x, y), 6, [None, (-1, 2)]), want)


def test_edges_belong_to_the_bins_that_begin_there(backend: Backend) -> None:
    x = np.array([0.0, 1.0, 1.0, 2.0, 2.0, np.nan, 1.0, -1.0, np.inf])
    y = np.array([0, 0, 5, 10, 11, 5, 10, 5, 5])
    want = np.array([[1, 0], [1, 3]])
    assert_same(counted(backend, (x, y), (2, [0, 5, 10]), ((0, 2), None)), want)


def test_integers_that_no_float_holds(backend: Backend) -> None:
    top = 2**63 - 1
    x = np.array([top, top - 1, top - 700])
    edges = np.array([top - 701, top - 1, top])
    want = np.array([[1, 0], [0, 2]])
    assert_same(counted(backend, (x, x), (edges, edges)), want)


TABLES = {
    "small": (8, 9),
    "replicas of few": (200, 20),
    "16 bits": (250, 300),
    "global": (900, 500),
}


@pytest.mark.parametrize("bins", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("is_skewed", [False, True], ids=["spread", "in one bin"])
def test_every_table(backend: Backend, bins: tuple[int, int], is_skewed: bool) -> None:
    rng = np.random.default_rng(3)
    size = scaled(200_001, emulated=20_001)
    x, y = (rng.random(size) for _ in range(2))
    if is_skewed:
        x[: size // 2], y[: size // 2] = 0.3, 0.3
    ends = ((0, 1), (0.25, 0.75))
    want = np.histogramdd((x, y), bins, ends)[0].astype(np.int64)
    assert_same(counted(backend, (x, y), bins, ends), want)


@pytest.mark.parametrize("dtype", ["int16", "uint32", "uint64", "int32"])
def test_counters_and_outputs(backend: Backend, guarded: Any, dtype: str) -> None:
    x, y = random_array((9, 500), np.dtype("f4")), random_array((9, 500), np.dtype("f4"), 1)
    given = (backend.to_device(x), backend.to_device(y))
    bins, ends = (40, 30), ((-9, 9), (-9, 9))
    want = counted(backend, (x, y), bins, ends, axis=1)
    for layout in LAYOUTS:
        out = guarded((9, 40, 30), dtype, layout)
        assert ga.histogram(given, bins, ends, axis=1, out=out) is out
        assert_same(backend.to_host(out), want.astype(dtype))
    got = ga.histogram(given, bins, ends, dtype=dtype)
    assert_same(backend.to_host(got), want.sum(0).astype(dtype))


def test_namedtuples_and_structured_arrays(backend: Backend) -> None:
    x, y = random_array(777, np.dtype("f4")), random_array(777, np.dtype("i2"), 1)
    bins, ends = (4, 5), ((-9, 9), (-(2**15), 2**15))
    want = counted(backend, (x, y), bins, ends)
    point = Point(backend.to_device(x), backend.to_device(y))
    assert_same(backend.to_host(ga.histogram(point, bins, ends)), want)
    fields = np.zeros(777, [("y", "i2"), ("x", "f4")])
    fields["x"], fields["y"] = x, y
    assert_same(ga.histogram(fields, bins[::-1], ends[::-1]), want.T)
    aligned = np.zeros(777, np.dtype([("y", "i2"), ("x", "f4")], align=True))
    aligned["x"], aligned["y"] = x, y
    assert_same(ga.histogram(aligned, bins[::-1], ends[::-1]), want.T)


def test_numbers_beside_host_arrays() -> None:
    x = np.array([0.5, 1.5, 2.5])
    assert_same(ga.histogram((x, 1), (3, 2), ((0, 3), (0, 2))), np.array([[0, 1]] * 3))


@pytest.mark.exhaustive
def test_more_samples_than_32_bits_number(backend: Backend) -> None:
    """They take little memory, and half a minute on two cores."""
    if is_emulated:
        pytest.skip("an element takes ten thousand times as long on the emulated GPU")
    count = (1 << 31) + 5
    x = backend.xp.broadcast_to(backend.to_device(np.array([[0.5], [1.5]])), (2, count))
    y = backend.to_device(np.array([7]))
    got = ga.histogram((x, y), (2, 1), ((0, 2), (0, 9)))
    assert_same(backend.to_host(got), np.array([[count]] * 2))
    for weight in (np.float32(0.1), -0.1):
        got = ga.histogram((x[:1], y), (2, 1), ((0, 2), (0, 9)), weights=weight)
        exact = Fraction(float(weight)) * count
        want = np.array([[float(exact)], [0]]).astype(got.dtype)
        assert_same(backend.to_host(got), want)
