"""Few samples in a row without gaps, which a wave of blocks counts; and what counts them beyond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import INTEGERS, REAL, Backend, random_array

import gpualgo as ga
from gpualgo._algorithms.histogram import cuda_bins, tuning
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._algorithms.histogram.tuning import Small

# One size of block at all lengths: of fewer threads than counters, of several vectors, of copies
# that not every block has a part in; and what counts more samples, given few.
WAYS = {
    "one by one": (Small(64, 1, 1), 1),
    "copies": (Small(64, 1, 3), 1 << 11),
    "vectors": (Small(128, 3, 2), 1 << 12),
    "beyond": None,
}
LENGTHS = (1, 15, 63, 1024, 4097, 9001)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count in one way, and let no plan outlive the test."""
    shape_and_table, cut = WAYS[request.param], tuning.small_tiling
    if shape_and_table is None:
        monkeypatch.setattr(tuning, "SMALL_MOST_BYTES", 0)
    else:
        shape, table = shape_and_table
        monkeypatch.setattr(tuning, "SMALL_SHAPES", {1 << 30: shape})
        monkeypatch.setattr(tuning, "SMALL_TABLE", table)
        for name, value in (("SLOT_THREADS", 1), ("SM_THREADS", 128), ("MOST_ROUNDS", 1 << 30)):
            monkeypatch.setattr(tuning, name, value)
    found: list[Any] = []

    def noted(*args: Any) -> Any:
        found.append(cut(*args))
        return found[-1]

    monkeypatch.setattr(tuning, "small_tiling", noted)
    Histogram.problems.clear()
    yield
    Histogram.problems.clear()
    assert found
    assert all((each is None) == (shape_and_table is None) for each in found)


def _check(cuda: Backend, x: np.ndarray[Any, Any], bins: Any, ends: Any = None, **how: Any) -> None:
    """Assert that counts are NumPy's, twice: the first call leaves nothing behind."""
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" or x.dtype == bool else x
    want = np.histogram(wide, bins, ends)[0]
    given = cuda.to_device(x)
    for _ in range(2):
        got = cuda.to_host(ga.histogram(given, bins, ends, **how))
        np.testing.assert_array_equal(got, want)


ENDS = np.float64(-20), np.float64(20)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_dtype(cuda: Backend, dtype: np.dtype[Any]) -> None:
    for n in LENGTHS:
        x = random_array(n, dtype)
        x[::3] = (np.arange(0, n, 3) % 19).astype(dtype)
        _check(cuda, x, 12, ENDS)
    _check(cuda, x, 300, ENDS)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32", "int64"])
