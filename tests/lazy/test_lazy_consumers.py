"""Algorithms that read lazy arrays, beside the same calls on real ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    Backend,
    a_few,
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

LONG = scaled(100_003, emulated=9_001)
SHAPES = [(LONG,), (37, 211), (211, 37), (5, 7, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reduce_of_positions_and_several_leaves(backend: Backend, shape: tuple[int, ...]) -> None:
    n = int(np.prod(shape))
    x, y = (random_array(shape, np.dtype("int32"), i) for i in range(2))
    made = ga.lazy.asarray(backend.to_device(x)) * ga.lazy.arange(n).reshape(shape)
    made = made - backend.to_device(y)
    real = x * np.arange(n).reshape(shape) - y
    for axis in a_few((None, *range(len(shape))), 2):
        got = ga.reduce(made, axis=axis)
        assert_same(backend.to_host(got), np.sum(real, axis=axis))
        kept = ga.reduce(made, None, max, axis=axis, keepdims=True)
        assert_same(backend.to_host(kept), np.max(real, axis=axis, keepdims=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("scan", [ga.inclusive_scan, ga.exclusive_scan], ids=["in", "ex"])
def test_scans(backend: Backend, scan: Callable[..., Any], shape: tuple[int, ...]) -> None:
    n = int(np.prod(shape))
    x = random_array(shape, np.dtype("int32"))
    made = ga.lazy.asarray(backend.to_device(x)) * ga.lazy.arange(n).reshape(shape) + 1
    real = x * np.arange(n).reshape(shape) + 1
    for axis in a_few((None, *range(len(shape))), 2):
        for reverse in a_few((False, True)):
            got = scan(made, 5, axis=axis, reverse=reverse)
            want = scan(backend.to_device(real), 5, axis=axis, reverse=reverse)
            assert_same(backend.to_host(got), backend.to_host(want))


@pytest.mark.parametrize("shape", [(37, 11), (11, 37), (5, 7, 6)], ids=str)
@pytest.mark.parametrize("has_row_init", [False, True])
def test_recognised_operators_on_numbers_that_change(
    backend: Backend, shape: tuple[int, ...], has_row_init: bool
) -> None:
    """Elements read numbers at each launch; kernels that only combine them take none."""
    x = random_array(shape, np.dtype("int64"))
    given = backend.to_device(x)
    for k in (2, 3):
        made, real = ga.lazy.transform(lambda a: a * k, given), x * k  # noqa: B023
        for axis in range(len(shape)):
            init: Any = np.int64(5)
            if has_row_init:
                init = np.arange(x.size // shape[axis]).reshape(x.take(0, axis).shape)
            first = backend.to_device(init) if has_row_init else init
            total = np.cumsum(real, axis) + (np.expand_dims(init, axis) if has_row_init else init)
            for function, want in (
                (ga.reduce, total.take(-1, axis)),
                (ga.inclusive_scan, total),
                (ga.exclusive_scan, total - real),
            ):
                assert_same(backend.to_host(function(made, first, axis=axis)), want)


@pytest.mark.parametrize("size", [12, 5000])
@pytest.mark.parametrize("has_row_init", [False, True])
def test_sums_of_segments_and_indices_of_numbers_that_change(
    backend: Backend, size: int, has_row_init: bool
) -> None:
    """As above: by tables, or after a sort where there are many."""
    places = np.arange(300) % 7
    offsets = np.searchsorted(np.sort(places), np.arange(size + 1))
    init: Any = np.arange(size) if has_row_init else np.int64(5)
    first = backend.to_device(init) if has_row_init else init
    on = backend.to_device(places), backend.to_device(offsets), backend.to_device(np.arange(300))
    for k in (2, 3):
        made = ga.lazy.transform(lambda a: a * k, on[2])  # noqa: B023
        want = np.bincount(places, np.arange(300) * k, size).astype(np.int64) + init
        assert_same(backend.to_host(ga.reduce_by_index(on[0], made, size, first)), want)
        counts = np.bincount(np.sort(places), np.arange(300) * k, size).astype(np.int64)
        got = ga.segmented_reduce(made, on[1], first)
        assert_same(backend.to_host(got), counts + init)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transform(backend: Backend, shape: tuple[int, ...]) -> None:
    n = int(np.prod(shape))
    x, y = (random_array(shape, np.dtype("float64"), i) for i in range(2))
    made = ga.lazy.asarray(backend.to_device(x)).T * 2
    got = ga.transform(
        lambda a, b, c: a * b + c, made, ga.lazy.arange(n).reshape(shape).T,
        backend.to_device(y).T,
    )  # fmt: skip
    assert_same(backend.to_host(got), (x * 2 * np.arange(n).reshape(shape) + y).T)


def test_order(backend: Backend) -> None:
    """What does not commute, and its first and its last element."""
    raw = affine(LONG)
    x = backend.to_device(raw)
    both = (
        (ga.lazy.transform(lambda v: v ^ np.uint64(6), x), raw ^ np.uint64(6)),
        (ga.lazy.asarray(x)[::-1], raw[::-1]),
    )
    for made, real in a_few(both):
        assert backend.to_host(ga.reduce(made, None, compose)) == fold(compose, real)
        got = backend.to_host(ga.inclusive_scan(made, None, compose))
        assert got[-1] == fold(compose, real)
        assert got[1000] == fold(compose, real[:1001])
        assert backend.to_host(ga.reduce(made, None, lambda a, b: a)) == real[0]
        assert backend.to_host(ga.reduce(made, None, lambda a, b: b)) == real[-1]
    counted = ga.lazy.arange(LONG) * 2
    assert ga.reduce(counted, None, lambda a, b: a) == 0
    assert ga.reduce(counted, None, lambda a, b: b) == 2 * LONG - 2
    rows = (ga.lazy.arange(LONG) * 2)[:9000].reshape(90, 100)
    real = np.arange(9000).reshape(90, 100) * 2
    assert_same(ga.reduce(rows, None, lambda a, b: b, axis=0), real[-1])
    assert_same(ga.reduce(rows, None, lambda a, b: b, axis=1), real[:, -1])


@pytest.mark.parametrize("dtype", sampled(DTYPES, ["bool", "bfloat16", "complex64"]), ids=str)
def test_every_dtype(dtype: np.dtype[Any]) -> None:
    x, y = summable((24, 17), dtype), summable((24, 17), dtype, 1)
    made = ga.lazy.transform(lambda a, b: a if b == b else b, x, y)
    assert made.dtype == dtype
    for axis in a_few((None, 0, 1)):
        assert_same(ga.reduce(made, axis=axis), ga.reduce(x, axis=axis))
        assert_same(ga.inclusive_scan(made, axis=axis), ga.inclusive_scan(x, axis=axis))
    assert_same(ga.reduce(made, dtype=np.complex128), ga.reduce(x, dtype=np.complex128))


def test_special_values() -> None:
    x = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0])
    made = ga.lazy.asarray(x)
    with np.errstate(all="ignore"):
        assert_same(ga.copy(made * -1), x * -1)
        assert_same(ga.copy(made / x), x / x)
        assert_same(ga.copy(np.minimum(made, -made)), np.minimum(x, -x), zero_signs=False)
    assert_same(ga.reduce(made[1:2]), np.float64(-0.0))
    assert_same(ga.inclusive_scan(made[1:3]), np.array([-0.0, 0.0]))
    assert np.isnan(ga.reduce(made, None, np.maximum))
    assert_same(ga.reduce(made[1:], None, max), np.float64(np.inf))


def test_nothing_at_all() -> None:
    empty = ga.lazy.asarray(np.empty((0, 3))) * 2
    assert_same(ga.reduce(empty, axis=0), np.zeros(3))
    assert_same(ga.reduce(empty, 1.5), np.float64(1.5))
    assert ga.inclusive_scan(empty, axis=0).shape == (0, 3)
    with pytest.raises(ValueError, match="reduce"):
        ga.reduce(empty, None, max)
    assert_same(ga.reduce(ga.lazy.asarray(np.array(2.5)) * 2), np.float64(5.0))
    assert_same(ga.reduce(ga.lazy.full((), 3)), np.int64(3))


def test_into_what_it_reads(backend: Backend) -> None:
    host = random_array(LONG, np.dtype("int64"))
    x = backend.to_device(host.copy())
    ga.copy(ga.lazy.asarray(x) * 3 + ga.lazy.arange(LONG), out=x)
    assert_same(backend.to_host(x), host * 3 + np.arange(LONG))
    with pytest.raises(ValueError, match=r"memory|overlap"):
        ga.copy(ga.lazy.asarray(x)[::-1], out=x)


def test_known_operators_and_operators_of_ones_own() -> None:
    x = np.arange(1, 9)
    made = ga.lazy.asarray(x) % 5 + 1
    real = x % 5 + 1
    for op, want in ((operator.mul, np.prod(real)), (max, 5), (np.bitwise_or, 7)):
        assert ga.reduce(made, None, op) == want
    assert ga.reduce(made, None, ga.Operator(lambda a, b: a * b, identity=1)) == np.prod(real)
    assert ga.reduce(made[:0], None, ga.Operator(lambda a, b: a * b, identity=1)) == 1


def test_a_sort_that_is_refused_leaves_out_alone(backend: Backend) -> None:
    x = np.array([3, 1, 2, 0], np.float32)
    made = ga.lazy.asarray(backend.to_device(x)) * 2
    out = backend.to_device(np.full_like(x, 77))
    refused: list[dict[str, Any]] = [{"axis": 5}, {"descending": 3}, {"begin_bit": 1}]
    for options in refused:
        with pytest.raises((TypeError, ValueError)):
            ga.radix_sort(made, out=out, **options)
    with pytest.raises(ValueError, match="out\\[0\\] overlaps values"):
        ga.radix_sort(made, out, out=(out, backend.to_device(x)))
    assert_same(backend.to_host(out), np.full_like(x, 77))


def test_a_sort_into_what_lazy_values_read(backend: Backend) -> None:
    x = np.array([3, 1, 2, 0], np.float32)
    read, values = backend.to_device(x), backend.to_device(np.zeros_like(x))
    keys = ga.lazy.asarray(backend.to_device(x)) * -1
    ga.radix_sort(keys, ga.lazy.asarray(read) + 5, out=(read, values))
    assert_same(backend.to_host(values), np.array([8, 7, 6, 5], np.float32))
    turned = ga.lazy.asarray(values[::-1]) * 2
    assert ga.radix_sort(turned, out=values) is values
    assert_same(backend.to_host(values), np.array([10, 12, 14, 16], np.float32))


def test_errors_name_the_caller_s_function_or_none() -> None:
    x = np.arange(4.0)
    with pytest.raises(ga.CompileError, match=r"^transform: .* of complex128 .*: <lazy array>"):
        ga.copy(np.arccosh(ga.lazy.asarray(x) * 1j))
    with pytest.raises(ga.CompileError, match=r"^sum: .* of complex128 .*: <lazy array>"):
        np.sum(np.arccosh(ga.lazy.asarray(x) * 1j))
    with pytest.raises(ga.CompileError, match=r"^transform: .*test_lazy_consumers\.py:\d+: .*foo"):
        ga.copy(ga.lazy.transform(lambda a: a.foo, x))


@pytest.mark.parametrize("scan", [ga.inclusive_scan, ga.exclusive_scan])
@pytest.mark.parametrize("columns", [5, 300, 3000])
@pytest.mark.parametrize("step", [-1, 2, -3])
def test_flattened_scans_into_spaced_results(
    backend: Backend, scan: Any, columns: int, step: int
) -> None:
    """Only the results are written, whatever the layout of what is read."""
    x = np.arange(3 * columns).reshape(3, columns) % 7
    sums = np.cumsum(2 * x)
    want = sums if scan is ga.inclusive_scan else sums - 2 * x.ravel()
    for layout in ("contiguous", "fortran"):
        kept = backend.to_device(np.full(abs(step) * x.size, -1))
        scan(ga.lazy.asarray(backend.arrange(layout, x)) * 2, out=kept[::step])
        expected = np.full(abs(step) * x.size, -1)
        expected[::step] = want
        np.testing.assert_array_equal(backend.to_host(kept), expected)
