"""All calls on sharded arrays beside those on one array; sorts and selections of any lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pieces import faults
from sharded import COUNTS, check, cut, devices
from support import Backend, a_few, scaled

import gpualgo as ga
from gpualgo._algorithms.merge_sort import tuning
from gpualgo.shards import _sharded

RNG = np.random.default_rng(5)
CUTS = scaled(COUNTS, emulated=(3,))


@pytest.mark.parametrize("count", CUTS)
def test_every_call(backend: Backend, count: int) -> None:
    def over_devices(x: Any, axis: int = 0) -> Any:
        return cut(backend, x, count, axis)

    def called(function: Any, *args: Any, **options: Any) -> Any:
        return function(*args, **options)

    found = faults("shards", over_devices, called, check, scaled(1, emulated=5))
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of tests be so long that samples decide, and that blocks merge several pieces."""
    monkeypatch.setattr(tuning, "MERGE_THREADS", 64)
    monkeypatch.setattr(tuning, "CUT_SAMPLES", 128)
    monkeypatch.setattr(_sharded, "SAMPLES", 32)


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


@pytest.mark.parametrize("dtype", scaled((np.uint8, np.int16, np.uint64), emulated=(np.int16,)))
def test_some_bits(backend: Backend, dtype: Any) -> None:
    """Cuts are between keys that differ in these bits, whatever their others are."""
    info = np.iinfo(dtype)
    h = RNG.integers(info.min, info.max, 700, dtype, endpoint=True)
    places = np.arange(len(h))
    for begin, end in scaled(((2, info.bits - 1), (info.bits - 3, None)), emulated=((3, 6),)):
        options: Any = {"begin_bit": begin, "end_bit": end}
        found = ga.radix_sort(cut(backend, h, 3), cut(backend, places, 3), **options)
        check(found, ga.radix_sort(h, places, **options))


def test_rows(backend: Backend) -> None:
    h = RNG.integers(0, 99, (6, 10))
    x = cut(backend, h, 4)
    for call in (ga.radix_sort, ga.argsort, ga.argmin):
        with pytest.raises(ValueError, match=r"rows along axis 0 are sharded.*distribute.*gather"):
            call(x, axis=0)
    with pytest.raises(ValueError, match="less= is given"):
        ga.sort(x, less=lambda a, b: a < b)
    with pytest.raises(ValueError, match="sharded differently"):
        ga.radix_sort(x, cut(backend, h, 3))
    with pytest.raises(TypeError, match=r"complex"):
        ga.radix_sort(cut(backend, h.astype(complex), 2))
    with pytest.raises(ValueError, match="k is 8, and there are 7 elements"):
        ga.top_k(cut(backend, np.arange(7), 3), 8)
    with pytest.raises(ValueError, match="minmax"):
        ga.minmax(cut(backend, np.zeros(0), 3))
    with pytest.raises(ValueError, match="consecutive= or eq= is given"):
        ga.reduce_by_key(cut(backend, h[0], 3), cut(backend, h[0], 3), consecutive=True)


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
