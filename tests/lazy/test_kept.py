"""Expressions that are put together once: right for other arrays, whatever was kept before."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest
from support import LAYOUTS, Backend, a_few, random_array

import gpualgo as ga
from gpualgo._lazy.combining import zipped
from gpualgo._lazy.expression import positions
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.lazy import LazyArray

DTYPES = ("float32", "int16")


def product(a: Any, b: Any) -> Any:
    return a * b


def differences(a: Any) -> Any:
    return a[..., 1:] - a[..., :-1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_arrays_of_one_layout(backend: Backend, dtype: str, layout: str) -> None:
    made = ExpressionCache(product)
    for seed in range(3):
        hosts = [random_array((4, 9), np.dtype(dtype), 2 * seed + k) for k in range(2)]
        x, y = (backend.arrange(layout, host) for host in hosts)
        want = hosts[0] * hosts[1]
        np.testing.assert_array_equal(backend.to_host(ga.copy(made((x, y), "x"))), want)


def test_what_is_sliced_lies_within_the_next_array(backend: Backend) -> None:
    made = ExpressionCache(differences)
    for seed, layout in itertools.product(range(2), ("contiguous", "reversed", "fortran", "step")):
        host = random_array((5, 8), np.dtype("float64"), seed)
        got = ga.copy(made((backend.arrange(layout, host),), "x"))
        np.testing.assert_array_equal(backend.to_host(got), np.diff(host))


def test_one_array_twice_is_not_two_arrays(backend: Backend) -> None:
    """What is read once where both are one must not be kept for those that are two."""
    made = ExpressionCache(product)
    hosts = [np.arange(5.0), np.arange(5.0) + 1]
    x, y = map(backend.to_device, hosts)
    for (a, want_a), (b, want_b) in itertools.product(
        zip((x, y), hosts, strict=True), zip((x, y), hosts, strict=True)
    ):
        np.testing.assert_array_equal(backend.to_host(ga.copy(made((a, b), "x"))), want_a * want_b)
        assert len(made((a, b), "x").leaves) == (1 if a is b else 2)


def test_parts_of_arrays_that_overlap_are_not_kept_as_one(backend: Backend) -> None:
    """Where the end of one array is the beginning of another, both are read once: then alone."""
    made = ExpressionCache(lambda a, b: a[1:] * b[:-1])
    for seed in range(3):
        base, other = (random_array((7,), np.dtype("float64"), 2 * seed + k) for k in range(2))
        there = backend.to_device(base)
        for a, b, x, y in (
            (there[:-1], there[1:], base[:-1], base[1:]),
            (there[:-1], backend.to_device(other[1:]), base[:-1], other[1:]),
        ):
            got = backend.to_host(ga.copy(made((a, b), "x")))
            np.testing.assert_array_equal(got, x[1:] * y[:-1])


def test_shapes_dtypes_and_values_are_told_apart(backend: Backend) -> None:
    made = ExpressionCache(lambda a, scale: a * scale)
    for shape, dtype, scale in itertools.product(((6,), (2, 3)), DTYPES, (2, 3)):
        host = np.arange(6).reshape(shape).astype(dtype)
        got = ga.copy(made((backend.to_device(host),), "x", scale))
        assert got.dtype == host.dtype
        np.testing.assert_array_equal(backend.to_host(got), host * scale)


def test_positions_and_broadcast_arrays(backend: Backend) -> None:
    made = ExpressionCache(lambda a, row: zipped((a + row, ga.lazy.arange(12).reshape(3, 4)), "x"))
    for seed in range(2):
        host, row = random_array((3, 4), np.dtype("int64"), seed), np.arange(4) * seed
        values, places = ga.copy(made((backend.to_device(host), backend.to_device(row)), "x"))
        np.testing.assert_array_equal(backend.to_host(values), host + row)
        np.testing.assert_array_equal(backend.to_host(places), np.arange(12).reshape(3, 4))


def test_lazy_arrays_are_put_together_anew(backend: Backend) -> None:
    made = ExpressionCache(product)
    for seed in range(2):
        host = random_array(7, np.dtype("float32"), seed)
        x = ga.lazy.asarray(backend.to_device(host)) + np.float32(seed)
        got = backend.to_host(ga.copy(made((x, backend.to_device(host)), "x")))
        np.testing.assert_array_equal(got, (host + np.float32(seed)) * host)


def test_bfloat16_within_an_array(backend: Backend) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    made = ExpressionCache(differences)
    for k in range(2):
        host = (np.arange(6) ** 2 + k).astype(bfloat16)
        got = backend.to_host(ga.copy(made((backend.to_device(host),), "x")))
        np.testing.assert_array_equal(got.astype(float), np.diff(host.astype(float)))


def test_no_array_is_held() -> None:
    made = ExpressionCache(lambda a: zipped((a[1:], a[:-1]), "x"))
    x = np.arange(10.0)
    held = weakref.ref(x)
    for _ in range(2):
        ga.reduce(made((x,), "x"), None, lambda a, b: (a[0] + b[0], a[1] + b[1]))
    del x
    gc.collect()
    assert held() is None


def test_memory_lives_as_long_as_what_reads_it() -> None:
    made = ExpressionCache(differences)
    made((np.arange(1000.0),), "x")
    lazy = made((np.arange(1000.0) ** 2,), "x")
    gc.collect()
    others = [np.full(1000, -1.0) for _ in range(10)]
    np.testing.assert_array_equal(ga.copy(lazy), np.diff(np.arange(1000.0) ** 2))
    assert len(others) == 10


def test_what_reads_another_array_is_not_kept() -> None:
    table = np.arange(4.0)
    made = ExpressionCache(lambda a: ga.lazy.take(table, a))
    for k in range(3):
        np.testing.assert_array_equal(ga.copy(made((np.array([k, 3 - k]),), "x")), [k, 3 - k])
        table = np.arange(4.0)  # whose memory is another's the next time
    assert isinstance(made((np.array([1]),), "x"), LazyArray)
    assert positions((3,)).is_position


def neighbours(table: Any, places: Any) -> Any:
    near = [ga.lazy.take(table[1:], places + by, mode="clip") for by in (0, 1)]
    return zipped((near[0] - near[1], places), "x")


def test_what_is_looked_up_lies_in_the_next_array(backend: Backend) -> None:
    """Elements at other places are those of the array that is given, however it lies."""
    made = ExpressionCache(neighbours)
    for seed, layout in itertools.product(range(3), ("contiguous", "reversed")):
        table = random_array((9,), np.dtype("float64"), seed)
        places = np.random.default_rng(seed).integers(0, 8, (2, 3))
        lazy = made((backend.arrange(layout, table), backend.to_device(places)), "x")
        near = [table[1:][np.minimum(places + by, 7)] for by in (0, 1)]
        for step in (1, -1):  # as it is, and as a part of another expression
            differences, found = ga.copy(lazy[::step])
            want = (near[0] - near[1])[::step]
            np.testing.assert_array_equal(backend.to_host(differences), want)
            np.testing.assert_array_equal(backend.to_host(found), places[::step])
        whole = backend.to_host(ga.copy(lazy)[0])
        np.testing.assert_array_equal(whole, near[0] - near[1])


def test_operators_with_what_is_kept_are_told_apart(backend: Backend) -> None:
    """What is known of one operator, dtype or expression from its second call on is its alone."""
    sums, products = ExpressionCache(lambda a: a + a[::-1]), ExpressionCache(lambda a: a * a)
    for seed, dtype in itertools.product(range(4), a_few(DTYPES, 2)):
        host = random_array((13,), np.dtype(dtype), seed)
        x = backend.to_device(host)
        for made, want in ((sums, host + host[::-1]), (products, host * host)):
            lazy = made((x,), "x")
            np.testing.assert_array_equal(backend.to_host(ga.copy(lazy)), want)
            first = ga.reduce(lazy, None, lambda a, b: a)
            most, least = (ga.reduce(lazy, None, op) for op in (np.maximum, np.minimum))
            got = [backend.to_host(one) for one in (first, most, least)]
            np.testing.assert_array_equal(got, [want[0], want.max(), want.min()])


@pytest.mark.parametrize("count", [3, 5000, 300_000])
def test_reductions_of_what_is_computed_come_again(count: int) -> None:
    """Warm calls on the CPU: other arrays, starts and captured numbers, the same bits as cold."""
    scale = 2.0
    op = ga.Operator(lambda a, b: a + b * scale)
    made = ExpressionCache(lambda a, b: a * b + 1.0)
    for seed in range(4):
        x, y = (random_array(count, np.dtype("float64"), seed + k) for k in (0, 9))
        lazy = made((x, y), "x")
        np.testing.assert_array_equal(ga.reduce(lazy), ga.reduce(ga.copy(lazy)))
        start = float(seed)
        assert ga.reduce(lazy, start, max) == ga.reduce(ga.copy(lazy), start, max)
        both = ga.reduce((x, y * x), (start, 1.0), lambda a, b: (max(a[0], b[0]), a[1] + b[1]))
        again = ga.reduce(
            zipped((x, ga.lazy.asarray(y) * x), "x"), (start, 1.0),
            lambda a, b: (max(a[0], b[0]), a[1] + b[1]),
        )  # fmt: skip
        assert again == both
        scale = seed + 0.5
        if count == 3:
            lazily, really = (ga.reduce(one, 0.0, op) for one in (lazy, ga.copy(lazy)))
            assert lazily == really


def test_reductions_along_axes_of_what_is_computed_come_again() -> None:
    made = ExpressionCache(product)
    for seed in range(3):
        x = random_array((37, 41), np.dtype("float32"), seed)
        for axis in a_few((0, 1, None)):
            lazy = made((x, x[::-1]), "x")
            got = ga.reduce(lazy, None, lambda a, b: a, axis=axis)
            np.testing.assert_array_equal(
                got, ga.reduce(x * x[::-1], None, lambda a, b: a, axis=axis)
            )
