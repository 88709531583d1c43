"""Histograms of lazy arrays, which are counted as they are computed, beside those of real ones."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from support import DTYPES, Backend, a_few, assert_same, random_array, sampled, scaled

import gpualgo as ga

N = scaled(60_007, emulated=3_001)
REALS = [dtype for dtype in DTYPES if dtype.kind != "c"]
BINS = {
    "even": (11, (-3.0, 4.0)),
    "of the data": (7, None),
    "edges": ([-2.0, -1.5, 0.0, 0.25, 3.0], None),
    "many": (9001, (-4.0, 4.0)),
}

Point = namedtuple("Point", "x y")


def _normal(shape: Any, seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _same(backend: Backend, made: Any, real: Any, *args: Any, **options: Any) -> None:
    """Assert that a lazy array counts as the array that it would be."""
    got = ga.histogram(made, *args, **options)
    assert_same(backend.to_host(got), backend.to_host(ga.histogram(real, *args, **options)))


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("weights", sampled([None, 3, 0.1, "float64", "int32"], [None, "int32"]))
def test_one_dimension(backend: Backend, bins: str, weights: Any) -> None:
    x = _normal(N)
    made = ga.lazy.asarray(backend.to_device(x)) * np.float32(1.25) - np.float32(0.5)
    real = backend.to_device(x * np.float32(1.25) - np.float32(0.5))
    if isinstance(weights, str):
        weights = backend.to_device((_normal(N, 1) * 100).astype(weights))
    _same(backend, made, real, *BINS[bins], weights=weights)


@pytest.mark.parametrize("dtype", sampled(REALS, ["bool", "float16", "int64"]), ids=str)
def test_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = random_array((N,), dtype)
    device = backend.to_device(x)
    made = ga.lazy.transform(lambda a, i: a, device, ga.lazy.arange(N))
    _same(backend, made, device, [0, 1, 2, 50, 100])
    _same(backend, made, device, 16, (0, 100))
    _same(backend, ga.lazy.asarray(device)[::-2], device[::-2], 16, (0, 100))
    pairs = ga.lazy.transform(lambda a: (a, a), device)
    _same(backend, pairs, (device, device), (16, [0, 50, 100]), ((0, 100), None))


@pytest.mark.parametrize(
    "shape", [(N,), (37, 211), (211, 37), (5, 7, 6), (1, 1), (33, 0, 2)], ids=str
)
@pytest.mark.parametrize("weights", [False, True])
def test_axes_and_positions(backend: Backend, shape: tuple[int, ...], weights: bool) -> None:
    n = int(np.prod(shape))
    x = random_array(shape, np.dtype(np.int32)) % 100
    made = ga.lazy.asarray(backend.to_device(x)) + ga.lazy.arange(n).reshape(shape) % 7
    real = backend.to_device(x + np.arange(n).reshape(shape) % 7)
    each = backend.to_device(_normal(shape)) if weights else None
    axes: list[Any] = [None, *range(len(shape)), tuple(range(len(shape)))[1:]]
    for axis in axes:
        _same(backend, made, real, 13, (0, 106), axis=axis, weights=each)
        if each is None:
            _same(backend, made.T, real.T, 13, (0, 106), axis=axis)


@pytest.mark.parametrize("dims", [1, 3, 8])
def test_several_dimensions(backend: Backend, dims: int) -> None:
    arrays = [_normal(N, i) for i in range(dims)]
    made = tuple(ga.lazy.asarray(backend.to_device(x)) + 1 for x in arrays)
    real = tuple(backend.to_device(x + np.float32(1)) for x in arrays)
    _same(backend, made, real, (2,) * dims, ((-1.0, 3.0),) * dims)
    _same(backend, made, real, (2,) * dims, ((-1.0, 3.0),) * dims, weights=real[0])
    if dims < 8:
        _same(backend, made, real, 2)


def test_lazy_arrays_beside_arrays_and_numbers(backend: Backend) -> None:
    x, y = _normal((40, 30)), _normal(30, 1)
    device, row = backend.to_device(x), backend.to_device(y)
    made = (device, ga.lazy.asarray(row) * 2, ga.lazy.arange(1200).reshape(40, 30))
    real = (x, np.broadcast_to(y * 2, x.shape), np.arange(1200).reshape(40, 30))
    options: Any = {"bins": (4, 5, 6), "range": ((-2, 2), (-3, 3), (0, 1200))}
    got = backend.to_host(ga.histogram(made, **options))
    want = np.histogramdd([part.ravel().astype(float) for part in real], **options)[0]
    assert_same(got, want.astype(np.int64))
    both = ga.histogram((ga.lazy.asarray(device), 1.0), (3, 1), ((-9, 9), None))
    assert backend.to_host(both).sum() == x.size


def test_tuples_that_a_function_returns(backend: Backend) -> None:
    x = _normal(N)
    device = backend.to_device(x)
    scale = 3.0
    for make in a_few((lambda a: (a, a * scale), lambda a: Point(a, a * scale))):
        made = ga.lazy.transform(make, device)
        _same(backend, made, (device, device * 3.0), (5, 6), ((-2, 2), (-9, 9)))
        _same(backend, made, (device, device * 3.0), 5)
    scale = 4.0
    made = ga.lazy.transform(lambda a: (a, a * scale), device)
    _same(backend, made, (device, device * 4.0), (5, 6), ((-2, 2), (-9, 9)))


def test_what_functions_capture(backend: Backend) -> None:
    x = _normal(N)
    device = backend.to_device(x)
    table = backend.to_device(np.array([0.5, -1.0, 2.0], np.float32))
    made = ga.lazy.transform(lambda a: table[1] + a * table[2], device)
    want = np.float32(-1) + x * np.float32(2)
    _same(backend, made, backend.to_device(want), 10, (-4, 4))
    table[:] = backend.to_device(np.array([0.0, 1.0, -1.0], np.float32))
    _same(backend, made, backend.to_device(np.float32(1) - x), 10, (-4, 4))


def test_captured_arrays_of_the_host_beside_edges(backend: Backend) -> None:
    """Of whose copies, and of the edges, nobody but the call has hold."""
    x, table = _normal(N), np.array([0.5, -1.0, 2.0], np.float32)
    made = ga.lazy.transform(lambda a: table[1] + a * table[2], x)
    edges = np.linspace(-3, 3, 60).astype(np.float32)
    want = np.histogram(table[1] + x * table[2], edges)[0]
    assert_same(ga.histogram(made, edges), want)


@pytest.mark.parametrize("dtype", sampled(["float32", "float64"], ["float32"]))
def test_random_numbers(backend: Backend, dtype: Any) -> None:
    made = ga.lazy.random(shape=(3, N), seed=5, dtype=dtype)
    real = np.asarray(made)
    for part, x in ((made, real), (made[1], real[1]), (made[:, 1::3], real[:, 1::3])):
        _same(backend, part, x, 20, (0.0, 1.0), axis=-1)
    _same(backend, made[0], real[0], 20, (0.0, 1.0), weights=2.5)


@pytest.mark.slow
def test_more_than_32_bits_count() -> None:
    n = (1 << 31) + 5
    with ga.default_device("cpu"):
        assert ga.histogram(ga.lazy.arange(n), [0, 7, n - 7, n]).tolist() == [7, n - 14, 7]


def test_bool_samples(backend: Backend) -> None:
    x = _normal(N)
    made = ga.lazy.asarray(backend.to_device(x)) > 0
    got = backend.to_host(ga.histogram(made, 2, (0, 1)))
    assert_same(got, np.array([(x <= 0).sum(), (x > 0).sum()]))
    assert_same(backend.to_host(ga.histogram(made, 2)), got)


def test_plans_with_weights_and_edges(backend: Backend) -> None:
    x, w = _normal(N), _normal(N, 1)
    device, weights = backend.to_device(x), backend.to_device(w)
    made, edges = ga.lazy.asarray(device) * 2, backend.to_device(np.array([-2.0, 0, 1, 2]))
    plan = ga.prepare(ga.histogram, made, edges, weights=weights)
    want = ga.histogram(backend.to_device(x * np.float32(2)), edges, weights=weights)
    assert_same(backend.to_host(plan(made, weights)), backend.to_host(want))
    with pytest.raises(TypeError, match=r"takes 2 array\(s\), got 1"):
        plan(made)
    with pytest.raises(TypeError, match="must be materialized first"):
        ga.prepare(ga.histogram, made, edges, weights=made)
    named = ga.prepare(ga.histogram, x=made, bins=edges)
    assert_same(backend.to_host(named(made)), backend.to_host(ga.histogram(made, edges)))


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "complex": (
        lambda x: ga.histogram(ga.lazy.asarray(x) * 1j, 2, (0, 1)), TypeError,
        "histogram: x has dtype complex64, which has no order",
    ),
    "complex in a tuple": (
        lambda x: ga.histogram((x, ga.lazy.asarray(x) * 1j), 2, ((0, 1), (0, 1))), TypeError,
        r"histogram: x\[1\] has dtype complex64",
    ),
    "tuples in tuples": (
        lambda x: ga.histogram(ga.lazy.transform(lambda a: (a, (a, a)), x), 2), TypeError,
        "histogram: x is a tuple of tuples",
    ),
    "bins of a tuple": (
        lambda x: ga.histogram(ga.lazy.transform(lambda a: (a, a), x), [0, 1]), TypeError,
        "histogram: bins must be an int or a tuple of 2",
    ),
    "bins": (
        lambda x: ga.histogram(ga.lazy.asarray(x), "auto"), TypeError,
        "histogram: bins must be an int or a sequence of edges",
    ),
    "many arrays": (
        lambda x: ga.histogram(sum(ga.lazy.asarray(x[i:][:9]) for i in range(9)), 2, (0, 1)),
        TypeError, "histogram: x reads 9 arrays, at most 8",
    ),
    "NaN without a range": (
        lambda x: ga.histogram(ga.lazy.asarray(x) * np.float32(np.nan), 2), ValueError,
        "histogram: the range .* of x is not finite",
    ),
    "NaN in a dimension": (
        lambda x: ga.histogram((x, ga.lazy.asarray(x) * np.float32(np.nan)), 2), ValueError,
        r"histogram: the range .* of x\[1\] is not finite",
    ),
    "nine dimensions": (
        lambda x: ga.histogram((ga.lazy.asarray(x),) * 9, 2), TypeError,
        "histogram: x has elements of 9 numbers, at most 8",
    ),
    "narrow bins of a tuple of one": (
        lambda x: ga.histogram((ga.lazy.asarray(x),), 9, ((1, 1 + 1e-15),)), ValueError,
        "histogram: 9 bins of dimension 0 in the range",
    ),
    "edges that fall": (
        lambda x: ga.histogram(ga.lazy.asarray(x), [1, 0]), ValueError,
        "histogram: bins decreases from 1 to 0",
    ),
    "weights of another shape": (
        lambda x: ga.histogram(ga.lazy.asarray(x), 2, (0, 1), weights=x[:3]), ValueError,
        "histogram: weights has shape",
    ),
    "out": (
        lambda x: ga.histogram(ga.lazy.asarray(x), 2, (0, 1), out=ga.lazy.arange(2)), TypeError,
        "histogram: out",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend: Backend, name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=f"^{message}"):
        call(backend.to_device(_normal(100)))
