"""run_length_encode and unique against NumPy."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import (
    BFLOAT16,
    DTYPES,
    Array,
    Backend,
    a_few,
    assert_same,
    random_array,
    sampled,
    scaled,
)

import gpualgo as ga
from gpualgo import lazy

TILE = 6144  # float32 elements, on a GPU
SIZES = [0, 1, 31, 33, 2047, 2049, TILE - 1, TILE + 1, 2 * TILE + 77,
         scaled(300_007, emulated=40_001)]  # fmt: skip
Point = namedtuple("Point", "x y")
Make = Callable[..., Array]


def in_runs(n: int, most: int, dtype: Any = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    """Return runs of up to so many elements: of few values, zeros and NaN of both signs."""
    rng = np.random.default_rng(seed)
    few = random_array(4, np.dtype(dtype), 1)
    if few.dtype.kind in "fc" or few.dtype == BFLOAT16:
        few = np.append(few[:2], np.array([0.0, -0.0, np.nan, -np.nan])).astype(dtype)
    count = 8 * n // (most + 1) + 1  # of runs: four times as many as n elements need
    return np.resize(
        np.repeat(few[rng.integers(0, len(few), count)], rng.integers(1, most + 1, count)), n
    )


def encoded(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the first elements of runs, and their lengths."""
    if not x.size:
        return x, np.zeros(0, np.int64)
    same = (x[1:] == x[:-1]) | ((x[1:] != x[1:]) & (x[:-1] != x[:-1]))
    heads = np.flatnonzero(np.append([True], ~same))
    return x[heads], np.diff(np.append(heads, x.size))


