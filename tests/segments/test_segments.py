"""Segmented reductions and scans against a loop over NumPy's slices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import (
    DTYPES,
    INTEGERS,
    Backend,
    affine,
    assert_same,
    compose,
    random_array,
    sampled,
    scaled,
    special_values,
    summable,
)

import gpualgo as ga
from gpualgo import lazy
from gpualgo._algorithms.segments import cuda as launches
from gpualgo._algorithms.segments.problem import (
    SegmentedExclusiveScan,
    SegmentedReduction,
    SegmentedScan,
)

Array = np.ndarray[Any, Any]
SCANS = [ga.segmented_inclusive_scan, ga.segmented_exclusive_scan]
REDUCE, INCLUSIVE, EXCLUSIVE = ga.segmented_reduce, *SCANS
ALL = [REDUCE, *SCANS]
START = (3 << 32) | 7  # of compose
TILE = 256 * 8  # of a scan of uint64


def expected(f: Any, x: Array, offsets: Any, init: Any = None, op: Any = np.add) -> Array:
    """Return what a loop makes of slices; an empty segment without init gives 0.

    `init` is one start, or an array of one for each segment.
    """
    ends = [min(max(int(o), 0), len(x)) for o in offsets]
    found = []
    copied = x.copy()
    with np.errstate(all="ignore"):
        for begin, end in itertools.pairwise(ends):
            total = init if np.ndim(init) == 0 else init[len(found)]
            for i in range(begin, end):
                if f is EXCLUSIVE:
                    copied[i] = 0 if total is None else total
                total = x[i] if total is None else op(total, x[i])
                if f is INCLUSIVE:
                    copied[i] = total
            found.append(0 if total is None else total)
    return np.array(found, x.dtype) if f is REDUCE else copied


def cut(n: int, count: int, seed: int = 0) -> Array:
    """Return offsets of so many segments, many of them empty, others long."""
    rng = np.random.default_rng(seed)
    places = (rng.random(count + 1) ** 3 * n).astype(np.int64)
    return np.sort(np.concatenate([places[: count // 2], rng.integers(0, n + 1, count + 1)])[
        : count + 1
    ])  # fmt: skip


LARGE = scaled(140_003, emulated=9_001)
# About as many elements as one lane of a GPU folds, or several, or all of a warp.
SHARED = [n + i for n in (16, 32, 48, 64, 112, 224, 256, 512, 1024) for i in (-1, 0, 1)]
SHARED = [*SHARED, 0, 100, 3, 0, 40, *SHARED[::-1], *range(30, 40)]
CASES = {
    "nothing": (0, [0]),
    "no segments": (5, [3]),
    "of nothing": (0, [0, 0, 0]),
    "one": (1, [0, 1]),
    "between": (70, [3, 3, 40, 41, 41, 66]),
    "a warp": (33 * 33, np.arange(0, 33 * 33 + 1, 33)),
    "short": (2003, np.arange(0, 2004, 1)),
    "short of several": (2000, np.arange(0, 2001, 8)),
    "tiles": (2 * TILE + 1, [0, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1]),
    "a long one": (LARGE, [0, 1, 1, 2, LARGE - 3, LARGE - 2, LARGE]),
    "of several lanes": (sum(SHARED) + 9, np.cumsum([5, *SHARED])),
    "all kinds": (LARGE, cut(LARGE, scaled(3001, emulated=301))),
    "the whole": (LARGE, [0, LARGE]),
}


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("case", CASES)
def test_order(backend: Backend, f: Callable[..., Any], case: str) -> None:
    """Functions that are composed: each forgotten, doubled or exchanged would show."""
    n, places = CASES[case]
    x, offsets = affine((n,)), np.asarray(places)
    want = expected(f, x, offsets, np.uint64(START), compose)
    given = backend.to_device(x), backend.to_device(offsets)
    assert_same(backend.to_host(f(*given, np.uint64(START), compose)), want)


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "case", ["between", "tiles", "a long one", "of several lanes", "all kinds", "the whole"]
)
def test_launches_of_large_arrays(
    cuda: Backend, f: Callable[..., Any], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small arrays as if they were large, from one start and from one for each segment."""
    kinds = SegmentedReduction, SegmentedScan, SegmentedExclusiveScan
    n, places = CASES[case]
    x, offsets = affine((n,)), np.asarray(places)
    starts = affine((offsets.size - 1,), seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(launches, "ONE_LAUNCH_ITEMS", -1)
        for kind in kinds:
            kind.problems.clear()
        for init, given in ((np.uint64(START), np.uint64(START)), (starts, cuda.to_device(starts))):
            got = f(cuda.to_device(x), cuda.to_device(offsets), given, compose)
            assert_same(cuda.to_host(got), expected(f, x, offsets, init, compose))
    for kind in kinds:
        kind.problems.clear()


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("op", [lambda a, b: a, lambda a, b: b], ids=["first", "last"])
@pytest.mark.parametrize("case", ["all kinds", "of several lanes"])
def test_first_and_last(backend: Backend, f: Callable[..., Any], op: Any, case: str) -> None:
    n, places = CASES[case]
    x, offsets = random_array((n,), np.dtype("float32")), np.asarray(places)
    op = ga.Operator(op, identity=0)
    want = expected(f, x, offsets, None if f is not EXCLUSIVE else np.float32(0), op.fn)
    got = f(backend.to_device(x), backend.to_device(offsets), None, op)
    assert_same(backend.to_host(got), want)


def test_operators_that_are_said_to_commute(backend: Backend) -> None:
    """Their kernels, which add floats up in another order, are not those of the function itself."""

    def after(a: Any, b: Any) -> Any:
        """Compose functions x -> s x + t modulo 31, packed as 1024 s + t."""
        slope = (a // 1024) * (b // 1024) % 31
        return slope * 1024 + ((b // 1024) * (a % 1024) + b % 1024) % 31

    n, places = CASES["tiles"]
    slopes, shifts = np.random.default_rng(1).integers(1, 31, (2, n))
    x, offsets = (1024.0 * slopes + shifts), np.asarray(places)
    given = backend.to_device(x), backend.to_device(offsets), np.float64(1024)
    ga.segmented_reduce(*given, ga.Operator(after, commutative=True))
    got = ga.segmented_reduce(*given, after)
    assert_same(backend.to_host(got), expected(REDUCE, x, offsets, np.float64(1024), after))


@pytest.mark.parametrize(
    "case", ["between", "tiles", "a long one", "of several lanes", "all kinds"]
)
def test_sums(backend: Backend, case: str, guarded: Any) -> None:
    n, places = CASES[case]
    x, offsets = summable((n,), np.dtype("float32")), np.asarray(places, np.int32)
    given = backend.to_device(x), backend.to_device(offsets)
    for f in ALL:
        want = expected(f, x, offsets)
        assert_same(backend.to_host(f(*given)), want, zero_signs=False)
        out = guarded(want.shape, want.dtype)
        for _ in range(2):  # a warm call, too
            assert f(*given, out=out) is out
        assert_same(backend.to_host(out), want, zero_signs=False)


@pytest.mark.parametrize("length", [33, 225, 500, 513, 700, 1023, 1025])
@pytest.mark.parametrize("op", [np.add, lambda a, b: a + b], ids=["known", "any"])
def test_neighbours_decide_no_bits(cuda: Backend, op: Any, length: int) -> None:
    """A segment of sums that round has the same bits beside few segments and beside many."""
    n = 40_000
    x = np.random.default_rng(1).standard_normal(n).astype(np.float32)
    given, init = cuda.to_device(x), np.float32(0)
    found = set()
    for others in ([n // 2, n], range(length, n + 1, 7), range(length + 40, n, 90)):
        offsets = np.array([0, length, *others])
        found.add(cuda.to_host(ga.segmented_reduce(given, cuda.to_device(offsets), init, op))[0])
    assert len(found) == 1


@pytest.mark.parametrize("dtype", sampled(DTYPES), ids=str)
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    """Sums of which each is exact, or wraps."""
    n = 4 * 300
    x = summable((n,), dtype)
    offsets = np.array([0, 5, 5, 30, 32, 100, 101, 700, n])
    given = backend.to_device(x), backend.to_device(offsets)
    op = np.logical_or if dtype.kind == "b" else np.add
    narrow = dtype.itemsize == 2 and dtype.kind not in "iu"
    if narrow:  # whose sums of many are not exact
        offsets = np.arange(0, n + 1, 30)
        given = given[0], backend.to_device(offsets)
    for f in ALL:
        want = expected(f, x, offsets, None, op)
        assert_same(backend.to_host(f(*given, None, op)), want, zero_signs=False)


@pytest.mark.parametrize("index", sampled(INTEGERS, ("int8", "uint64")), ids=str)
def test_dtypes_of_offsets(backend: Backend, index: np.dtype[Any]) -> None:
    x = summable((100,), np.dtype("float32"))
    offsets = np.array([2, 2, 50, 51, 99], index)
    every_other = np.repeat(offsets, 2)
    for f in ALL:
        want = expected(f, x, offsets)
        for given in (backend.to_device(offsets), backend.to_device(every_other)[::2]):
            got = f(backend.to_device(x), given)
            assert_same(backend.to_host(got), want, zero_signs=False)


def test_special_values(backend: Backend) -> None:
    """NaN and infinities stay in their segments, and no zero is added to one."""
    values = special_values(np.dtype("float32"))
    x = np.repeat(values, 2)
    offsets = np.arange(0, len(x) + 1, 2)
    given = backend.to_device(x), backend.to_device(offsets)
    for f in (REDUCE, INCLUSIVE):
        assert_same(backend.to_host(f(*given)), expected(f, x, offsets))
    ones = backend.to_device(np.arange(len(x) + 1))
    assert_same(backend.to_host(REDUCE(given[0], ones)), x)
    assert_same(backend.to_host(INCLUSIVE(given[0], ones)), x)


class Point(NamedTuple):
    x: Any
    y: Any


def joined(a: Any, b: Any) -> Any:
    return Point(a.x * b.x, a.y * b.x + b.y)


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_tuples(backend: Backend, f: Callable[..., Any]) -> None:
    """Affine functions, which do not commute; one of their numbers is broadcast."""
    n, places = scaled(5003, emulated=701), [1, 1, 30, 31, 90, 690]
    x, y = np.array([3], np.int64), random_array((n,), np.dtype("int32"))
    given = Point(backend.to_device(x), backend.to_device(y))
    got = f(given, backend.to_device(np.array(places)), Point(1, 5), joined)
    assert type(got) is Point
    whole = [(3, int(b)) for b in y]
    found, totals = list(whole), []
    for begin, end in itertools.pairwise(places):
        total = (1, 5)
        for i in range(begin, end):
            found[i] = total
            slope, shift = whole[i]
            total = total[0] * slope, total[1] * slope + shift
            if f is INCLUSIVE:
                found[i] = total
        totals.append(total)
    for k, (field, unsigned) in enumerate((("x", np.uint64), ("y", np.uint32))):
        mask = int(np.iinfo(unsigned).max)
        numbers = [pair[k] & mask for pair in (totals if f is REDUCE else found)]
        want = np.array(numbers, unsigned).view((x, y)[k].dtype)
        assert_same(backend.to_host(getattr(got, field)), want)


def test_records_and_lazy_inputs(backend: Backend) -> None:
    x = np.arange(500, dtype=np.int32)
    offsets = backend.to_device(np.array([4, 40, 40, 400]))
    twice = lazy.asarray(backend.to_device(x)) * 2
    for f in ALL:
        want = expected(f, x * 2, [4, 40, 40, 400])
        assert_same(backend.to_host(f(twice, offsets)), want)
    if backend.xp is np:
        record = np.zeros(500, [("a", np.int32), ("b", np.int64)])
        record["a"], record["b"] = x, 1
        got = REDUCE(record, offsets, (0, 0), lambda p, q: (p[0] + q[0], p[1] + q[1]))
        assert got.dtype.names == ("a", "b")
        assert_same(got["a"], expected(REDUCE, x, [4, 40, 40, 400]))
        assert_same(got["b"], np.array([36, 0, 360]))
    lazily = lazy.asarray(offsets) * 1
    assert_same(
        backend.to_host(REDUCE(backend.to_device(x), lazily)),
        expected(REDUCE, x, [4, 40, 40, 400]),
    )


def test_wider_accumulator(backend: Backend) -> None:
    x = np.full(1000, 100, np.int8)
    offsets = np.array([0, 10, 999])
    given = backend.to_device(x), backend.to_device(offsets)
    for f in ALL:
        want = expected(f, x.astype(np.int64), offsets)
        assert_same(backend.to_host(f(*given, dtype=np.int64)), want)


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("op", [np.add, lambda a, b: a + b], ids=["known", "unknown"])
def test_cores(f: Callable[..., Any], op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of floats have the same bits, however many cores the CPU has."""
    n = 500_003
    x, offsets = random_array((n,), np.dtype("float32")), cut(n, 300)
    offsets = np.sort(np.append(offsets, [0, n // 3, n]))
    found = []
    with ga.default_device("cpu"):
        for threads in ("1", "3"):
            monkeypatch.setenv("GPUALGO_NUM_THREADS", threads)
            found.append(f(x, offsets, 0.5, op))
    assert found[0].tobytes() == found[1].tobytes()
