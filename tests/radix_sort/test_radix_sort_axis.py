"""radix_sort and argsort of rows along an axis: lengths, layouts, flattening, outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import FLOATS, LAYOUTS, REAL, Array, Backend, a_few, random_array
from test_radix_sort import assert_bits, special_floats, stable_order

import gpualgo as ga
from gpualgo._base import threads

FLOAT32 = FLOATS[2]
Axis = int | None


def check_rows(
    backend: Backend, device: Array, keys: np.ndarray[Any, Any], axis: Axis, **options: Any
) -> None:
    """Sort keys alone, keys with values, and argsort: each against NumPy's stable order."""
    values = np.arange(keys.size, dtype=np.uint32).reshape(keys.shape)
    rows = keys if axis is not None else keys.reshape(-1)
    along = -1 if axis is None else axis
    order = stable_order(rows, options.get("descending", False), along)
    want = np.take_along_axis(rows, order, along)
    assert_bits(backend.to_host(ga.radix_sort(device, axis=axis, **options)), want)
    got, moved = ga.radix_sort(device, backend.to_device(values), axis=axis, **options)
    assert_bits(backend.to_host(got), want)
    values = np.take_along_axis(values.reshape(rows.shape), order, along)
    assert_bits(backend.to_host(moved), values)
    indices = backend.to_host(ga.argsort(device, axis=axis, **options))
    assert_bits(indices, order.astype(np.int64))


@pytest.mark.parametrize("length", [*range(1, 71), 96, 127, 128, 129, 200, 255, 256, 257])
def test_rows_of_every_short_length(backend: Backend, length: int) -> None:
    keys = special_floats(FLOAT32, 130 * length).reshape(130, length)
    check_rows(backend, backend.to_device(keys), keys, 1)


ROWS = [
    ((50, 127), 1),
    ((50, 128), 1),
    ((50, 129), 1),
    ((30, 255), 1),
    ((30, 257), 1),
    ((20, 1000), 1),
    ((9, 1024), 1),
    ((9, 1025), 1),
    ((7, 5000), 1),
    ((3, 20_000), 1),
    ((2, 150_001), 1),
    ((1, 600_001), 1),
    ((70_000, 3), 1),
    ((20_000, 4), 0),
    ((600_001, 2), 0),
    ((1000, 33), 0),
    ((40, 50, 9), 0),
    ((40, 50, 9), 1),
    ((6, 2000, 5), 1),
    ((6, 2000, 5), -2),
    ((5, 4, 3, 70), 2),
    ((4, 1, 6), 1),
    ((7, 8, 9), None),
    ((300, 700), None),
]


@pytest.mark.parametrize(("shape", "axis"), ROWS, ids=str)
def test_rows(backend: Backend, shape: tuple[int, ...], axis: Axis) -> None:
    keys = random_array(shape, FLOAT32)
    device = backend.to_device(keys)
    check_rows(backend, device, keys, axis)
    check_rows(backend, device, keys, axis, descending=True)


@pytest.mark.parametrize(
    "shape", [(300, 50), (40, 1000), (5, 9000), (33, 70), (50, 7), (70, 256)], ids=str
)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_dtype_in_rows(
    backend: Backend, dtype: np.dtype[Any], shape: tuple[int, int]
) -> None:
    keys = random_array(shape, dtype)
    device = backend.to_device(keys)
    check_rows(backend, device, keys, 1)
    check_rows(backend, device, keys, 0, descending=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_long_strided_rows(backend: Backend, layout: str) -> None:
    keys = random_array((2, 140_000), FLOAT32)
    check_rows(backend, backend.arrange(layout, keys), keys, 1)
    column = random_array((140_000, 2), np.dtype("float64"))
    check_rows(backend, backend.arrange(layout, column), column, 0, descending=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(60, 130), (60, 100), (11, 4000), (2, 140_000)], ids=str)
def test_in_place(backend: Backend, layout: str, shape: tuple[int, int]) -> None:
    keys, values = random_array(shape, FLOAT32), random_array(shape, np.dtype("int64"))
    for axis in a_few((0, 1)):
        order = stable_order(keys, axis=axis)
        out = (backend.arrange(layout, keys), backend.arrange(layout, values))
        assert ga.radix_sort(*out, axis=axis, out=out) is out
        assert_bits(backend.to_host(out[0]), np.take_along_axis(keys, order, axis))
        assert_bits(backend.to_host(out[1]), np.take_along_axis(values, order, axis))
        alone = backend.arrange(layout, keys)
        ga.radix_sort(alone, axis=axis, out=alone)
        assert_bits(backend.to_host(alone), np.take_along_axis(keys, order, axis))


@pytest.mark.parametrize("end_bit", [8, 20, 30, 64])
def test_long_rows_in_place_on_many_cores(end_bit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cores sort one row, in an odd number of passes or in an even one."""
    monkeypatch.setattr(threads, "num_threads", lambda: 8)
    keys = np.random.default_rng(1).integers(0, 1 << 64, (2, 140_000), np.uint64)
    order = np.argsort(keys & np.uint64((1 << end_bit) - 1), axis=1, kind="stable")
    with ga.default_device("cpu"):
        alone = keys.copy()
        ga.radix_sort(alone, end_bit=end_bit, out=alone)
    assert_bits(alone, np.take_along_axis(keys, order, 1))


def test_flattened(backend: Backend, guarded: Any) -> None:
    keys = random_array((30, 40), FLOAT32)
    want = np.sort(keys, axis=None)
    for layout in LAYOUTS:
        device = backend.arrange(layout, keys)
        out = guarded((1200,), "float32", "step")
        assert ga.radix_sort(device, axis=None, out=out) is out
        assert_bits(backend.to_host(out), want)
    whole = backend.to_device(keys)
    flat = whole.reshape(-1)
    assert ga.radix_sort(whole, axis=None, out=flat) is flat  # the same memory: in place
    assert_bits(backend.to_host(flat), want)
    scalar = backend.to_device(np.array(3.5))
    assert_bits(backend.to_host(ga.radix_sort(scalar, axis=None)), np.array([3.5]))
    assert_bits(backend.to_host(ga.argsort(scalar, axis=None)), np.array([0]))


def test_many_rows_far_apart(backend: Backend) -> None:
    """More rows than a grid's second axis can hold; rows far beyond each other."""
    keys = random_array((70_000, 2, 3), np.dtype("int8"))
    for axis in a_few((1, 2)):
        check_rows(backend, backend.to_device(keys), keys, axis)
    if backend.name == "cpu":
        base = np.zeros(2**32 + 8, np.int8)  # pages never touched take no memory
        far = np.lib.stride_tricks.as_strided(base, (3, 4), (2**31, 2))
        far[...] = np.array([3, 1, 2, 0], np.int8)
        assert_bits(ga.radix_sort(far), np.sort(far))
        ga.radix_sort(far, out=far)
        assert far.tolist() == [[0, 1, 2, 3]] * 3
