"""reduce over axes: every shape of row and column, order, keepdims, empties."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    LAYOUTS,
    Backend,
    a_few,
    affine,
    assert_same,
    compose,
    fold,
    random_array,
    sampled,
    summable,
)

import gpualgo as ga

Axis = int | tuple[int, ...] | None

SHAPES: list[tuple[tuple[int, ...], Axis]] = [
    ((40_009, 3), 1),  # many short rows
    ((5003, 33), -1),
    ((2, 300_007), 1),  # few long rows
    ((1, 100_001), 1),
    ((129, 1025), 1),
    ((300_007, 2), 0),  # few long columns
    ((3, 40_009), 0),  # many short columns
    ((1025, 257), 0),
    ((31, 33), -2),
    ((4, 5, 1026), 1),  # a middle axis
    ((33, 1000, 2), 1),
    ((4, 300, 1), 1),
    ((3001, 8, 8), 1),  # few columns, many of them
    ((1025, 3, 7), 1),
    ((37, 2, 5, 30, 2), (1, 3)),
    ((1, 1, 1), 1),
    ((6, 7, 65), (0, 2)),  # tuples: around, before, behind the kept axes, in any order
    ((6, 7, 65), (2, 0)),
    ((6, 7, 65), (0, 1)),
    ((6, 7, 65), (-1, -2)),
    ((6, 7, 65), (0, 1, 2)),
    ((3, 4, 5, 6), (1, 3)),
    ((3, 4, 5, 6, 2), (0, 2, 4)),
    ((6, 7, 65), None),
    ((1000,), 0),
]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_order_along_axes(backend: Backend, shape: tuple[int, ...], axis: Axis) -> None:
    x = affine(shape)
    result = ga.reduce(backend.to_device(x), None, compose, axis=axis)
    assert_same(backend.to_host(result), fold(compose, x, axis))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((65, 130), 0), ((65, 130), 1), ((9, 65, 31), 1), ((9, 65, 31), (0, 2)),
     ((65, 3, 9), (0, 2)),  # of which the first axis may be contiguous, and goes last
     ((130, 4, 12), 1)],
    ids=str,
)  # fmt: skip
def test_layouts_along_axes(
    backend: Backend, layout: str, shape: tuple[int, ...], axis: Axis
) -> None:
    x, init = affine(shape), int(affine(1, seed=3)[0])
    result = ga.reduce(backend.arrange(layout, x), init, compose, axis=axis)
    assert_same(backend.to_host(result), fold(compose, x, axis, init))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_every_dtype_along_axes(backend: Backend, dtype: np.dtype[Any], axis: int) -> None:
    x = summable((67, 130), dtype)
    result = ga.reduce(backend.to_device(x), axis=axis)
    assert_same(backend.to_host(result), np.add.reduce(x, axis=axis, dtype=dtype))


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), None, ()])
def test_keepdims_and_init(backend: Backend, axis: Axis) -> None:
    x = affine((5, 70, 6))
    init = int(affine(1, seed=3)[0])
    want = compose(np.uint64(init), x) if axis == () else fold(compose, x, axis, init)
    shape = tuple(
        1 if axis is None or a in (axis if isinstance(axis, tuple) else (axis,)) else n
        for a, n in enumerate(x.shape)
    )
    for keepdims in (False, True):
        result = ga.reduce(backend.to_device(x), init, compose, axis=axis, keepdims=keepdims)
        assert_same(backend.to_host(result), want.reshape(shape) if keepdims else want)


def test_no_axis_leaves_every_element(backend: Backend) -> None:
    x = random_array((5, 6), np.dtype("int16"))
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.reduce(device, axis=())), x)
    assert_same(
        backend.to_host(ga.reduce(device, None, max, axis=(), dtype="int32")), x.astype("i4")
    )


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((0, 5), 0), ((5, 0), 1), ((3, 0, 4), 1), ((3, 0, 4), (0, 1)), ((0, 0), None), ((2, 0), None)],
)
def test_empty_rows(backend: Backend, shape: tuple[int, ...], axis: Axis) -> None:
    x = np.empty(shape, np.float32)
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.reduce(device, axis=axis)), np.add.reduce(x, axis=axis))
    product = ga.reduce(device, 2.5, operator.mul, axis=axis, keepdims=True)
    want = np.multiply.reduce(x, axis=axis, keepdims=True, initial=2.5)
    assert_same(backend.to_host(product), np.asarray(want, np.float32))
    with pytest.raises(ValueError, match=r"reduce.*init"):
        ga.reduce(device, None, max, axis=axis)


@pytest.mark.parametrize(
    ("shape", "axis"), [((0, 5), 1), ((5, 0), 0), ((3, 0, 4), (0, 2)), ((0,), ())]
)
def test_no_rows_need_no_identity(backend: Backend, shape: tuple[int, ...], axis: Axis) -> None:
    x = np.empty(shape, np.float32)
    result = ga.reduce(backend.to_device(x), None, lambda a, b: a, axis=axis)
    assert_same(backend.to_host(result), np.add.reduce(x, axis=axis))


def test_many_rows_far_apart(backend: Backend) -> None:
    """Rows beyond 2^31 bytes apart, and more rows than a grid's second axis can hold."""
    x = summable((70_000, 2, 3), np.dtype("int8"))
    result = ga.reduce(backend.to_device(x), axis=(0, 2))
    assert_same(backend.to_host(result), np.add.reduce(x, axis=(0, 2), dtype="int8"))
    result = ga.reduce(backend.to_device(x), axis=1)
    assert_same(backend.to_host(result), np.add.reduce(x, axis=1, dtype="int8"))
    if backend.name == "cpu":
        base = np.zeros(2**32 + 8, np.int8)  # pages never touched take no memory
        far = np.lib.stride_tricks.as_strided(base, (3, 4), (2**31, 2))
        far[...] = np.arange(12, dtype=np.int8).reshape(3, 4)
        for axis in a_few((0, 1)):
            assert_same(ga.reduce(far, axis=axis), np.add.reduce(far, axis=axis, dtype="int8"))
