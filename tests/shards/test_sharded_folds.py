"""reduce, scans, transform and histogram of sharded arrays, beyond the table of all calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sharded import check, cut, devices
from support import Backend, a_few, compose, scaled
from support import affine as packed

import gpualgo as ga

RNG = np.random.default_rng(3)


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


def test_edges_that_are_not_in_host_memory(backend: Backend) -> None:
    h = RNG.integers(0, 9, 100)
    x, edges = cut(backend, h, 2), np.array([0, 3, 4, 9])
    lazy = ga.lazy.transform(lambda a: a * a, ga.lazy.arange(4))
    check(ga.histogram(x, lazy), ga.histogram(h, np.arange(4) ** 2))
    both = backend.to_device(edges), 3
    check(ga.histogram((x, x), both), ga.histogram((h, h), (edges, 3)))


def test_histogram_without_a_finite_range(backend: Backend) -> None:
    with pytest.raises(ValueError, match="hold"):  # one shard's count would fit
        ga.histogram(cut(backend, np.zeros(1000), 8), 7, (0, 1), dtype=np.uint8)
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
        ga.segmented_inclusive_scan(x, np.array([0, 3]))
    with pytest.raises(np.exceptions.AxisError):
        ga.reduce(x, axis=1)
