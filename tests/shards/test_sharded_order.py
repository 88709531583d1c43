"""Sorts, top_k, reduce_by_key, extremes of sharded arrays: all equal to those of one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sharded import COUNTS, affine, check, cut, devices, last
from support import Backend, a_few, scaled

import gpualgo as ga
from gpualgo._algorithms.merge_sort import tuning
from gpualgo.shards import _sort

RNG = np.random.default_rng(5)
CUTS = scaled(COUNTS, emulated=(3,))
LENGTHS = scaled((0, 1, 2, 7, 2500), emulated=(2, 600))


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of tests be so long that samples decide, and that blocks merge several pieces."""
    monkeypatch.setattr(tuning, "MERGE_THREADS", 64)
    monkeypatch.setattr(tuning, "CUT_SAMPLES", 128)
    monkeypatch.setattr(_sort, "SAMPLES", 32)


def bounds(x: Any) -> list[int]:
    """Return where the shards but the first begin."""
    return np.cumsum(x.lengths)[:-1].tolist()


def keys_of(kind: str, n: int) -> np.ndarray[Any, Any]:
    """Return keys with many ties, NaN and both zeros, none but equal ones, or a wide range."""
    if kind == "zeros":
        return np.where(RNG.random(n) < 0.2, np.nan, RNG.integers(-3, 3, n) * 0.0)
    if kind == "equal":
        return np.zeros(n, np.uint8)
    if kind == "two":
        return (np.arange(n) % 7 == 0).astype(np.float32)
    if kind == "rising":
        return np.arange(n, dtype=np.int32)
    if kind == "dealt":  # sorted, then dealt to eight shards in stretches
        return np.arange(8 * -(-n // 8)).reshape(-1, 8).T.reshape(-1)[:n] // 40 * 40.0
    if kind == "falling":
        return np.arange(n, 0, -1, dtype=np.uint64)
    return RNG.integers(0, 1 << 63, n, dtype=np.uint64)


@pytest.mark.parametrize("kind", scaled(("zeros", "equal", "falling", "wide"), emulated=("zeros",)))
@pytest.mark.parametrize("n", LENGTHS)
def test_sorts(backend: Backend, n: int, kind: str) -> None:
    h, beside = keys_of(kind, n), np.arange(n, dtype=np.float32)
    for count in CUTS:
        x, values = cut(backend, h, count), cut(backend, beside, count)
        for descending in a_few((False, True)):
            options = {"descending": descending}
            got = ga.radix_sort(x, **options)
            assert got.lengths == x.lengths
            check(got, ga.radix_sort(h, **options))
            check(ga.argsort(x, **options), ga.argsort(h, **options))
            check(ga.sort(x, values, **options), ga.radix_sort(h, beside, **options))


SHARDS = scaled(
    ((900, 0, 1, 1300, 0, 299), (0, 3000), (1, 2, 3, 4, 5, 6, 7, 8), (400,) * 4, (60,) * 17),
    emulated=((300, 0, 1, 520), (400, 399, 0, 401, 1)),
)  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    scaled(("two", "equal", "rising", "falling", "dealt", "zeros"), emulated=("two", "dealt")),
)
@pytest.mark.parametrize("lengths", SHARDS, ids=str)
def test_shards_of_any_lengths(backend: Backend, lengths: tuple[int, ...], kind: str) -> None:
    h = keys_of(kind, sum(lengths))
    parts = np.split(h, np.cumsum(lengths)[:-1])
    places = devices(backend, len(lengths))
    x = ga.ShardedArray.from_shards([
        ga.distribute(part, [place]).shards[0] for part, place in zip(parts, places, strict=True)
    ])  # fmt: skip
    got = ga.radix_sort(x)
    assert got.lengths == x.lengths == lengths
    check(got, ga.radix_sort(h))
    check(ga.argsort(x), ga.argsort(h))
    check(ga.argsort(x, descending=True), ga.argsort(h, descending=True))
    check(ga.radix_sort(x, x)[1], ga.radix_sort(h))


def test_bits_tuples_and_narrow_indices(backend: Backend) -> None:
    n = scaled(1000, emulated=200)
    h = RNG.integers(-500, 500, n)
    pair = RNG.integers(0, 5, n), RNG.standard_normal(n).astype(np.float32)
    x, both = cut(backend, h, 3), tuple(cut(backend, part, 3) for part in pair)
    check(ga.radix_sort(x, x, begin_bit=2, end_bit=6), ga.radix_sort(h, h, begin_bit=2, end_bit=6))
    ways = (True, False)
    check(ga.radix_sort(both, descending=ways), ga.radix_sort(pair, descending=ways))
    check(ga.radix_sort(x, both), ga.radix_sort(h, pair))
    check(ga.argsort(both, descending=ways), ga.argsort(pair, descending=ways))
    check(ga.argsort(x, dtype=np.int32), ga.argsort(h, dtype=np.int32))


def test_rows(backend: Backend) -> None:
    h = RNG.integers(0, 99, (6, 10))
    x = cut(backend, h, 4)
    check(ga.radix_sort(x), ga.radix_sort(h))
    check(ga.radix_sort(x, x, axis=1), ga.radix_sort(h, h, axis=1))
    check(ga.radix_sort(x, axis=None), ga.radix_sort(h, axis=None))
    check(ga.argsort(x, axis=1), ga.argsort(h, axis=1))
    check(ga.argsort(cut(backend, h, 4, 1), axis=0), ga.argsort(h, axis=0))
    check(ga.top_k(x, 3), ga.top_k(h, 3))
    check(ga.argmax(x, 1, keepdims=True), ga.argmax(h, 1, keepdims=True))
    check(ga.argmin(cut(backend, h, 4, 1), 0), ga.argmin(h, 0))
    for call in (ga.radix_sort, ga.argsort, ga.argmin):
        with pytest.raises(ValueError, match=r"rows along axis 0 are sharded.*distribute.*gather"):
            call(x, axis=0)
    with pytest.raises(ValueError, match="less= is given"):
        ga.sort(x, less=lambda a, b: a < b)
    with pytest.raises(ValueError, match="sharded differently"):
        ga.radix_sort(x, cut(backend, h, 3))
    with pytest.raises(TypeError, match=r"complex"):
        ga.radix_sort(cut(backend, h.astype(complex), 2))


@pytest.mark.parametrize("count", CUTS)
def test_top_k_and_extremes(backend: Backend, count: int) -> None:
    for n in (2, 7, scaled(1000, emulated=100)):
        for h in (RNG.integers(0, 9, n), np.where(RNG.random(n) < 0.3, np.nan, 1.5)):
            x = cut(backend, h, count)
            for k in (0, 1, n):
                for mode in ("largest", "smallest"):
                    check(ga.top_k(x, k, mode=mode), ga.top_k(h, k, mode=mode))
            for function in (ga.argmin, ga.argmax, ga.minmax):
                check(function(x), function(h))
    with pytest.raises(ValueError, match="k is 8, and there are 7 elements"):
        ga.top_k(cut(backend, np.arange(7), count), 8)
    with pytest.raises(ValueError, match="minmax"):
        ga.minmax(cut(backend, np.zeros(0), count))


@pytest.mark.parametrize("count", CUTS)
def test_reduce_by_key(backend: Backend, count: int) -> None:
    for n in (0, 1, 7, scaled(2000, emulated=150)):
        x = RNG.integers(1, 97, n), RNG.integers(0, 97, n)
        cut_x = tuple(cut(backend, part, count) for part in x)
        zeros = np.where(RNG.random(n) < 0.2, np.nan, RNG.integers(-2, 2, n) * 0.5)
        for keys in (RNG.integers(0, 1 + n // 3, n), zeros, np.full(n, 3, np.int8)):
            names = cut(backend, keys, count)
            for args in ((None, last), (100, last)):
                want = ga.reduce_by_key(keys, x[0], *args)
                check(ga.reduce_by_key(names, cut_x[0], *args), want)
            want = ga.reduce_by_key(keys, x, (3, 5), affine)
            check(ga.reduce_by_key(names, cut_x, (3, 5), affine), want)
        pair = x[0] % 3, x[1] % 4
        got = ga.reduce_by_key(tuple(cut(backend, p, count) for p in pair), cut_x[1])
        check(got, ga.reduce_by_key(pair, x[1]))
    with pytest.raises(ValueError, match="consecutive= or eq= is given"):
        ga.reduce_by_key(names, cut_x[0], consecutive=True)


@pytest.mark.parametrize("count", CUTS)
def test_select_count_and_find(backend: Backend, count: int) -> None:
    bound = 6
    for n in (0, 1, 7, scaled(1000, emulated=100)):
        h = RNG.integers(0, 9, n)
        x = cut(backend, h, count)
        for predicate in (lambda a: a > bound, lambda a: a < 0, lambda a: a >= 0):
            got = ga.select(x, predicate)
            check(got, ga.select(h, predicate))
            assert max(got.lengths) - min(got.lengths) <= 1
            there = ga.shards.select(x, predicate, balance=False)
            check(there, got.gather("cpu"))
            counts = [int(ga.count(np.asarray(part), predicate)) for part in np.split(h, bounds(x))]
            assert list(there.lengths) == counts
            if n:
                check(ga.count(x, predicate), ga.count(h, predicate))
                check(ga.find(x, predicate), ga.find(h, predicate))
        mark = cut(backend, h > bound, count)
        check(ga.select((x, mark), mark), ga.select((h, h > bound), h > bound))
    rows = RNG.integers(0, 9, (5, 8))
    x = cut(backend, rows, count)
    check(ga.select(x, lambda a: a > bound), ga.select(rows, lambda a: a > bound))
    for axis in a_few((0, 1, None)):
        check(ga.count(x, lambda a: a > 4, axis=axis), ga.count(rows, lambda a: a > 4, axis=axis))
        check(ga.find(x, lambda a: a > 4, axis=axis), ga.find(rows, lambda a: a > 4, axis=axis))
