"""transform: values against NumPy for every dtype and size, broadcasting, out."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    DTYPES,
    LAYOUTS,
    Backend,
    a_few,
    affine,
    assert_same,
    compose,
    need_memory,
    random_array,
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