def test_every_place(cuda: Backend, dtype: str) -> None:
    """Samples before the first vector and after the last, and none between."""
    x = (np.arange(600) % 37 - 3).astype(dtype)
    whole = cuda.to_device(x)
    for start in range(16 // x.itemsize + 1):
        for n in (1, 2, 15, 16, 17, 31, 590 - start):
            got = cuda.to_host(ga.histogram(whole[start : start + n], 9, (0, 36)))
            want = np.histogram(x[start : start + n].astype(np.float64), 9, (0, 36))[0]
            np.testing.assert_array_equal(got, want)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bins_of_one_value(cuda: Backend, dtype: str) -> None:
    x = random_array(9001, np.dtype(dtype))
    first = int(np.iinfo(dtype).min)
    for bins, ends in (
        (256, (first, first + 256)), (30, (-10, 20)), (100, (100, 200)), (1, (7, 8)),
        (255, (first, first + 255)), (100, (first, first + 200)), (700, (first, first + 256)),
        ([3, 4, 5, 6], None), ([3, 4, 6, 7], None), ([3, 3, 4, 5], None), ([300, 400], None),
    ):  # fmt: skip
        _check(cuda, x, bins, ends)


@pytest.mark.usefixtures("way")
def test_skew(cuda: Backend) -> None:
    for x in (np.full(9001, 3.0, np.float32), np.full(9001, 7, np.uint8), np.arange(9001.0) // 900):
        _check(cuda, x, 256, (0, 256))


@pytest.mark.usefixtures("way")
def test_edges(cuda: Backend) -> None:
    x = random_array(9001, np.dtype(np.float32))
    _check(cuda, x, [-30, -3.5, -3, 0, 0, 0.25, 8, 100])
    _check(cuda, random_array(9001, np.dtype(np.int16)), np.linspace(-30_000, 30_000, 500))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_counter(cuda: Backend, dtype: np.dtype[Any]) -> None:
    n = 120 if dtype.itemsize == 1 else 9001
    x = (np.arange(n) % 13).astype(np.float32)
    _check(cuda, x, 40, (0, 13), dtype=dtype)
    out = cuda.to_device(np.full(200, 99, dtype))
    ga.histogram(cuda.to_device(x), 40, (0, 13), out=out[::-5])
    want = np.full(200, 99, dtype)
    want[::-5] = np.histogram(x, 40, (0, 13))[0]
    np.testing.assert_array_equal(cuda.to_host(out), want)


@pytest.mark.usefixtures("way")
def test_storage_is_left_as_it_was(cuda: Backend) -> None:
    """Others use the same words: of a stream's workspace, or of memory that the caller lends."""
    x = cuda.to_device(np.arange(9001, dtype=np.float32))
    y = cuda.to_device(np.arange(40_000, dtype=np.int64))
    for bins in (50, 3, 1000):
        got = cuda.to_host(ga.histogram(x, bins, (0, 9000)))
        np.testing.assert_array_equal(got, np.histogram(np.arange(9001), bins, (0, 9000))[0])
        assert int(cuda.to_host(ga.reduce(y))) == 40_000 * 39_999 // 2


# --- the cut --------------------------------------------------------------------------------

H200 = tuning.Machine(132, 227 << 10, (9, 0))
SMALLEST = tuning.Machine(4, 64 << 10, (7, 5))


def _bins(dtype: str, number: int, ends: Any = (0, 1000)) -> cuda_bins.DeviceBins:
    return cuda_bins.device_bins(Bins(np.dtype(dtype), number, None, *ends), (9, 0))


@pytest.mark.parametrize(
    ("dtype", "number", "ends", "is_unit"),
    [
        ("uint8", 256, (0, 256), True), ("uint8", 16, (0, 16), False),
        ("uint8", 16, (0, 15.5), True), ("uint8", 16, (-0.5, 15.5), True),
        ("uint8", 200, (56, 256), True), ("int8", 256, (-128, 128), True),
        ("int8", 255, (-128, 127), False), ("uint8", 300, (0, 300), False),
        ("uint8", 257, (-1, 256), False), ("uint8", 1, (255, 256), True),
        ("uint8", 128, (0, 256), False),
    ],
)  # fmt: skip
def test_which_values_are_bins(dtype: str, number: int, ends: Any, is_unit: bool) -> None:
    """A last bin that is closed holds two values, unless there are no more."""
    found = _bins(dtype, number, ends)
    assert found.type.name == f"{'Unit' if is_unit else 'Byte'}Bins"
    by_value = Bins(np.dtype(dtype), number, None, *ends).of_patterns()
    if is_unit:
        values = found.values(0)
        places = (np.arange(256) ^ values["flip"]) - values["first"]
        inside = (places >= 0) & (places < number)
        np.testing.assert_array_equal(np.where(inside, places, -1), by_value)


@given(
    st.sampled_from([H200, SMALLEST]),
    st.sampled_from(
        [("uint8", 7), ("uint8", 1000), ("float32", 1), ("float32", 1024), ("int64", 50)]
    ),
    st.integers(0, 26).flatmap(lambda bits: st.integers(1, 1 << bits)),
)  # fmt: skip
def test_cut_fits(machine: tuning.Machine, kind: tuple[str, int], num_items: int) -> None:
    bins, itemsize = _bins(*kind), np.dtype(kind[0]).itemsize
    cut = tuning.small_tiling(machine, bins, kind[1], num_items, itemsize)
    is_small = num_items * itemsize <= tuning.SMALL_MOST_BYTES
    is_small = is_small and num_items < 1 << tuning.COUNT_BITS
    if cut is None:
        assert not is_small or machine is SMALLEST
        return
    assert is_small
    threads = cut.num_blocks * cut.policy.block_threads
    assert cut.num_blocks >= 1
    assert threads <= machine.num_sms * 1024  # all at once: the last one waits for the others
    assert (cut.num_blocks - 1) <= tuning.MOST_ARRIVALS * cut.policy.copies
    assert cut.joint_bytes <= 64 << 10
    assert cut.shared_bytes(bins) <= 48 << 10
    sums = 256 + kind[1] if bins.shares_bins else 0
    assert cut.words >= cut.num_slots * cut.policy.replicas + sums
    assert cut.words % 4 == 0
    tile = cut.policy.block_threads * cut.policy.loads * 16 // itemsize
    most_blocks = max(1, num_items // (2 * cut.num_slots))
    assert cut.num_blocks == most_blocks or cut.num_blocks * tile * 2 >= num_items


@pytest.mark.parametrize(
    ("dtype", "number", "num_items"),
    [
        ("float32", 1025, 4096),
        ("uint8", 1025, 4096),
        ("uint8", 9, 1 << 24),
        ("float64", 9, 1 << 21),
    ],
)
def test_what_is_not_small(dtype: str, number: int, num_items: int) -> None:
    itemsize = np.dtype(dtype).itemsize
    assert tuning.small_tiling(H200, _bins(dtype, number), number, num_items, itemsize) is None


def test_words_are_those_of_the_kernel() -> None:
    from gpualgo._cuda import build

    text = (build.source_folder() / "histogram" / "small.cuh").read_text(encoding="utf-8")
    assert f"joint_count_bits = {tuning.COUNT_BITS};" in text