def same(backend: Backend, got: Any, want: np.ndarray[Any, Any]) -> None:
    """Assert equality of all bits."""
    got = backend.to_host(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def check(backend: Backend, got: Any, x: np.ndarray[Any, Any]) -> None:
    for mine, want in zip(got, encoded(x), strict=True):
        same(backend, mine, want)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("most", [1, 5, 9000])
def test_sizes(backend: Backend, n: int, most: int) -> None:
    x = in_runs(n, most)
    given = backend.to_device(x)
    check(backend, ga.run_length_encode(given), x)
    same(backend, ga.unique(given, consecutive=True), encoded(x)[0])


@pytest.mark.parametrize("dtype", sampled(DTYPES, ("bool", "int8", "bfloat16", "complex128")),
                         ids=str)  # fmt: skip
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = in_runs(scaled(20_021, emulated=9001), 5, dtype)
    check(backend, ga.run_length_encode(backend.to_device(x)), x)


def test_tuples_and_lazy_inputs(backend: Backend) -> None:
    x, y = in_runs(9001, 9, "int8"), in_runs(9001, 9, "float64", 3)
    pair = backend.to_device(x), backend.to_device(y)
    which = np.unique(np.stack([x, np.where(np.isnan(y), 7e7, y)]), axis=1, return_inverse=True)[1]
    _, lengths = encoded(which)
    starts = np.cumsum(lengths) - lengths
    (first, second), found = ga.run_length_encode(pair)
    same(backend, first, x[starts])
    same(backend, second, y[starts])
    same(backend, found, lengths)
    check(backend, ga.run_length_encode(lazy.asarray(pair[0]) // 2), x // 2)
    with pytest.raises(TypeError, match="eq must be callable"):  # though one without it was called
        ga.run_length_encode(pair, eq={})
    values, found = ga.run_length_encode(lazy.arange(9001) // 100)
    assert (values.tolist(), found.tolist()) == (list(range(91)), [100] * 90 + [1])


def test_equality_of_the_caller(backend: Backend) -> None:
    """Of an element and the one before: not an equivalence, in the order of elements."""
    x = np.cumsum(random_array(9001, np.dtype("int8")).astype(np.int32) % 7)
    given, step = backend.to_device(x), 3
    for step in (3, 5):
        heads = np.append([0], 1 + np.flatnonzero(x[1:] - x[:-1] > step))
        values, lengths = ga.run_length_encode(given, eq=lambda a, b, s=step: b - a <= s)
        same(backend, values, x[heads])
        same(backend, lengths, np.diff(np.append(heads, x.size)))
    flags = x % 5 > 0
    heads = np.append([0], 1 + np.flatnonzero(~(flags[1:] | flags[:-1])))
    values, lengths = ga.run_length_encode(backend.to_device(flags), eq=np.logical_or)
    same(backend, values, flags[heads])
    same(backend, lengths, np.diff(np.append(heads, x.size)))


@pytest.mark.parametrize("extra", [3, 0, -1])
def test_outputs(backend: Backend, guarded: Make, extra: int) -> None:
    x = in_runs(20_011, 4)
    values, lengths = encoded(x)
    size, given = len(values) + extra, backend.to_device(x)
    for layout in a_few(("contiguous", "step", "reversed")):
        outs = guarded((size,), x.dtype, layout), guarded((size,), np.int64, layout)
        count = backend.to_device(np.zeros((), np.int64))
        assert ga.run_length_encode(given, out=outs, out_count=count) is outs
        assert int(backend.to_host(count)) == len(values)
        same(backend, outs[0][: len(values)], values[:size])
        same(backend, outs[1][: len(values)], lengths[:size])
    if extra < 0:
        with pytest.raises(ValueError, match=rf"out has room for {size} .* has {len(values)}"):
            ga.run_length_encode(given, out=outs)
    else:
        check(backend, ga.run_length_encode(given, out=outs), x)


@pytest.mark.parametrize("dtype", sampled(("bool", "int16", "float32", "bfloat16"), ("int16",)))
def test_unique(backend: Backend, dtype: str) -> None:
    x = in_runs(scaled(10_007, emulated=3001), 3, dtype)[::-1]
    given = backend.to_device(np.ascontiguousarray(x))
    if dtype != "bfloat16":  # of which NumPy does not know that NaN are alike
        for flags in itertools.product((False, True), repeat=3):
            more = dict(
                zip(("return_index", "return_inverse", "return_counts"), flags, strict=True)
            )
            got, want = ga.unique(given, **more), np.unique(x, **more)
            got, want = (got, want) if any(flags) else ((got,), (want,))
            for mine, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(backend.to_host(mine), other)
                assert mine.dtype == other.dtype
    first = {}
    for value in x.tolist():
        first.setdefault("nan" if value != value else value, value)
    found = backend.to_host(ga.unique(given)).tolist()
    assert [repr(v) for v in found] == [repr(first["nan" if v != v else v]) for v in found]
    assert len(found) == len(first)


def test_unique_of_several_axes(backend: Backend) -> None:
    x = in_runs(600, 3, "int32").reshape(20, 30)
    given = backend.to_device(x)
    for consecutive in (False, True):
        values, index, inverse, counts = map(backend.to_host, ga.unique(
            given.T, consecutive=consecutive, return_index=True, return_inverse=True,
            return_counts=True,
        ))  # fmt: skip
        flat = x.T.reshape(-1)
        np.testing.assert_array_equal(values[inverse], x.T)
        np.testing.assert_array_equal(flat[index], values)
        assert counts.sum() == 600
    same(backend, values, encoded(flat)[0])


def test_unique_of_tuples(backend: Backend) -> None:
    """Namedtuples, broadcast and nested ones, structured arrays."""
    x, y = in_runs(600, 3, "int32"), np.arange(600, dtype=np.int8) % 3
    pair = Point(backend.to_device(x), backend.to_device(y))
    flags = {"return_index": True, "return_inverse": True, "return_counts": True}
    for consecutive in a_few((False, True)):
        found, index, inverse, counts = ga.unique(pair, consecutive=consecutive, **flags)
        assert type(found) is Point
        index, inverse, counts = map(backend.to_host, (index, inverse, counts))
        for mine, all_of_it in zip(map(backend.to_host, found), (x, y), strict=True):
            np.testing.assert_array_equal(mine[inverse], all_of_it)
            np.testing.assert_array_equal(all_of_it[index], mine)
        assert counts.sum() == 600
        nested = ga.unique(((pair.x, pair.y), pair.x), consecutive=consecutive, **flags)
        np.testing.assert_array_equal(backend.to_host(nested[2]), inverse)
    table = backend.to_device(np.array([[1], [2]])), backend.to_device(np.array([[1, 2, 1]]))
    assert backend.to_host(ga.unique(table, return_inverse=True)[1]).tolist() == [
        [0, 1, 0],
        [2, 3, 2],
    ]
    points = np.zeros(600, [("x", "i4"), ("y", "i1")])
    points["x"], points["y"] = x, y
    found, inverse = ga.unique(points, return_inverse=True)
    assert found.dtype == points.dtype
    assert found[inverse].tobytes() == points.tobytes()
    if backend.xp is not np:
        with pytest.raises(TypeError, match=r"^unique: x\[0\] is the number 1 next to arrays"):
            ga.unique((1, pair.x))
        return
    number = ga.unique((1, x), return_inverse=True)[1]
    np.testing.assert_array_equal(number, np.unique(x, return_inverse=True)[1])


@pytest.mark.parametrize("fields", [5, 8])
def test_unique_of_tuples_of_many(backend: Backend, fields: int) -> None:
    """The inverse compares twice as many arrays as an algorithm reads."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, 500).astype(f"i{1 << i % 4}") for i in range(fields)]
    columns[0] = columns[0].astype(float)
    x = tuple(map(backend.to_device, columns))
    for consecutive in a_few((False, True)):
        found, inverse = ga.unique(x, consecutive=consecutive, return_inverse=True)
        for mine, column in zip(found, columns, strict=True):
            assert_same(backend.to_host(mine)[backend.to_host(inverse)], column)


def test_counts_of_64_bits(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, kinds: list[str]
) -> None:
    """Those of 2^32 elements, of fewer; problems of a size of their own."""
    from gpualgo._algorithms.select import cuda as tuning

    monkeypatch.setattr(tuning, "NARROW_COUNTS", 1)
    x = in_runs(5 * TILE + 91, 7, "int32")
    given = cuda.to_device(x)
    check(cuda, ga.run_length_encode(given), x)
    kept, rest = ga.stable_partition(given, lambda a: a > 0)
    same(cuda, kept, x[x > 0])
    same(cuda, rest, x[x <= 0])
    same(cuda, ga.select(given, lambda a: a > 0), x[x > 0])
    assert sum("gpualgo::uint64" in kind for kind in set(kinds)) == 3


def test_graphs(cuda: Backend) -> None:
    x = in_runs(9001, 5, "int32")
    given, count = cuda.to_device(x), cuda.to_device(np.zeros((), np.int64))
    outs = cuda.to_device(np.zeros(9001, np.int32)), cuda.to_device(np.zeros(9001, np.int64))
    with ga.graph() as g:
        assert ga.unique(given, out=outs[0], out_count=count) is outs[0]
    g.launch()
    same(cuda, outs[0][: int(cuda.to_host(count))], np.unique(x))
    with ga.graph() as g:
        ga.run_length_encode(given, out=outs, out_count=count)
    x = in_runs(9001, 3, "int32", 5)
    given[...] = cuda.to_device(x)
    g.launch()
    check(cuda, [out[: int(cuda.to_host(count))] for out in outs], x)


@pytest.mark.usefixtures("cuda")
def test_what_cannot_be_recorded() -> None:
    """It is told by this call's name, whichever other does the work."""
    with pytest.raises(RuntimeError, match=r"^unique: an array is pageable host"), ga.graph():
        ga.unique(np.arange(3), return_inverse=True)
