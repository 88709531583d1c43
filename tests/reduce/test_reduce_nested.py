"""Elements in two dimensions, of which the inner one may be short: every second of three, say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import (
    Backend,
    affine,
    assert_same,
    compose,
    fold,
    random_array,
    sampled,
    scaled,
    summable,
)

import gpualgo as ga
from gpualgo._cuda import headers

DTYPES = [np.dtype(name) for name in ("int8", "float16", "int32", "float64", "complex128")]
FEW, MANY = 700, scaled(40_000, emulated=9000)
# of `width` numbers those of a slice: of one, of some that are neighbours, backwards, few, many
SLICES = [
    (3, slice(None, None, 2)), (3, slice(None, 2)), (5, slice(None, None, -2)),
    (7, slice(1, None, 5)), (129, slice(None, None, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("width", "part"), SLICES, ids=str)
@pytest.mark.parametrize("count", [1, 2, FEW, MANY])
def test_order(backend: Backend, count: int, width: int, part: slice) -> None:
    x = affine((-(-count // width), width))
    given = backend.to_device(x)
    for rows in (slice(None), slice(None, None, -1)):
        want = fold(compose, x[rows, part])
        assert_same(backend.to_host(ga.reduce(given[rows, part], None, compose)), want)


@pytest.mark.parametrize("dtype", sampled(DTYPES, ["int8", "int32"]), ids=str)
def test_every_size(backend: Backend, guarded: Any, dtype: np.dtype[Any]) -> None:
    """Beside rows without gaps: on a GPU the same bits; a CPU may group other layouts otherwise."""
    values = random_array if backend.name == "cuda" else summable
    for first, (width, part) in enumerate(SLICES):
        x = values(first + FEW * width, dtype)
        given = backend.to_device(x)[first:].reshape(FEW, width)[:, part]
        dense = np.ascontiguousarray(x[first:].reshape(FEW, width)[:, part])
        out, want = guarded((), dtype), ga.reduce(backend.to_device(dense))
        ga.reduce(given, out=out)
        assert_same(backend.to_host(out), backend.to_host(want))
        last = ga.reduce(given, None, lambda a, b: b)
        assert_same(backend.to_host(last), dense[-1, -1])


@pytest.mark.parametrize("shape", [(3, 300, 5), (40, 40, 3), (300, 7, 5)], ids=str)
def test_rows(backend: Backend, guarded: Any, shape: tuple[int, int, int]) -> None:
    """Few long ones, and many of them."""
    x = summable(shape, np.dtype("float32"))
    given = backend.to_device(x)[..., ::2]
    out = guarded(shape[:1], np.float32)
    ga.reduce(given, axis=(1, 2), out=out)
    assert_same(backend.to_host(out), x[..., ::2].sum((1, 2)))
    first = ga.reduce(given, None, lambda a, b: a, axis=(1, 2))
    assert_same(backend.to_host(first), x[:, 0, 0])


def test_tuples(backend: Backend) -> None:
    """Each number in strides of its own."""
    a, b = summable((FEW, 6), np.dtype("int16")), summable((FEW, 5), np.dtype("float64"))
    x, y = backend.to_device(a)[:, ::2], backend.to_device(b)[::-1, 1:4]
    sums = ga.reduce((x, y), None, lambda p, q: (p[0] + q[0], q[1]))
    assert_same(backend.to_host(sums[0]), a[:, ::2].sum(dtype=np.int16))
    assert_same(backend.to_host(sums[1]), b[0, 3])
    got = ga.argmax(x)
    assert int(backend.to_host(got)) == np.argmax(a[:, ::2])


def test_inner_dimensions_may_be_long() -> None:
    """Beyond what a position of 31 bits counts, the general layout takes over."""
    assert headers.is_nested([(5, (16,)), (headers.MAX_NESTED, (4,))])
    assert not headers.is_nested([(5, (16,)), (headers.MAX_NESTED + 1, (4,))])
    assert not headers.is_nested([(5, (16,))])
