"""Calls by key that capture, that are recorded, and of tuples of all kinds."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from by_key.reference import (
    in_runs,
    reduced_by_key,
    running_sums,
    same_bits,
    summed_by_key,
    values,
)
from support import Backend

import gpualgo as ga
from gpualgo import lazy
from gpualgo._algorithms.by_key import cpu
from gpualgo._algorithms.by_key import cuda as tuning
from gpualgo._algorithms.by_key.problem import InclusiveScan, Reduction


@pytest.mark.parametrize("op", ["known", "lambda"])
def test_what_equality_captures(backend: Backend, op: str) -> None:
    """A number, and an array; another value of the number is another result."""
    keys, x = np.arange(5003, dtype=np.int32) % 97, values(5003)
    table = backend.to_device(np.arange(97, dtype=np.int32) % 7)
    add = None if op == "known" else lambda a, b: a + b
    arrays = backend.to_device(keys), backend.to_device(x)
    for limit in (1, 3):

        def near(a: Any, b: Any, limit: int = limit) -> Any:
            return b - a < limit and a <= b

        def same_row(a: Any, b: Any, limit: int = limit) -> Any:
            return table[a] // limit == table[b] // limit

        given = {} if add is None else {"op": add}
        got = ga.reduce_by_key(*arrays, consecutive=True, eq=near, **given)
        wanted = reduced_by_key(keys.tolist(), x.tolist(), lambda a, b: a + b, None, near)
        same_bits(backend, got.keys, np.array(wanted[0], np.int32))
        same_bits(backend, got.aggregates, np.array(wanted[1], np.float32))
        got = ga.reduce_by_key(*arrays, consecutive=True, eq=same_row, **given)
        rows = np.arange(97) % 7 // limit
        same_bits(backend, got.aggregates, summed_by_key(rows[keys], x)[1])


def test_structured_arrays(backend: Backend) -> None:
    """Keys and values are given back as they came."""
    if backend.xp is not np:
        pytest.skip("CuPy has none")
    keys = np.zeros(999, [("day", "i4"), ("hour", "i1")])
    keys["day"], keys["hour"] = in_runs(999, 9), in_runs(999, 3, 1)
    x = np.zeros(999, [("low", "f4"), ("high", "f8")])
    x["low"] = x["high"] = values(999)
    got = ga.reduce_by_key(keys, x, None, lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
                           consecutive=True)  # fmt: skip
    assert got.keys.dtype == keys.dtype
    assert got.aggregates.dtype == x.dtype
    pairs = list(zip(keys["day"].tolist(), keys["hour"].tolist(), strict=True))
    firsts, lows = reduced_by_key(pairs, x["low"].tolist(), min)
    assert list(map(tuple, got.keys.tolist())) == firsts
    assert got.aggregates["low"].tolist() == lows


@pytest.mark.parametrize("consecutive", [True, False])
def test_namedtuples(backend: Backend, consecutive: bool) -> None:
    """Of other classes with the same fields, too."""
    when, what = namedtuple("when", "a b"), namedtuple("what", "a b")
    keys = when(*map(backend.to_device, (in_runs(99, 9), in_runs(99, 3, 1))))
    x = what(*map(backend.to_device, (values(99), values(99, 2))))
    for given in (x, lazy.transform(lambda p: what(p.a * 1, p.b), x)):
        got = ga.reduce_by_key(keys, given, None, lambda p, q: p, consecutive=consecutive)
        assert type(got) is ga.ReducedByKey
        assert type(got.keys) is when
        assert type(got.aggregates) is what
        assert got.keys.a.shape == got.aggregates.b.shape
        same_bits(backend, got.keys.a[:1], backend.to_host(keys.a)[:1] * consecutive)
        scan = ga.inclusive_scan_by_key(keys, given, None, lambda p, q: q, consecutive=consecutive)
        assert type(scan) is what
        same_bits(backend, scan.a, backend.to_host(x.a))


def test_counts_of_64_bits(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer elements than need them."""
    monkeypatch.setattr(tuning, "NARROW_COUNTS", 1)
    keys, x = in_runs(9011, 3), values(9011)
    got = ga.reduce_by_key(cuda.to_device(keys), cuda.to_device(x), consecutive=True)
    for mine, want in zip(got, summed_by_key(keys, x), strict=True):
        same_bits(cuda, mine, want)


