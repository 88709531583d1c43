"""reduce over whole arrays: values, order, types, init, out. Axes are in test_reduce_axis.py."""

from __future__ import annotations

import math
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import (
    BFLOAT16,
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    REAL,
    Backend,
    affine,
    assert_same,
    compose,
    fold,
    need_memory,
    random_array,
    sampled,
    special_values,
    summable,
)

import gpualgo as ga

# Warps, blocks and every power of two that a tile may hold, each with its neighbours.
SIZES = (1, 2, 3, *(n + d for n in (32, *(1 << p for p in range(8, 18))) for d in (-1, 0, 1)))
BOOL = np.dtype("bool")


@pytest.mark.parametrize("n", [*SIZES, 100_003, 1_000_003])
def test_order_at_every_size(backend: Backend, n: int) -> None:
    x = affine(n)
    result = ga.reduce(backend.to_device(x), None, compose)
    assert_same(backend.to_host(result), fold(compose, x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5,), (70_001,), (257, 3), (3, 4097), (7, 5, 33)])
def test_order_in_every_layout(backend: Backend, layout: str, shape: tuple[int, ...]) -> None:
    x = affine(shape)
    result = ga.reduce(backend.arrange(layout, x), None, compose)
    assert_same(backend.to_host(result), fold(compose, x))


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_first_and_last_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = random_array(4099, dtype)
    x[0], x[-1] = special_values(dtype)[-1], special_values(dtype)[1]
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.reduce(device, None, lambda a, b: a)), x[0, ...])
    assert_same(backend.to_host(ga.reduce(device, None, lambda a, b: b)), x[-1, ...])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sum_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = summable(255, dtype)
    want = np.add.reduce(x, dtype=dtype)
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.reduce(device)), want)
    assert_same(backend.to_host(ga.reduce(device, None, np.add)), want)
    assert_same(backend.to_host(ga.reduce(device, None, lambda a, b: a + b)), want)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype("float64"), *COMPLEX], ids=str)
def test_product(backend: Backend, dtype: np.dtype[Any]) -> None:
    signs = random_array(999, BOOL).astype(int) * 2 - 1  # products of signs are exact
    x = random_array(999, dtype) | 1 if dtype.kind in "iu" else signs.astype(dtype)
    want = np.multiply.reduce(x, dtype=dtype)
    # A product of complex signs has a zero imaginary part, whose sign depends on the order.
    result = backend.to_host(ga.reduce(backend.to_device(x), None, operator.mul))
    assert_same(result, want, zero_signs=dtype.kind != "c")


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_min_max(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = np.concatenate([random_array(3001, dtype), special_values(dtype)])
    without_nan = x[~np.isnan(x.astype(np.float64))]
    for values in (without_nan, x):  # NaN, where there is one, wins
        device = backend.to_device(values)
        with np.errstate(invalid="ignore"):
            assert_same(backend.to_host(ga.reduce(device, None, min)), np.min(values))
            assert_same(backend.to_host(ga.reduce(device, None, np.maximum)), np.max(values))


@pytest.mark.parametrize("dtype", [np.dtype("float16"), np.dtype("float32")], ids=str)
@pytest.mark.parametrize("place", [0, 1, 500, 999])
def test_nan_is_seen_wherever_it_is(backend: Backend, dtype: np.dtype[Any], place: int) -> None:
    x = random_array(1000, dtype)
    x[place] = np.nan
    for op in (min, max, operator.add):
        assert np.isnan(backend.to_host(ga.reduce(backend.to_device(x), None, op)))


@pytest.mark.parametrize(
    "op", [np.bitwise_and, operator.or_, operator.xor], ids=["and", "or", "xor"]
)
@pytest.mark.parametrize("dtype", [BOOL, np.dtype("uint8"), np.dtype("int64")], ids=str)
def test_bitwise(backend: Backend, op: Any, dtype: np.dtype[Any]) -> None:
    ufunc = {operator.or_: np.bitwise_or, operator.xor: np.bitwise_xor}.get(op, op)
    x = random_array(9, dtype)
    assert_same(backend.to_host(ga.reduce(backend.to_device(x), None, op)), ufunc.reduce(x))


@pytest.mark.parametrize("dtype", [*FLOATS[2:], *COMPLEX], ids=str)
def test_rounding_of_a_long_sum(backend: Backend, dtype: np.dtype[Any]) -> None:
    n = 1_000_003
    x = random_array(n, dtype)
    exact = complex(math.fsum(x.real.tolist()), math.fsum(x.imag.tolist()))
    # Any order makes n - 1 roundings of relative size u = eps / 2. Their errors add like a random
    # walk: below 5 sqrt(n) u sum|x| but for a chance of 4e-6 (Higham and Mary 2019, lambda = 5).
    bound = 5 * math.sqrt(n) * np.finfo(dtype).eps / 2 * float(np.abs(x).sum(dtype=np.float64))
    for op in (operator.add, lambda a, b: a + b):
        result = complex(backend.to_host(ga.reduce(backend.to_device(x), None, op)))
        assert abs(result - exact) <= bound


def test_init_comes_first(backend: Backend) -> None:
    x, init = affine(1000), int(affine(1, seed=9)[0])
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.reduce(device, init, compose)), fold(compose, x, init=init))
    assert_same(
        backend.to_host(ga.reduce(device, init, lambda a, b: a)), np.asarray(np.uint64(init))
    )


def test_init_that_changes(backend: Backend) -> None:
    """An array that gives one start is read by each call."""
    x, init = backend.to_device(np.arange(5.0)), np.array(1.0)
    for value in (1, 20, 300):
        init[...] = value
        for _ in range(2):  # a warm call, too
            assert float(ga.reduce(x, init)) == 10 + value


def test_what_comes_back(backend: Backend) -> None:
    x = np.ones((3, 4), np.float32)
    assert type(ga.reduce(x)) is np.float32
    assert type(ga.reduce(x.astype(BFLOAT16))) is ml_dtypes.bfloat16
    assert isinstance(ga.reduce(x, keepdims=True), np.ndarray)
    assert isinstance(ga.reduce(x, axis=0), np.ndarray)
    device = ga.reduce(backend.to_device(x), keepdims=True)
    assert isinstance(device, backend.xp.ndarray)
    assert device.shape == (1, 1)


def test_beyond_32_bits(backend: Backend) -> None:
    n = 2**31 + 12_345  # without memory: every element is the same byte
    x = backend.xp.broadcast_to(backend.to_device(np.array(1, np.int8)), (n,))
    assert_same(backend.to_host(ga.reduce(x, dtype=np.int64)), np.asarray(np.int64(n)))
    far = np.zeros(2**32 + 1, np.int8)[:: 2**31]  # untouched pages take no memory either
    far[:] = 3, 5, 7
    assert_same(np.asarray(ga.reduce(far, None, lambda a, b: b)), np.asarray(np.int8(7)))


@pytest.mark.slow  # a sample has the test above
def test_elements_beyond_32_bits(backend: Backend) -> None:
    n = 2**31 + 12_345
    need_memory(backend, 2 * n)
    x = backend.xp.ones(n, np.int8)
    x[0], x[2**31], x[-1] = 3, 4, 5
    assert backend.to_host(ga.reduce(x, np.int64(0))) == n + 9
    assert backend.to_host(ga.reduce(x, None, lambda a, b: b)) == 5
    assert backend.to_host(ga.reduce(x[: 2**31 + 1], None, lambda a, b: b)) == 4
