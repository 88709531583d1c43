"""Calls of sharded arrays that have results of a known size, or compare neighbours."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from sharded import COUNTS, SIZES, check, cut, devices
from support import Backend, a_few

import gpualgo as ga

RNG = np.random.default_rng(9)
FIRST = ga.Operator(lambda a, b: a if a != 0 else b, identity=0)
LAST = ga.Operator(lambda a, b: b if b != 0 else a, identity=0)
OPS = {"add": operator.add, "first": FIRST, "last": LAST}


def on_first(backend: Backend, x: Any) -> Any:
    """Return an array on the first of the devices that shards are on."""
    return x if backend.name == "cpu" else ga.distribute(x, devices(backend, 1)).shards[0]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("count", a_few(COUNTS, 3))
def test_reduce_by_index(backend: Backend, count: int, op: str) -> None:
    for n in SIZES:
        keys, x = RNG.integers(0, 5, n), RNG.integers(0, 99, n).astype(np.int32)
        sharded = cut(backend, keys, count), cut(backend, x, count)
        for init, dtype in ((None, None), (7, None), (np.int64(2), None), (3, np.int64)):
            want = ga.reduce_by_index(keys, x, 6, init, OPS[op], dtype=dtype)
            check(ga.reduce_by_index(*sharded, 6, init, OPS[op], dtype=dtype), want)
        each = np.arange(1, 7, dtype=np.int32)
        got = ga.reduce_by_index(*sharded, 6, on_first(backend, each), OPS[op])
        check(got, ga.reduce_by_index(keys, x, 6, each, OPS[op]))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("count", a_few(COUNTS, 3))
def test_segmented_reduce(backend: Backend, count: int, op: str) -> None:
    for n in SIZES:
        x = RNG.integers(0, 3, n).astype(np.int32)
        ends = np.sort(RNG.integers(0, n + 1, 12)).astype(np.uint32)
        for init in (None, 7, np.int64(2)):
            want = ga.segmented_reduce(x, ends, init, OPS[op])
            check(ga.segmented_reduce(cut(backend, x, count), ends, init, OPS[op]), want)
        given = on_first(backend, ends)
        got = ga.segmented_reduce(cut(backend, x, count), given, None, OPS[op])
        check(got, ga.segmented_reduce(x, ends, None, OPS[op]))


def test_tuples_of_tables(backend: Backend) -> None:
    """Pairs, of which the first has the greatest number: the operator does not commute."""
    op: Any = ga.Operator(lambda a, b: b if b[0] > a[0] else a, identity=(-1, -1))
    keys = RNG.integers(0, 4, 100)
    x = RNG.integers(0, 5, 100), np.arange(100)
    pair = tuple(cut(backend, part, 3) for part in x)
    got = ga.reduce_by_index(cut(backend, keys, 3), pair, 4, None, op)
    check(got, ga.reduce_by_index(keys, x, 4, None, op))
    ends = np.array([0, 40, 40, 99])
    check(ga.segmented_reduce(pair, ends, None, op), ga.segmented_reduce(x, ends, None, op))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("count", a_few(COUNTS, 3))
def test_searchsorted(backend: Backend, count: int, side: Any) -> None:
    for n in SIZES:
        a, v = np.sort(RNG.integers(0, 9, n)), RNG.integers(-1, 11, (4, 5))
        want = ga.searchsorted(a, v, side=side)
        whole = on_first(backend, v)
        check(ga.searchsorted(cut(backend, a, count), whole, side=side), want)
        check(ga.searchsorted(on_first(backend, a), cut(backend, v, count), side=side), want)
        check(
            ga.searchsorted(cut(backend, a[::-1].copy(), count), whole, side=side, descending=True),
            ga.searchsorted(a[::-1].copy(), v, side=side, descending=True),
        )
        by = {"side": side, "less": lambda a, b: a // 2 < b // 2, "dtype": np.int32}
        got = ga.searchsorted(cut(backend, a, count), whole, **by)
        check(got, ga.searchsorted(a, v, **by))


def test_searchsorted_tuples_and_numbers(backend: Backend) -> None:
    a = np.array([0, 0, 1, 1, 1]), np.array([2.0, np.nan, -0.0, 0.0, 5.0])
    v = np.array([0, 1, 1]), np.array([3.0, 0.0, np.nan])
    sharded, whole = tuple(cut(backend, x, 3) for x in a), tuple(on_first(backend, x) for x in v)
    check(ga.searchsorted(sharded, whole), ga.searchsorted(a, v))
    if backend.name == "cpu":
        got = ga.searchsorted(cut(backend, a[0], 3), 1)
        assert got == 2
        assert got.shape == ()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", a_few(COUNTS, 3))
def test_adjacent_difference(backend: Backend, count: int, axis: int) -> None:
    h = RNG.integers(0, 99, (7, 5)).astype(np.int16)
    for op in (operator.sub, lambda a, b: a * 10 + b, lambda a, b: b, lambda a, b: a / 2 + b):
        want = ga.adjacent_difference(h, op, axis=axis)
        for sharded in (0, 1):
            check(ga.adjacent_difference(cut(backend, h, count, sharded), op, axis=axis), want)
    for n in SIZES:
        x = RNG.standard_normal(n)
        check(ga.adjacent_difference(cut(backend, x, count)), ga.adjacent_difference(x))


def test_adjacent_difference_of_tuples(backend: Backend) -> None:
    """Shards of no element, and of one, are between others."""
    x = np.arange(9), np.linspace(0, 1, 9)
    lengths = [0, 2, 1, 0, 0, 3, 3]
    places = devices(backend, len(lengths))
    starts = np.cumsum([0, *lengths])
    pair: Any = tuple(
        ga.ShardedArray.from_shards(
            [ga.distribute(part[i : i + n], [place]).shards[0]
             for i, n, place in zip(starts, lengths, places, strict=False)]
        )
        for part in x
    )  # fmt: skip

    def op(a: Any, b: Any) -> Any:
        return a[0] - 2 * b[0], a[1] * b[1]

    check(ga.adjacent_difference(pair, op), ga.adjacent_difference(x, op))


@pytest.mark.parametrize("count", a_few(COUNTS, 3))
@pytest.mark.parametrize("flags", [(), ("index",), ("counts",), ("index", "counts")], ids=str)
def test_unique(backend: Backend, count: int, flags: tuple[str, ...]) -> None:
    options: Any = {f"return_{name}": True for name in flags}
    for n in SIZES:
        x = RNG.integers(-3, 4, n).astype(np.float32) * np.float32(0.0 if n == 7 else 0.5)
        x[3::5] = np.nan
        got, want = ga.unique(cut(backend, x, count), **options), ga.unique(x, **options)
        check(got, want)
    rows, pair = RNG.integers(0, 3, (6, 4)), (RNG.integers(0, 2, 90), RNG.integers(0, 3, 90) > 1)
    check(ga.unique(cut(backend, rows, count), **options), ga.unique(rows, **options))
    sharded = tuple(cut(backend, part, count) for part in pair)
    check(ga.unique(sharded, **options), ga.unique(pair, **options))


@pytest.mark.parametrize("count", a_few(COUNTS, 3))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_run_length_encode(backend: Backend, count: int, most: int) -> None:
    for n in SIZES:
        x = np.repeat(RNG.integers(0, most, n), RNG.integers(1, 9, n))[: max(n, 1) - (n == 0)]
        x = x.astype(np.float16)
        x[x == 4] = np.nan
        sharded = cut(backend, x, count)
        for eq in (None, lambda a, b: a == b or b == 1):
            check(ga.run_length_encode(sharded, eq=eq), ga.run_length_encode(x, eq=eq))
        for index, counts in ((False, False), (True, False), (True, True)):
            flags: Any = {"consecutive": True, "return_index": index, "return_counts": counts}
            check(ga.unique(sharded, **flags), ga.unique(x, **flags))
    pair = np.arange(40) // 12, np.arange(40) // 30 > 0
    sharded = tuple(cut(backend, part, count) for part in pair)
    check(ga.run_length_encode(sharded), ga.run_length_encode(pair))


def test_runs_of_short_shards(backend: Backend) -> None:
    """A run may have whole shards, and shards without an element in between."""
    lengths, x = [0, 1, 1, 0, 2, 3, 1, 0], np.array([1, 1, 1, 1, 1, 2, 2, 2])
    starts, places = np.cumsum([0, *lengths]), devices(backend, len(lengths))
    for changed in range(len(x)):
        h = x.copy()
        h[changed] = 7
        sharded = ga.ShardedArray.from_shards(
            [ga.distribute(h[i : i + n], [place]).shards[0]
             for i, n, place in zip(starts, lengths, places, strict=False)]
        )  # fmt: skip
        check(ga.run_length_encode(sharded), ga.run_length_encode(h))


def test_what_is_refused(backend: Backend) -> None:
    x = cut(backend, np.arange(10), 3)
    with pytest.raises(ValueError, match="unique: return_inverse is not supported"):
        ga.unique(x, return_inverse=True)
    with pytest.raises(ValueError, match="searchsorted: a and v are both sharded"):
        ga.searchsorted(x, x)
    with pytest.raises(ValueError, match="searchsorted: dtype int8 does not hold indices up to"):
        ga.searchsorted(
            cut(backend, np.zeros(200), 4), on_first(backend, np.zeros(3)), dtype=np.int8
        )
    with pytest.raises(ValueError, match=r"segmented_reduce: .*offsets"):
        ga.segmented_reduce(x, np.array([0, 11]))
    with pytest.raises(TypeError, match="segmented_reduce: offsets is a ShardedArray"):
        ga.segmented_reduce(x, x)
    with pytest.raises(TypeError, match="segmented_reduce: x must be a ShardedArray"):
        ga.segmented_reduce(np.arange(3), x)
    with pytest.raises(TypeError, match="adjacent_difference: axis must be an int, got None"):
        ga.shards.adjacent_difference(x, axis=None)
    with pytest.raises(TypeError, match="unique: x has dtype complex128, which has no order"):
        ga.unique(cut(backend, np.arange(4) * 1j, 2))
    for call in (
        lambda: ga.segmented_reduce(x, np.array([0, 5]), 1, max),
        lambda: ga.reduce_by_index(x, x, 10, 1, max),
    ):
        with pytest.raises(ValueError, match=r"op has no identity, and .*pass gpualgo\.Operator"):
            call()