@pytest.mark.parametrize("consecutive", [True, False])
def test_recorded(cuda: Backend, consecutive: bool) -> None:
    """Reductions with out_count, and scans; a launch reads what the arrays then hold."""
    n = 2003
    keys, x = cuda.to_device(in_runs(n, 3)), cuda.to_device(values(n))
    out = cuda.to_device(np.zeros(n, np.int32)), cuda.to_device(np.zeros(n, np.float32))
    count = cuda.to_device(np.zeros((), np.int64))
    more: Any = {"consecutive": consecutive}
    with ga.graph() as graph:
        ga.reduce_by_key(keys, x, out=out, out_count=count, **more)
        scan = ga.inclusive_scan_by_key(keys, x, **more)
    for seed in (2, 3):
        host_keys, host_x = in_runs(n, 3, seed), values(n, seed)
        keys[...], x[...] = cuda.to_device(host_keys), cuda.to_device(host_x)
        graph.launch()
        found = int(cuda.to_host(count))
        order = np.arange(n) if consecutive else np.argsort(host_keys, kind="stable")
        firsts, sums = summed_by_key(host_keys[order], host_x[order])
        assert found == len(firsts)
        same_bits(cuda, out[0][:found], firsts)
        same_bits(cuda, out[1][:found], sums)
        back = np.argsort(order)
        same_bits(cuda, scan, running_sums(host_keys[order], host_x[order])[back])


@pytest.mark.parametrize("kinds", [("i4", "f4"), ("i8", "f8"), ("i1", "i2")])
def test_plans_of_keys_in_any_order(backend: Backend, kinds: tuple[str, str]) -> None:
    """They serve other elements, tell their storage, and are explained."""
    n = 1003
    given = [(values(n, s).astype(kinds[0]), values(n, s + 9).astype(kinds[1])) for s in (1, 2)]
    placed = [tuple(map(backend.to_device, pair)) for pair in given]
    reduced = ga.prepare(ga.reduce_by_key, *placed[0])
    scanned = ga.prepare(ga.exclusive_scan_by_key, *placed[0])
    if backend.name != "cpu":
        item_bytes = given[0][0].itemsize + given[0][1].itemsize
        assert reduced.temp_storage_bytes >= n * item_bytes
        assert scanned.temp_storage_bytes >= n * (item_bytes + 4)
    for (keys, x), arrays in zip(given, placed, strict=True):
        order = np.argsort(keys, kind="stable")
        firsts, sums = summed_by_key(keys[order], x[order])
        found = reduced(*arrays)
        same_bits(backend, found.keys, firsts)
        same_bits(backend, found.aggregates, sums)
        back = np.argsort(order)
        running = running_sums(keys[order], x[order])[back]
        same_bits(backend, scanned(*arrays), running - x)
    for function in (ga.reduce_by_key, ga.inclusive_scan_by_key):
        assert "sort" in str(ga.explain(function, *placed[0]))


def test_bits_do_not_depend_on_the_grid(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on how arrays lie, or whether they are computed: sums that round are the same bits."""
    n = 30_011
    rng = np.random.default_rng(5)
    keys = np.repeat(np.arange(7), [1, 9000, 4097, 3, 9001, 100, n])[:n].astype(np.int32)
    x = rng.standard_normal(n).astype(np.float32)
    arrays = cuda.to_device(keys), cuda.to_device(x)
    strided = cuda.arrange("step", keys), cuda.arrange("reversed", x)
    computed = lazy.asarray(arrays[0]) * 1, arrays[1]
    for function in (ga.reduce_by_key, ga.inclusive_scan_by_key):

        def bits(given: Any, function: Any = function) -> bytes:
            found = function(*given, consecutive=True)
            last = found[1] if isinstance(found, tuple) else found
            return cuda.to_host(last).tobytes()

        want = bits(arrays)
        assert bits(strided) == bits(computed) == want
        with monkeypatch.context() as patch:
            patch.setattr(tuning, "SM_THREADS", {1 << 30: 256})
            function_problems = [kind.problems for kind in (Reduction, InclusiveScan)]
            for problems in function_problems:
                problems.clear()
            assert bits(arrays) == want
        for problems in function_problems:
            problems.clear()


def test_one_memory_serves_sorts_of_all_lengths() -> None:
    """On the CPU; keys in any order are sorted in it."""
    cpu._kept.clear()
    rng = np.random.default_rng(0)
    with ga.default_device("cpu"):
        for n in (3000, 500, 3001, 40):
            keys, x = rng.integers(0, 9, n), rng.integers(0, 99, n)
            found = ga.inclusive_scan_by_key(keys, x)
            want = [x[: i + 1][keys[: i + 1] == keys[i]].sum() for i in range(n)]
            np.testing.assert_array_equal(found, want)
            (memory,) = cpu._kept
            assert not np.may_share_memory(memory, found)
        assert memory.size < 4 * 8 * 3001 + 512
        keys = rng.integers(0, 1 << 60, cpu.KEPT_BYTES // 8)  # too wide a range for tables
        ga.reduce_by_key(keys, keys)
        assert not cpu._kept, "what it took is too large to be kept"
