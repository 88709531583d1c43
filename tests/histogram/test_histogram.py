"""histogram over whole arrays, against np.histogram and an exact count in Python.

One file of more than 300 lines: its tests share the exact count and the ways to put samples.
"""

from __future__ import annotations

import bisect
import warnings
from typing import Any

import numpy as np
import pytest
import support
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from support import (
    BFLOAT16,
    FLOATS,
    INTEGERS,
    REAL,
    Backend,
    assert_same,
    need_memory,
    random_array,
    scaled,
    special_values,
)

import gpualgo as ga

NUMBERS = (1, 2, 3, 32, 255, 256, 257, 2048, 4096, 4097, 10_000, 65_536, 100_000, 2**21)
SIZES = (0, 1, 2, 31, 32, 33, 255, 256, 257, 2047, 2049, 4095, 4096, 4097, 100_003, 1_000_003)
NATIVE = tuple(dtype for dtype in REAL if dtype != BFLOAT16)  # np.histogram takes them
WIDE = (np.float64(-20.0), np.float64(20.0))  # with these ends every dtype has float64 edges


def counted(backend: Backend, x: Any, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
    return backend.to_host(ga.histogram(backend.to_device(x), *args, **kwargs))


def by_numpy(x: np.ndarray[Any, Any], bins: Any, ends: Any = None) -> np.ndarray[Any, Any]:
    if x.dtype == np.float16 and not isinstance(bins, int):
        x = x.astype(np.float32)  # NumPy sorts it, and 2.4 sorts float16 wrongly with AVX-512
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bool is counted as uint8
        return np.histogram(x, bins, ends)[0].astype(np.int64)


def exactly(x: np.ndarray[Any, Any], edges: Any) -> np.ndarray[Any, Any]:
    """Count as the definition says, comparing Python's numbers, which are never rounded."""
    numbers = x.astype(np.float64) if x.dtype == BFLOAT16 else x
    limits = np.asarray(edges).tolist() if isinstance(edges, np.ndarray) else list(edges)
    counts = np.zeros(len(limits) - 1, np.int64)
    for value in numbers.ravel().tolist():
        if limits[0] <= value <= limits[-1]:
            counts[min(bisect.bisect_right(limits, value), len(limits) - 1) - 1] += 1
    return counts


def samples(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return random values, a third of them small, as most integers would be out of every range."""
    x = random_array(n, dtype)
    x[::3] = (np.arange(0, n, 3) % 16).astype(dtype)
    return x


def around(edges: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return each edge in dtype, and its neighbours above and below."""
    near = edges.astype(dtype)
    ends = [np.nextafter(near, np.array(end, dtype)) for end in (-np.inf, np.inf)]
    return np.concatenate([near, *ends])


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_dtype_and_number_of_bins(
    backend: Backend, dtype: np.dtype[Any], number: int
) -> None:
    x = samples(9001, dtype)
    want = by_numpy(x.astype(np.float64) if dtype == BFLOAT16 else x, number, WIDE)
    assert_same(counted(backend, x, number, WIDE), want)


@pytest.mark.parametrize("number", [1, 7, 256])
@pytest.mark.parametrize("dtype", NATIVE, ids=str)
def test_range_of_the_data(backend: Backend, dtype: np.dtype[Any], number: int) -> None:
    x = random_array(5003, dtype)
    assert_same(counted(backend, x, number), by_numpy(x, number))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("number", [1, 10, 60])
def test_range_of_the_data_by_its_edges(
    backend: Backend, dtype: np.dtype[Any], number: int
) -> None:
    """NumPy's own counts of bfloat16 are off its edges here and there."""
    x = random_array(3001, dtype)
    assert_same(counted(backend, x, number), exactly(x, np.histogram_bin_edges(x, number)))


RANGES: list[Any] = [
    (0, 1),
    (0.1, 0.7),
    (-17.25, -3.1),
    (-1e-3, 1e3),
    (1000.0, 1000.25),
    (1e-30, 3e-30),
    (-1e30, 1e30),
    (np.float32(0.1), np.float32(0.9)),
    (np.float32(0.3), 5),
    (np.float64(-0.1), np.float64(0.9)),
    (np.int16(-3), np.int64(40)),
    (5, 5),
    (-0.0, 0.0),
    [-1, np.float64(1e9)],
    np.array([-2.5, 2.5]),
]


def told_apart(edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return edges; ValueError where some are equal, as NumPy raises from 2.2 on."""
    if np.isfinite(edges).all() and not (edges[:-1] < edges[1:]).all():
        raise ValueError("some edges are equal")
    return edges


@pytest.mark.parametrize("number", [1, 3, 49, 256, 1000])
@pytest.mark.parametrize("ends", RANGES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_samples_at_edges(backend: Backend, dtype: str, ends: Any, number: int) -> None:
    """On the edges and one step to either side, where a rounded bin would be wrong."""
    with np.errstate(all="ignore"):
        try:
            edges = told_apart(np.histogram_bin_edges(np.empty(0, dtype), number, tuple(ends)))
        except ValueError:
            with pytest.raises(ValueError, match=r"^histogram: .*fewer bins"):
                ga.histogram(backend.to_device(np.zeros(3, dtype)), number, ends)
            return
        x = around(edges, dtype)
    if not np.isfinite(edges).all():
        with pytest.raises(ValueError, match=r"^histogram: .*range"):
            ga.histogram(backend.to_device(x), number, ends)
        return
    assert_same(counted(backend, x, number, ends), exactly(x, edges))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("number", [1, 3, 64, 300])
def test_integers_at_edges(backend: Backend, dtype: np.dtype[Any], number: int) -> None:
    limits = np.iinfo(dtype)
    for lo, hi in [(-5, 120), (-5.5, 100.25), (0.1, 0.7), (limits.min, limits.max), (-300, 300)]:
        edges: Any = np.linspace(lo, hi, number + 1).tolist()
        edges[0], edges[-1] = lo, hi  # integers are not rounded to the edges' float64
        values = {int(e) + d for e in edges for d in (-1, 0, 1)} | {limits.min, limits.max}
        x = np.array([v for v in sorted(values) if limits.min <= v <= limits.max], dtype)
        assert_same(counted(backend, x, number, (lo, hi)), exactly(x, edges))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_no_float_holds(backend: Backend, dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    x = np.array([top - d for d in range(6000)], dtype)
    assert_same(counted(backend, x, 1, (top - 4000, top)), np.array([4001]))
    assert counted(backend, x, 1)[0] == 6000  # no sample is lost at its own range
    edges = np.array([top - 700, top - 699, top - 3, top - 3, top], dtype)
    assert_same(counted(backend, x, edges), np.array([1, 696, 0, 4]))
    assert_same(counted(backend, x // x.dtype.type(3), edges), np.zeros(4, np.int64))
    halves = [float(2**62), float(2**62 + 2**10), float(2**62 + 2**11)]
    near = np.array([2**62 - 1, 2**62, 2**62 + 1023, 2**62 + 1024, 2**62 + 2048], dtype)
    assert_same(counted(backend, near, halves), np.array([2, 2]))
    assert_same(counted(backend, near, 2, (halves[0], halves[2])), np.array([2, 2]))


EDGES: dict[str, Any] = {
    "one bin": [0, 1],
    "uniform": np.linspace(-10, 10, 41),
    "uniform integers": np.arange(-128, 128),
    "unsigned": np.array([0, 10, 200, 250], np.uint8),
    "not uniform": [-7.5, -7.25, 0.1, 0.2, 30.0],
    "repeated": [-3, 0, 0, 0, 2, 5, 5],
    "all equal": [2.0, 2.0, 2.0],
    "infinite": [-np.inf, -1.0, 1.5, np.inf],
    "nothing but infinity": [-np.inf, np.inf],
    "logarithmic": np.geomspace(1e-6, 1e6, 301),
    "random": np.sort(np.random.default_rng(1).normal(size=5000)),
    "half": np.array([-4, 0.5, 0.75, 9], np.float16),
    "single": np.linspace(-3, 3, 1000, dtype=np.float32),
    "beyond the dtype": [-1e300, 300, 70_000, 1e300],
    "out of reach": [1e300, 2e300],
    "booleans": np.array([False, True]),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_explicit_edges(backend: Backend, dtype: np.dtype[Any], name: str) -> None:
    x = np.concatenate([samples(3001, dtype), special_values(dtype)])
    edges = np.asarray(EDGES[name])
    assert_same(counted(backend, x, EDGES[name]), exactly(x, edges))
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            x = around(edges, dtype)
        assert_same(counted(backend, x, backend.to_device(edges)), exactly(x, edges))


def test_edges_of_bfloat16(backend: Backend) -> None:
    edges = np.array([-3, 0.5, 0.75, 40]).astype(BFLOAT16)
    for dtype in REAL:
        x = random_array(999, dtype)
        assert_same(counted(backend, x, edges), exactly(x, edges.astype(np.float64)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_infinity_and_zeros(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -np.nan], dtype)
    assert_same(counted(backend, x, 4, (0.0, 1.0)), np.array([2, 0, 0, 1]))
    assert_same(counted(backend, x, 4, (-1.0, -0.0)), np.array([0, 0, 0, 2]))
    assert_same(counted(backend, x, [-np.inf, -0.0, np.inf]), np.array([1, 4]))
    assert_same(counted(backend, x, [0.0, 0.0, 5.0]), np.array([0, 3]))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_sizes(backend: Backend, n: int, dtype: str) -> None:
    x = np.random.default_rng(n).integers(-3, 120, n).astype(dtype)
    for bins in (7, [-1, 0, 5, 99, 119]):
        ends = (-10, 100) if bins == 7 else None
        assert_same(counted(backend, x, bins, ends), by_numpy(x, bins, ends))
    if n == 0:
        assert_same(counted(backend, x, 3), np.zeros(3, np.int64))


@pytest.mark.parametrize("number", [2, 256, 4096, 65_536])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_skewed_samples(backend: Backend, dtype: str, number: int) -> None:
    """All samples in one bin, or in two: no counter may lose one."""
    n = 300_007
    two = np.where(np.random.default_rng(0).random(n) < 0.5, 3, 100)
    for samples in (np.full(n, 3), two, np.full(n, 0), np.full(n, 127)):
        x = samples.astype(dtype)
        assert_same(counted(backend, x, number, (0, 127)), by_numpy(x, number, (0, 127)))


def test_many_bins_of_a_sorted_ramp(backend: Backend) -> None:
    """Each bin holds a known number of samples."""
    for number in scaled((50_000, 2**20), emulated=(50_000,)):
        times = scaled(3, emulated=1)
        x = np.repeat(np.arange(number, dtype=np.float32), times)
        assert_same(counted(backend, x, number, (0, number)), np.full(number, times))


def test_the_rule_of_mixed_dtypes(backend: Backend) -> None:
    x = random_array(4001, np.dtype("float32"))
    for ends in [(np.float64(-0.1), np.float64(0.9)), (np.float16(-3), np.float16(4))]:
        assert_same(counted(backend, x, 77, ends), by_numpy(x, 77, ends))
    big = np.array([2**53 + 1, 2**53 + 3, 2**60], np.int64)  # beside floats: their common dtype
    y = big.astype(np.float64)
    assert_same(counted(backend, y, big), exactly(y, big.astype(np.float64)))


def test_equal_numbers_of_other_types_are_other_calls(backend: Backend) -> None:
    """0.1 as float32 and as a Python float are other edges, though the calls are alike."""
    x = np.array([0.1], np.float32).astype(np.float64)
    for lo, want in [(np.float64(np.float32(0.1)), 1), (np.float32(0.1), 1), (0.1, 1), (0.11, 0)]:
        assert counted(backend, x, 1, (lo, 1.0))[0] == want
        assert counted(backend, x, [lo, 1.0])[0] == want
    edges = np.array([0.0, 1.0])
    for shift in (0.0, 0.05, 0.5):  # edges changed in place
        edges[0] = shift
        assert counted(backend, x, edges)[0] == (shift <= 0.1)


FUZZ = settings(
    max_examples=support.examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(data=st.data(), dtype=st.sampled_from([d for d in NATIVE if d.kind != "b"]))
def test_fuzz(backend: Backend, data: st.DataObject, dtype: np.dtype[Any]) -> None:
    elements = {"allow_nan": True} if dtype.kind == "f" else {}
    x = data.draw(npst.arrays(dtype, st.integers(1, 60), elements=elements or None))
    number = data.draw(st.sampled_from([1, 2, 5, 33]))
    width = dtype.itemsize * 8 if dtype.kind == "f" else 64
    bound = 1e4 if dtype.kind == "f" else 2.0**65
    ends = sorted(data.draw(st.floats(-bound, bound, width=min(width, 64))) for _ in range(2))
    try:
        edges = told_apart(np.histogram_bin_edges(np.empty(0, dtype), number, tuple(ends)))
    except ValueError:
        edges = None
    if edges is not None:
        assert_same(counted(backend, x, number, tuple(ends)), exactly(x, edges))
    limits = np.sort(data.draw(npst.arrays(dtype, st.integers(2, 9), elements={"allow_nan": False}
        if dtype.kind == "f" else None)))  # fmt: skip
    assert_same(counted(backend, x, limits), exactly(x, limits))


def test_more_than_2_to_the_31(cuda: Backend) -> None:
    n = 2**32 + 11
    need_memory(cuda, n + 2**30)
    x = cuda.xp.full(n, 7, np.uint8)
    x[-3:] = 200
    assert_same(cuda.to_host(ga.histogram(x, 4, (0, 256))), np.array([n - 3, 0, 0, 3]))
    assert_same(cuda.to_host(ga.histogram(x, [7, 8, 200])), np.array([n - 3, 3]))
    with pytest.raises(ValueError, match=r"^histogram: dtype uint32 .*4294967307"):
        ga.histogram(x, 4, (0, 256), dtype=np.uint32)


def test_the_cure_for_a_range_that_a_graph_cannot_record() -> None:
    """A plan takes the range anew in each call, so that it is none."""
    x = np.arange(9.0)
    plan = ga.prepare(ga.histogram, x, 3)
    for call in (lambda: plan(x), lambda: ga.histogram(x, 3)):
        with pytest.raises(RuntimeError, match=r"in a graph; pass range=$"), ga.graph("cpu"):
            call()
