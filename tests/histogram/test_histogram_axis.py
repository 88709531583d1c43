"""histogram over axes: rows of every shape, dtypes, many bins, counters, random layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import support
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import FLOATS, INTEGERS, REAL, Backend, assert_same, random_array

import gpualgo as ga

Axis = int | tuple[int, ...] | None


def by_rows(
    x: np.ndarray[Any, Any], bins: Any, ends: Any = None, axis: Axis = None
) -> np.ndarray[Any, Any]:
    """Count each row with np.histogram."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    counted = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in counted]
    shape = [x.shape[a] for a in kept]
    rows = x.transpose(kept + counted).reshape(int(np.prod(shape)), -1)
    rows = rows.astype(np.float64) if x.dtype.itemsize == 2 or x.dtype.kind == "b" else rows
    number = bins if isinstance(bins, int) else len(bins) - 1
    counts = [np.histogram(row, bins, ends)[0] for row in rows]
    return np.array(counts, np.int64).reshape(*shape, number)


SHAPES: list[tuple[tuple[int, ...], Axis]] = [
    ((37, 53, 3), (0, 1)),  # the channels of an image
    ((37, 53, 4), (0, 1)),
    ((300, 400, 3), (0, 1)),
    ((3, 300, 400), (1, 2)),  # channels as planes
    ((3, 37, 53), (-1, -2)),
    ((5003, 2), 0),
    ((2, 50_021), 1),  # few long rows
    ((50_021, 2), 0),
    ((1, 10_007), 1),
    ((10_007, 1), 0),
    ((2003, 3), 1),  # many short rows
    ((3, 2003), 0),
    ((300, 130), 0),
    ((130, 300), 1),
    ((100, 1009), 0),  # columns in groups that do not divide them
    ((6, 31, 20), 1),  # a middle axis
    ((6, 31, 20), (0, 2)),
    ((6, 31, 20), (2, 0)),
    ((3, 4, 5, 6, 2), (0, 2, 4)),
    ((6, 7, 8), None),
    ((6, 7, 8), (0, 1, 2)),
    ((1000,), 0),
    ((40,), ()),  # each element by itself
    ((4, 5), ()),
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_rows_and_columns(backend: Backend, shape: tuple[int, ...], axis: Axis, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    device = backend.to_device(x)
    for bins, ends in [(13, (10, 150)), ([-1, 0, 7, 7.5, 100, 199], None)]:
        got = backend.to_host(ga.histogram(device, bins, ends, axis=axis))
        assert_same(got, by_rows(x, bins, ends, axis))


@pytest.mark.parametrize("number", [1, 255, 256, 5000, 70_000])
@pytest.mark.parametrize(
    ("shape", "axis"), [((61, 47, 3), (0, 1)), ((3, 2803), 1), ((2803, 3), 0), ((40, 70), 0)]
)
def test_many_bins(backend: Backend, shape: tuple[int, ...], axis: Axis, number: int) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    got = ga.histogram(backend.to_device(x), number, (0.0, 1.0), axis=axis)
    assert_same(backend.to_host(got), by_rows(x, number, (0.0, 1.0), axis))


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((67, 43, 3), (0, 1)), ((5, 4099), 1)])
def test_every_dtype(
    backend: Backend, dtype: np.dtype[Any], shape: tuple[int, ...], axis: Axis
) -> None:
    x = random_array(shape, dtype)
    ends = (np.float64(-20), np.float64(90))
    got = ga.histogram(backend.to_device(x), 33, ends, axis=axis)
    assert_same(backend.to_host(got), by_rows(x, 33, ends, axis))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_range_of_all_rows_together(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = random_array((5, 301), dtype)
    ends = (np.min(x), np.max(x))
    got = backend.to_host(ga.histogram(backend.to_device(x), 1, axis=1))
    assert_same(got, np.full((5, 1), 301))
    again = backend.to_host(ga.histogram(backend.to_device(x), 9, axis=1))
    assert_same(again, backend.to_host(ga.histogram(backend.to_device(x), 9, ends, axis=1)))
    assert again.sum() == x.size


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_counters_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    most = min(int(np.iinfo(dtype).max), 5000)
    x = np.full(most, 3, np.float32)
    x[: most // 3] = 1
    want = by_rows(x, 4, (0, 4)).astype(dtype)
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.histogram(device, 4, (0, 4), dtype=dtype)), want)
    out = backend.to_device(np.zeros(4, dtype))
    assert ga.histogram(device, 4, (0, 4), out=out) is out  # its dtype is the counters'
    assert_same(backend.to_host(out), want)
    rows = backend.to_device(np.stack([x, x[::-1]]))
    got = ga.histogram(rows, 4, (0, 4), axis=1, dtype=dtype)
    assert_same(backend.to_host(got), np.stack([want, want]))


def test_many_calls_in_turn(backend: Backend) -> None:
    """Tables must start at zero each time, whatever a call before left in them."""
    arrays = [np.random.default_rng(n).integers(0, 50, 4000 + n) for n in range(6)]
    for number in (3, 300, 20_000, 3, 300):
        for x in arrays:
            got = ga.histogram(backend.to_device(x), number, (0, 49))
            assert_same(backend.to_host(got), by_rows(x, number, (0, 49)))


FUZZ = settings(
    max_examples=support.examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(data=st.data(), dtype=st.sampled_from(["uint8", "int32", "float64"]))
def test_fuzz(backend: Backend, data: st.DataObject, dtype: str) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    axis = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    steps = [data.draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    order = data.draw(st.permutations(range(len(shape))))
    number = data.draw(st.sampled_from([1, 4, 60]))
    full = [n * abs(step) for n, step in zip(shape, steps, strict=True)]
    base = np.random.default_rng(0).integers(0, 40, full).astype(dtype)
    index = tuple(slice(None, None, step) for step in steps)
    back = np.argsort(order)
    x = base.transpose(order).copy().transpose(back)[index]  # memory in another order
    device = backend.to_device(base.transpose(order).copy()).transpose(back)[index]
    got = ga.histogram(device, number, (1, 38), axis=axis)
    assert_same(backend.to_host(got), by_rows(x, number, (1, 38), axis))
