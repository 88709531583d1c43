"""transform: values against NumPy for every dtype and layout, broadcasting, out."""

from __future__ import annotations

import math
import operator
from typing import Any

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
    a_few,
    affine,
    assert_same,
    compose,
    need_memory,
    random_array,
    sampled,
    special_values,
)

import gpualgo as ga


def _with_specials(dtype: np.dtype[Any], n: int = 1000, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return n values in which every special value meets every other, shifted by `seed`."""
    special = special_values(dtype)
    pairs = np.repeat(special, len(special)) if seed else np.tile(special, len(special))
    return np.concatenate([pairs, random_array(n, dtype, seed)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unary_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = _with_specials(dtype)
    assert_same(backend.to_host(ga.transform(lambda a: a, backend.to_device(x))), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sum_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = _with_specials(dtype), _with_specials(dtype, seed=1)
    with np.errstate(all="ignore"):
        want = x + y  # rounded once, so to the bit
    result = ga.transform(lambda a, b: a + b, backend.to_device(x), backend.to_device(y))
    assert_same(backend.to_host(result), want)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_arithmetic_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    # One operator for all, since each costs a compilation; every step rounds to the dtype.
    x, y = _with_specials(dtype), _with_specials(dtype, seed=1)
    with np.errstate(all="ignore"):
        want = (x * y - x) * (y - x)
    result = ga.transform(
        lambda a, b: (a * b - a) * (b - a), backend.to_device(x), backend.to_device(y)
    )
    got = backend.to_host(result)
    if dtype.kind != "f" or dtype.itemsize == 2 or backend.name == "cpu":
        assert_same(got, want)
        return
    # A GPU contracts a * b - a into one rounding, so that after cancellation NumPy's two differ.
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        bound = (info.eps * (abs(x * y) + abs(x)) + info.smallest_subnormal) * 2 * abs(y - x)
        close = abs(got - want) <= bound
    assert got.dtype == dtype
    assert np.all(close | ~np.isfinite(want) | ~np.isfinite(bound))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_products(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = random_array(1000, dtype), random_array(1000, dtype, seed=1)
    device = [backend.to_device(x), backend.to_device(y)]
    eps = np.finfo(dtype).eps  # either part: two products and a sum, each rounded
    product = backend.to_host(ga.transform(lambda a, b: a * b, *device))
    assert product.dtype == dtype
    assert np.all(abs(product - x * y) <= 3 * eps * abs(x * y))
    quotient = backend.to_host(ga.transform(lambda a, b: a / b, *device))
    assert quotient.dtype == dtype
    assert np.all(abs(quotient - x / y) <= 12 * eps * abs(x / y))


@pytest.mark.parametrize("dtype", sampled(REAL, ["bool", "uint8", "bfloat16", "float32"]), ids=str)
def test_comparisons(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = _with_specials(dtype), _with_specials(dtype, seed=1)
    device = [backend.to_device(x), backend.to_device(y)]
    with np.errstate(invalid="ignore"):
        assert_same(backend.to_host(ga.transform(lambda a, b: a <= b, *device)), x <= y)
        want = np.where(x < y, y, x)
    result = ga.transform(lambda a, b: b if a < b else a, *device)
    assert_same(backend.to_host(result), want)


@pytest.mark.parametrize(
    "dtype", sampled([*INTEGERS, *FLOATS[2:]], ["int8", "uint32", "int64", "float32"]), ids=str
)
def test_division(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = _with_specials(dtype), _with_specials(dtype, seed=1)
    x, y = x[y != 0], y[y != 0]
    if dtype.kind == "i":  # the one quotient that overflows: it wraps
        x[0], y[0] = np.iinfo(dtype).min, -1
    device = [backend.to_device(x), backend.to_device(y)]
    with np.errstate(all="ignore"):
        want = x / y
        floor, rest = (x // y, x % y) if dtype.kind != "f" else (None, None)
    assert_same(backend.to_host(ga.transform(lambda a, b: a / b, *device)), want)
    if dtype.kind != "f":
        assert_same(backend.to_host(ga.transform(lambda a, b: a // b, *device)), floor)
        assert_same(backend.to_host(ga.transform(lambda a, b: a % b, *device)), rest)


def test_division_by_zero(backend: Backend) -> None:
    x, zero = np.array([1, -1, 0], np.float32), np.array([0], np.float32)
    with np.errstate(all="ignore"):
        want = x / zero
    result = ga.transform(lambda a, b: a / b, backend.to_device(x), backend.to_device(zero))
    assert_same(backend.to_host(result), want)


@pytest.mark.parametrize(
    "dtype", [np.dtype("int8"), np.dtype("uint16"), np.dtype("int64")], ids=str
)
def test_shifts_and_bits(backend: Backend, dtype: np.dtype[Any]) -> None:
    x, y = random_array(500, dtype), random_array(500, dtype, seed=1)
    result = ga.transform(
        lambda a, b: (a >> 3) ^ (~b << 2) | (a & b), backend.to_device(x), backend.to_device(y)
    )
    assert_same(backend.to_host(result), (x >> 3) ^ (~y << 2) | (x & y))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = abs(random_array(500, dtype))
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.transform(lambda a: np.sqrt(a), device)), np.sqrt(x))
    if dtype.itemsize > 2:
        got = backend.to_host(ga.transform(lambda a: math.exp(-a), device))
        # The exponential functions of CUDA and of C are good to 2 units in the last place.
        np.testing.assert_allclose(got.astype(dtype), np.exp(-x), rtol=4 * np.finfo(dtype).eps)
    assert_same(backend.to_host(ga.transform(lambda a: abs(-a), device)), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(1,), (70_001,), (257, 3), (3, 4097), (7, 5, 33), (2, 3, 4, 5, 6)]
)
def test_layouts(backend: Backend, layout: str, shape: tuple[int, ...]) -> None:
    x, y = affine(shape), affine(shape, seed=1)
    for left, right in ((layout, layout), (layout, "contiguous"), ("reversed", layout)):
        result = ga.transform(compose, backend.arrange(left, x), backend.arrange(right, y))
        assert_same(backend.to_host(result), compose(x, y))


@pytest.mark.parametrize(
    "n", [0, 1, *(n + d for n in (32, 256, 1024, 4096, 1 << 16) for d in (-1, 0, 1))]
)
def test_sizes(backend: Backend, guarded: Any, n: int) -> None:
    for dtype in a_few(("int8", "float64")):
        x = random_array(n, np.dtype(dtype))
        out = guarded((n,), dtype)
        assert ga.transform(lambda a: -a, backend.to_device(x), out=out) is out
        assert_same(backend.to_host(out), -x)


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 1, 7), (1, 9, 1)),
        ((1000, 1), (1, 1000)),
        ((1000, 33), (33,)),
        ((), (100,)),
        ((), ()),
        ((0,), (1,)),
        ((3, 0), (1, 1)),
        ((1,), (7,)),
    ],
    ids=str,
)
def test_broadcasting(backend: Backend, shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = affine(shapes[0]), affine(shapes[1], seed=1)
    result = ga.transform(compose, backend.to_device(x), backend.to_device(y))
    assert_same(backend.to_host(result), compose(x, y))


def test_more_arrays(backend: Backend) -> None:
    arrays = [random_array((20, 30), np.dtype("int32"), seed) for seed in range(8)]
    arrays[1] = arrays[1][:1]
    device = [backend.to_device(a) for a in arrays]
    a, b, c, d, e, f, g, h = arrays
    result = ga.transform(lambda a, b, c: a * b + c, *device[:3])
    assert_same(backend.to_host(result), a * b + c)
    result = ga.transform(lambda a, b, c, d, e: (a if b > c else d) - e, *device[:5])
    assert_same(backend.to_host(result), np.where(b > c, a, d) - e)
    result = ga.transform(lambda a, b, c, d, e, f, g, h: a - b + c - d + e - f + g - h, *device)
    assert_same(backend.to_host(result), a - b + c - d + e - f + g - h)


def test_mixed_dtypes(backend: Backend) -> None:
    x, y = random_array(99, np.dtype("int8")), random_array((3, 99), np.dtype("float32"))
    keep = random_array((3, 1), np.dtype("bool"))
    device = [backend.to_device(a) for a in (x, y, keep)]
    result = ga.transform(lambda a, b, c: a * b if c else b, *device)
    assert_same(backend.to_host(result), np.where(keep, x * y, y))


@pytest.mark.parametrize("op", [operator.add, np.multiply, max], ids=["add", "multiply", "max"])
@pytest.mark.parametrize("pair", [("int32", "float32"), ("uint8", "int16"), ("float32", "int64")])
def test_recognised_operators_of_mixed_dtypes(
    backend: Backend, op: Any, pair: tuple[str, str]
) -> None:
    x, y = (random_array(1000, np.dtype(name), seed) for seed, name in enumerate(pair))
    numpy_op = {operator.add: np.add, max: np.maximum}.get(op, op)
    got = ga.transform(op, backend.to_device(x), backend.to_device(y))
    assert_same(backend.to_host(got), numpy_op(x, y))
    wide = ga.transform(op, backend.to_device(y), backend.to_device(y), dtype=np.complex128)
    assert_same(backend.to_host(wide), numpy_op(y, y).astype(np.complex128))


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "complex64"])
def test_dtype_of_the_result(backend: Backend, dtype: str) -> None:
    x = random_array(500, np.dtype("int8"))
    wanted = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
    result = ga.transform(lambda a: a // 2, backend.to_device(x), dtype=wanted)
    assert_same(backend.to_host(result), (x // 2).astype(wanted))


def test_out_names_the_dtype(backend: Backend, guarded: Any) -> None:
    x = random_array((40, 50), np.dtype("float32"))
    out = guarded((40, 50), "float64", "swapped")
    assert ga.transform(lambda a: a + a, backend.to_device(x), out=out) is out
    assert_same(backend.to_host(out), (x + x).astype("float64"))
    half = guarded((40, 50), "float16", "step")
    ga.transform(lambda a: a + a, backend.to_device(x), out=half, dtype="float16")
    assert_same(backend.to_host(half), (x + x).astype("float16"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place(backend: Backend, layout: str) -> None:
    x, y = affine((65, 33)), affine((33,), seed=1)
    device = backend.arrange(layout, x)
    assert ga.transform(compose, device, backend.to_device(y), out=device) is device
    assert_same(backend.to_host(device), compose(x, y))


def test_reads_the_same_array_twice(backend: Backend) -> None:
    x = random_array(1000, np.dtype("int16"))
    device = backend.to_device(x)
    assert_same(backend.to_host(ga.transform(lambda a, b: a - b, device, device)), x - x)
    reversed_ = ga.transform(lambda a, b: a - b, device, device[::-1])
    assert_same(backend.to_host(reversed_), x - x[::-1])


def test_inputs_are_left_alone(backend: Backend) -> None:
    x = random_array(1000, np.dtype("float32"))
    device = backend.to_device(x.copy())
    ga.transform(lambda a: a * 0, device)
    assert_same(backend.to_host(device), x)


def test_what_comes_back(backend: Backend) -> None:
    for shape in ((), (3,), (0, 4)):
        result = ga.transform(lambda a: a, backend.to_device(np.ones(shape, np.float32)))
        assert isinstance(result, backend.xp.ndarray)
        assert result.shape == shape


def test_beyond_32_bits(backend: Backend) -> None:
    n = 2**31 + 12_345
    need_memory(backend, 2 * n)
    x = backend.xp.broadcast_to(backend.to_device(np.array([7], np.int8)), (n,))
    result = ga.transform(lambda a: a + 1, x)
    assert result.size == n
    assert result.dtype == np.int8
    assert bool((result[:: 1 << 20] == 8).all())
    assert int(result[-1]) == 8
