"""reduce_by_key and the scans by key against NumPy and a loop in Python."""

from __future__ import annotations

import operator
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from by_key.reference import (
    few,
    heads_of,
    in_runs,
    reduced_by_key,
    running_sums,
    runs_of,
    same_bits,
    scanned_by_key,
    summed_by_key,
    values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support import DTYPES, Backend, examples, random_array, sampled, scaled, summable

import gpualgo as ga
from gpualgo import lazy

TILE = 4096  # int32 keys and float32 or int32 values, on a GPU
SIZES = [0, 1, 31, 33, TILE - 1, TILE, TILE + 1, 2 * TILE + 77,
         scaled(300_007, emulated=13_001)]  # fmt: skip


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("most", [1, 5, 9000])
def test_sizes(backend: Backend, n: int, most: int) -> None:
    keys, x = in_runs(n, most), values(n)
    got = ga.reduce_by_key(backend.to_device(keys), backend.to_device(x), consecutive=True)
    for mine, want in zip(got, summed_by_key(keys, x), strict=True):
        np.testing.assert_array_equal(backend.to_host(mine), want)
        assert backend.to_host(mine).dtype == want.dtype


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("most", [1, 5, 9000])
def test_scans(backend: Backend, n: int, most: int) -> None:
    keys, x = in_runs(n, most), values(n)
    arrays = backend.to_device(keys), backend.to_device(x)
    want = running_sums(keys, x)
    got = ga.inclusive_scan_by_key(*arrays, consecutive=True)
    np.testing.assert_array_equal(backend.to_host(got), want)
    got = ga.exclusive_scan_by_key(*arrays, consecutive=True)
    np.testing.assert_array_equal(backend.to_host(got), want - x)


@pytest.mark.parametrize("dtype", sampled(DTYPES))
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    """Keys and values of every dtype; of keys few, zeros and NaN of both signs among them."""
    n = 2 * TILE + 33
    keys = few(n, dtype)
    x = summable(n, dtype)
    fold = max if dtype.kind not in "cb" else operator.add
    if fold is max:
        x = random_array(n, dtype, 3)
    want = reduced_by_key(list(keys), list(x), np.maximum if fold is max else np.add)
    got = ga.reduce_by_key(
        backend.to_device(keys), backend.to_device(x), None, fold, consecutive=True
    )
    same_bits(backend, got[0], np.array(want[0], dtype))
    same_bits(backend, got[1], np.array(want[1], dtype))
    scans = ga.inclusive_scan_by_key(
        backend.to_device(keys), backend.to_device(x), None, fold, consecutive=True
    )
    ufunc = np.maximum if fold is max else np.add
    same_bits(backend, scans, np.array(scanned_by_key(list(keys), list(x), ufunc), dtype))


Affine = namedtuple("Affine", "a b")


def after(p: Any, q: Any) -> Any:
    """Return the affine function of which p is done first: the order matters."""
    return Affine(p.a * q.a, q.a * p.b + q.b)


@pytest.mark.parametrize("most", [3, 2000])
def test_order(backend: Backend, most: int) -> None:
    """Operators that do not commute meet elements in their order, and nothing else."""
    n = 2 * TILE + 5
    keys = in_runs(n, most)
    rng = np.random.default_rng(7)
    parts = Affine(rng.integers(1, 9, n, np.uint64), rng.integers(0, 99, n, np.uint64))
    arrays = Affine(*map(backend.to_device, parts))
    pairs = [Affine(*map(int, pair)) for pair in zip(*parts, strict=True)]

    def fold(p: Any, q: Any) -> Any:
        return Affine(*(int(number) % 2**64 for number in after(p, q)))

    firsts, wanted = reduced_by_key(keys.tolist(), pairs, fold, Affine(3, 1))
    got = ga.reduce_by_key(backend.to_device(keys), arrays, (3, 1), after, consecutive=True)
    assert type(got.aggregates) is Affine
    same_bits(backend, got.keys, np.array(firsts, np.int32))
    for mine, want in zip(got.aggregates, zip(*wanted, strict=True), strict=True):
        same_bits(backend, mine, np.array(want, np.uint64))
    for scan, is_exclusive in ((ga.inclusive_scan_by_key, False), (ga.exclusive_scan_by_key, True)):
        wanted = scanned_by_key(keys.tolist(), pairs, fold, Affine(3, 1), is_exclusive)
        got = scan(backend.to_device(keys), arrays, (3, 1), after, consecutive=True)
        for mine, want in zip(got, zip(*wanted, strict=True), strict=True):
            same_bits(backend, mine, np.array(want, np.uint64))


@pytest.mark.parametrize("side", ["first", "last"])
def test_first_and_last(backend: Backend, side: str) -> None:
    n = 2 * TILE + 5
    keys, x = in_runs(n, 700), values(n)
    op = (lambda a, b: a) if side == "first" else (lambda a, b: b)
    arrays = backend.to_device(keys), backend.to_device(x)
    heads = heads_of(keys)
    ends = np.append(heads[1:], n) - 1
    _, got = ga.reduce_by_key(*arrays, None, op, consecutive=True)
    same_bits(backend, got, x[heads if side == "first" else ends])
    lengths = np.diff(np.append(heads, n))
    want = np.repeat(x[heads], lengths) if side == "first" else x
    same_bits(backend, ga.inclusive_scan_by_key(*arrays, None, op, consecutive=True), want)


def test_keys_that_are_tuples(backend: Backend) -> None:
    n = TILE + 99
    keys = in_runs(n, 9), np.where(in_runs(n, 30, 1) > 2, np.nan, -0.0).astype(np.float32)
    keys[1][::3] *= -1  # the sign of a zero does not matter
    x = values(n)
    pairs = list(zip(*(key.tolist() for key in keys), strict=True))
    firsts, sums = reduced_by_key(pairs, x.tolist(), operator.add)
    got = ga.reduce_by_key(
        tuple(map(backend.to_device, keys)), backend.to_device(x), consecutive=True
    )
    for mine, want, kind in zip(got.keys, zip(*firsts, strict=True), keys, strict=True):
        same_bits(backend, mine, np.array(want, kind.dtype))
    same_bits(backend, got.aggregates, np.array(sums, np.float32))


def test_an_equality(backend: Backend) -> None:
    """Each key is compared with the one before it, not with the run's first."""
    n = 2 * TILE + 9
    keys, x = np.cumsum(values(n) // 7).astype(np.int32), values(n)
    near = lambda a, b: abs(a - b) <= 1  # noqa: E731
    arrays = backend.to_device(keys), backend.to_device(x)
    firsts, sums = reduced_by_key(keys.tolist(), x.tolist(), operator.add, None, near)
    got = ga.reduce_by_key(*arrays, consecutive=True, eq=near)
    same_bits(backend, got.keys, np.array(firsts, np.int32))
    same_bits(backend, got.aggregates, np.array(sums, np.float32))
    wanted = scanned_by_key(keys.tolist(), x.tolist(), operator.sub, 2.0, True, near)
    got = ga.exclusive_scan_by_key(*arrays, 2.0, lambda a, b: a - b, consecutive=True, eq=near)
    if n:  # subtraction does not associate: only runs of up to two elements are compared
        short = [i for begin, end in runs_of(keys.tolist(), near) if end - begin <= 1
                 for i in range(begin, end)]  # fmt: skip
        same_bits(backend, backend.to_host(got)[short], np.array(wanted, np.float32)[short])


def test_lazy_ones(backend: Backend) -> None:
    n = 2 * TILE + 9
    keys, x = in_runs(n, 5), values(n)
    arrays = lazy.asarray(backend.to_device(keys)), lazy.asarray(backend.to_device(x))
    want = summed_by_key(keys // 2, x * 3)
    got = ga.reduce_by_key(arrays[0] // 2, arrays[1] * 3, consecutive=True)
    for mine, other in zip(got, want, strict=True):
        same_bits(backend, mine, other)
    counted = ga.reduce_by_key(backend.to_device(keys), lazy.full(n, np.int64(1)), consecutive=True)
    same_bits(backend, counted.aggregates, np.diff(np.append(heads_of(keys), n)))
    scan = ga.exclusive_scan_by_key(arrays[0], arrays[1] * 3, consecutive=True, dtype=np.float64)
    wanted = running_sums(keys, x.astype(np.float64) * 3)
    same_bits(backend, scan, wanted - x * 3.0)
    got = ga.reduce_by_key(arrays[0] + 1, arrays[1], consecutive=True, eq=lambda a, b: a == b)
    same_bits(backend, got.keys, summed_by_key(keys + 1, x)[0])


def test_dtype_and_init(backend: Backend) -> None:
    keys, x = in_runs(TILE + 9, 5), random_array(TILE + 9, np.dtype(np.int8))
    arrays = backend.to_device(keys), backend.to_device(x)
    _, sums = summed_by_key(keys, x.astype(np.int64))
    got = ga.reduce_by_key(*arrays, 1000, consecutive=True, dtype=np.int64)
    same_bits(backend, got.aggregates, sums + 1000)
    got = ga.reduce_by_key(*arrays, np.int64(5), consecutive=True)
    same_bits(backend, got.aggregates, sums + 5)
    scan = ga.inclusive_scan_by_key(*arrays, 7, consecutive=True, dtype=np.int16)
    same_bits(backend, scan, (running_sums(keys, x.astype(np.int16)) + 7).astype(np.int16))


@pytest.mark.parametrize("room", [0, 1, 100, 5000])
def test_room(backend: Backend, guarded: Any, room: int) -> None:
    """Nothing is written past the ends of outputs; the true count is told all the same."""
    keys, x = in_runs(2 * TILE + 9, 3), values(2 * TILE + 9)
    firsts, sums = summed_by_key(keys, x)
    outs = guarded((room,), np.int32), guarded((room,), np.float32)
    count = backend.to_device(np.zeros(1, np.int64))
    arrays = backend.to_device(keys), backend.to_device(x)
    got = ga.reduce_by_key(*arrays, consecutive=True, out=outs, out_count=count)
    assert got is outs
    assert int(backend.to_host(count)[0]) == len(firsts)
    shown = min(room, len(firsts))
    same_bits(backend, outs[0][:shown], firsts[:shown])
    same_bits(backend, outs[1][:shown], sums[:shown])


@settings(max_examples=examples(100, emulated=10), deadline=None)
@given(data=st.data())
def test_any_runs(backend: Backend, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 2 * TILE), max_size=6))
    keys = np.repeat(np.arange(len(lengths)) % 3, lengths).astype(np.int32)
    x = values(keys.size, data.draw(st.integers(0, 9)))
    arrays = backend.to_device(keys), backend.to_device(x)
    for mine, want in zip(
        ga.reduce_by_key(*arrays, consecutive=True), summed_by_key(keys, x), strict=True
    ):
        same_bits(backend, mine, want)
    same_bits(backend, ga.inclusive_scan_by_key(*arrays, consecutive=True), running_sums(keys, x))


@pytest.mark.parametrize("threads", [1, 3])
def test_cores_do_not_matter(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Sums that round are the same bits, whoever goes through the parts."""
    n = 300_007
    rng = np.random.default_rng(3)
    keys = np.repeat(np.arange(9, dtype=np.int32), n // 9 + 1)[:n]
    x = rng.standard_normal(n).astype(np.float32)
    with ga.default_device("cpu"):
        want = ga.reduce_by_key(keys, x, consecutive=True)
        scan = ga.inclusive_scan_by_key(keys, x, consecutive=True)
        monkeypatch.setattr("gpualgo._base.threads.num_threads", lambda: threads)
        again = ga.reduce_by_key(keys, x, consecutive=True)
        assert again.aggregates.tobytes() == want.aggregates.tobytes()
        assert ga.inclusive_scan_by_key(keys, x, consecutive=True).tobytes() == scan.tobytes()
