"""reduce, scans, transform and histogram of sharded arrays beside those of one array."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from sharded import COUNTS, SIZES, affine, check, cut, devices, first, last
from support import Backend, a_few, compose, scaled
from support import affine as packed

import gpualgo as ga

RNG = np.random.default_rng(3)
OPS = {"add": operator.add, "first": first, "last": last, "compose": compose}
CUTS = scaled(COUNTS, emulated=(3,))
LENGTHS = scaled(SIZES, emulated=(2, 7))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("n", LENGTHS)
def test_reduce_and_scans(backend: Backend, n: int, op: str) -> None:
    h = packed(n)
    for count in CUTS:
        x = cut(backend, h, count)
        for init in (None, np.uint64(5 << 32 | 7)):
            if n or init is not None or op == "add":
                check(ga.reduce(x, init, OPS[op]), ga.reduce(h, init, OPS[op]))
            for reverse in a_few((False, True)):
                args = init, OPS[op]
                want = ga.inclusive_scan(h, *args, reverse=reverse)
                check(ga.inclusive_scan(x, *args, reverse=reverse), want)
                if init is not None or op == "add":
                    want = ga.exclusive_scan(h, *args, reverse=reverse)
                    check(ga.exclusive_scan(x, *args, reverse=reverse), want)


@pytest.mark.parametrize(
    "op", scaled((operator.add, operator.mul, operator.xor), emulated=(operator.xor,))
)
def test_identities_of_bool(backend: Backend, op: Any) -> None:
    """Known as 0 and 1, which are no bool."""
    h = np.array([True, False, True, True, False])
    x = cut(backend, h, 3)
    for reverse in a_few((False, True)):
        want = ga.exclusive_scan(h, None, op, reverse=reverse)
        check(ga.exclusive_scan(x, None, op, reverse=reverse), want)


@pytest.mark.parametrize("count", scaled((2, 3, 8), emulated=(2,)))
def test_tuples(backend: Backend, count: int) -> None:
    h = RNG.integers(1, 97, 23), RNG.integers(0, 97, 23)
    x = tuple(cut(backend, part, count) for part in h)
    for reverse in a_few((False, True)):
        for init in (None, (3, 5)):
            want = ga.inclusive_scan(h, init, affine, reverse=reverse)
            check(ga.inclusive_scan(x, init, affine, reverse=reverse), want)
    check(ga.exclusive_scan(x, (1, 0), affine), ga.exclusive_scan(h, (1, 0), affine))
    op = ga.Operator(affine, identity=(1, 0))
    check(ga.exclusive_scan(x, None, op), ga.exclusive_scan(h, None, op))
    check(ga.reduce(x, (3, 5), affine), ga.reduce(h, (3, 5), affine))
    got = ga.transform(lambda p, k: (p[1], p[0] * k), x, 2.5)
    check(got, ga.transform(lambda p, k: (p[1], p[0] * k), h, 2.5))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_several_dimensions(backend: Backend, axis: int) -> None:
    h = packed((3, 5, 4))
    for count in scaled((2, 8), emulated=(2,)):
        x = cut(backend, h, count, axis)
        for over in (None, 0, 1, 2, (0, 1), (0, 2), (2, 1)):
            for op in scaled(("add", "compose", "first"), emulated=("compose",)):
                want = ga.reduce(h, None, OPS[op], axis=over, keepdims=True)
                check(ga.reduce(x, None, OPS[op], axis=over, keepdims=True), want)
                want = ga.reduce(h, np.uint64(3), OPS[op], axis=over)
                check(ga.reduce(x, np.uint64(3), OPS[op], axis=over), want)
        for line in range(3):
            for reverse in scaled((False, True), emulated=(True,)):
                want = ga.inclusive_scan(h, None, compose, axis=line, reverse=reverse)
                check(ga.inclusive_scan(x, None, compose, axis=line, reverse=reverse), want)
        check(ga.transform(lambda a: a + a, x), h + h)


def test_starts_for_rows(backend: Backend) -> None:
    h, rows = packed((7, 3)), packed(3, seed=1)
    x = cut(backend, h, 3)
    init: Any = rows
    if backend.name != "cpu":
        init = ga.distribute(rows, devices(backend, 1)).shards[0]
    check(ga.reduce(x, init, compose, axis=0), ga.reduce(h, rows, compose, axis=0))
    for reverse in a_few((False, True)):
        want = ga.exclusive_scan(h, rows, compose, axis=0, reverse=reverse)
        check(ga.exclusive_scan(x, init, compose, axis=0, reverse=reverse), want)


def test_flat_in_c_order(backend: Backend) -> None:
    h = packed((7, 3))
    x = cut(backend, h, 3)
    check(ga.inclusive_scan(x, None, compose), ga.inclusive_scan(h, None, compose))
    with pytest.raises(ValueError, match=r"sharded along axis 1.*distribute\(x, axis=0\).*gather"):
        ga.inclusive_scan(cut(backend, h, 3, 1), None, compose)


def test_dtypes_are_those_of_one_array(backend: Backend) -> None:
    h = np.arange(11, dtype=np.int8)
    x = cut(backend, h, 3)
    for init, dtype in ((np.float32(1), None), (None, np.int64)):
        check(ga.reduce(x, init, dtype=dtype), ga.reduce(h, init, dtype=dtype))
        check(ga.inclusive_scan(x, init, dtype=dtype), ga.inclusive_scan(h, init, dtype=dtype))


def test_captured_values(backend: Backend) -> None:
    """Each device reads a table of the host, and a number as it is at the call."""
    h, table, more = np.arange(12) % 5, np.arange(5), 2
    if backend.name != "cpu":
        table = ga.empty_pinned(5, np.int64)  # which kernels of every GPU read in place
    table[...] = [3, 1, 4, 1, 5]
    x = cut(backend, h, 3)

    def read(a: Any) -> Any:
        return table[a] + more

    for more in (2, 7):  # `read` reads it
        check(ga.transform(read, x), table[h] + more)


def test_float_sums_repeat(backend: Backend) -> None:
    """Other cuts may round otherwise; the same ones give the same bits, close to one array's."""
    h = RNG.standard_normal(scaled(100_000, emulated=3000)).astype(np.float32)
    x = cut(backend, h, 3)
    again = cut(backend, h, 3)
    check(ga.inclusive_scan(x), ga.inclusive_scan(again))
    check(ga.reduce(x), ga.reduce(again))
    got = np.asarray(ga.inclusive_scan(x).gather("cpu"))
    np.testing.assert_allclose(got, np.cumsum(h, dtype=np.float64), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("count", CUTS)
def test_histogram(backend: Backend, count: int) -> None:
    h = RNG.integers(0, 50, 1000).astype(np.float32)
    weights = RNG.integers(0, 9, 1000)
    x, w = cut(backend, h, count), cut(backend, weights, count)
    for bins, ends in ((7, (0, 40)), (7, None), ([0, 3, 3, 40], None), (5000, (0, 50))):
        check(ga.histogram(x, bins, ends), ga.histogram(h, bins, ends))
    check(ga.histogram(x, 7, weights=w), ga.histogram(h, 7, weights=weights))
    check(ga.histogram(x, 7, weights=2), ga.histogram(h, 7, weights=2))
    check(ga.histogram((x, w), (3, 4)), ga.histogram((h, weights), (3, 4)))
    check(ga.histogram(x, 7, dtype=np.uint16), ga.histogram(h, 7, dtype=np.uint16))
    with pytest.raises(ValueError, match="hold"):
        ga.histogram(x, 7, (0, 1), dtype=np.uint8)  # one shard's count would fit


def test_edges_that_are_not_in_host_memory(backend: Backend) -> None:
    h = RNG.integers(0, 9, 100)
    x, edges = cut(backend, h, 2), np.array([0, 3, 4, 9])
    lazy = ga.lazy.transform(lambda a: a * a, ga.lazy.arange(4))
    check(ga.histogram(x, lazy), ga.histogram(h, np.arange(4) ** 2))
    both = backend.to_device(edges), 3
    check(ga.histogram((x, x), both), ga.histogram((h, h), (edges, 3)))


def test_histograms_of_rows(backend: Backend) -> None:
    h = RNG.integers(0, 9, (6, 10))
    for axis in a_few((0, 1)):
        x = cut(backend, h, 4, axis)
        for over in (0, 1):
            check(ga.histogram(x, 9, (0, 9), axis=over), ga.histogram(h, 9, (0, 9), axis=over))


def test_histogram_without_a_finite_range(backend: Backend) -> None:
    x = cut(backend, np.array([1.0, 2.0, np.nan]), 2)
    with pytest.raises(ValueError, match=r"range .*nan.* is not finite; pass range="):
        ga.histogram(x, 4)
    check(ga.histogram(cut(backend, np.zeros(0), 2), 4), ga.histogram(np.zeros(0), 4))


def test_what_does_not_fit(backend: Backend) -> None:
    h = np.arange(10)
    x = cut(backend, h, 3)
    with pytest.raises(ValueError, match="sharded differently"):
        ga.transform(lambda a, b: a + b, x, cut(backend, h, 2))
    with pytest.raises(ValueError, match=r"shape \(9,\).*do not broadcast"):
        ga.transform(lambda a, b: a + b, x, cut(backend, h[:9], 3))
    with pytest.raises(TypeError, match=r"argument 1 must be a ShardedArray.*distribute"):
        ga.transform(lambda a, b: a + b, x, h)
    with pytest.raises(TypeError, match="out= is not supported with a ShardedArray"):
        ga.reduce(x, out=np.zeros((), np.int64))
    with pytest.raises(TypeError, match=r"init is a ShardedArray; pass init.gather\(\)"):
        ga.reduce(x, x)
    with pytest.raises(ValueError, match=r"nothing|empty|identity"):
        ga.reduce(cut(backend, h[:0], 3), None, lambda a, b: a)
    with pytest.raises(TypeError, match=r"prepare, explain and graphs"):
        ga.prepare(ga.reduce, x)
    with pytest.raises(TypeError, match=r"ShardedArray.*docs/scale.md.*gather"):
        ga.segmented_reduce(x, np.array([0, 3]))
    with pytest.raises(np.exceptions.AxisError):
        ga.reduce(x, axis=1)
