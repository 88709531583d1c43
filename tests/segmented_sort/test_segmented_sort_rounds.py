"""Segments of many tiles, which small tiles make of few elements; and of any lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import support
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from segmented_sort.test_segmented_sort import orders
from support import Backend, assert_same, need_memory

import gpualgo as ga
from gpualgo._algorithms.segmented_sort import cuda
from gpualgo._algorithms.segmented_sort.problem import SegmentedSort

Array = np.ndarray[Any, Any]
SORT = ga.segmented_sort
POLICIES = {  # tiles of 256, of 512 and of 128, two, four and one of which is merged at once
    "256": cuda.Policy(64, 4, 1, 32, 4, 1),
    "512": cuda.Policy(128, 4, 1, 32, 4, 1),
    "128": cuda.Policy(32, 4, 1, 32, 4, 1),
}


@pytest.fixture(params=POLICIES)
def small_tiles(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Cut some thousands of elements as millions are, and let no plan outlive the test."""
    chosen = POLICIES[request.param]
    for table in ("SHORT", "LONG"):
        monkeypatch.setattr(cuda, table, {(128, False): chosen, (128, True): chosen})
    monkeypatch.setattr(cuda, "SPAN_THREADS", 32)  # of many blocks
    SegmentedSort.problems.clear()
    yield chosen.tile_items
    SegmentedSort.problems.clear()


def shapes(tile: int) -> dict[str, tuple[int, list[int]]]:
    """Return numbers of elements, and offsets into these."""
    n = 40 * tile + 7
    rng = np.random.default_rng(tile)
    tiny = sorted(rng.integers(0, n, n // 5).tolist())
    return {
        "one giant": (n, [0, n]),
        "one giant between": (n, [3, n - 9]),
        "a giant among tiny ones": (n, sorted([*tiny[: len(tiny) // 9], *tiny[-len(tiny) // 9 :]])),
        "tiny ones": (n, [0, *tiny, n]),
        "ends of tiles": (n, [k * tile for k in (0, 1, 2, 4, 7, 12, 13, 21, 37, 40)]),
        "beside ends of tiles": (n, [k * tile + k % 3 - 1 for k in (1, 2, 4, 7, 12, 13, 21, 37)]),
        "threes": (n, list(range(0, n, 3 * tile))),
        "halves of tiles": (n, list(range(tile // 4, n, tile // 2))),
        "a tile and one": (tile + 1, [0, tile + 1]),
        "two tiles": (2 * tile, [0, 2 * tile]),
        "last of two": (2 * tile, [tile - 1, 2 * tile]),
        "one tile": (tile, [0, tile]),
    }


@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("name", shapes(4))
def test_rounds(cuda: Backend, small_tiles: int, name: str, has_values: bool) -> None:
    n, offsets = shapes(small_tiles)[name]
    # Many are equal, so that order shows.
    keys = np.random.default_rng(1).integers(-9, 9, n).astype(np.float32)
    given = cuda.to_device(keys), cuda.to_device(np.array(offsets))
    want, places = orders(keys, offsets), np.arange(n, dtype=np.int32)
    if not has_values:
        for _ in range(2):
            assert_same(cuda.to_host(SORT(*given)), keys[want])
        return
    got = SORT(*given, values=cuda.to_device(places))
    assert_same(cuda.to_host(got[0]), keys[want])
    assert_same(cuda.to_host(got[1]), want.astype(np.int32))


@pytest.mark.usefixtures("small_tiles")
@settings(
    max_examples=support.examples(25), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    st.integers(1, 3000),
    st.lists(st.integers(-5, 3100), min_size=1, max_size=60),
    st.booleans(),
    st.booleans(),
)
def test_any_offsets(
    cuda: Backend, n: int, offsets: list[int], rises: bool, descending: bool
) -> None:
    """A segment begins wherever an offset is, from the first one to the last, if these fall too."""
    if rises:
        offsets = sorted(offsets)
    keys = np.random.default_rng(n).integers(0, 40, n).astype(np.int16)
    heads = marked(offsets, n)
    want = orders(keys, heads, descending=descending)
    values = np.arange(n)
    got = SORT(
        cuda.to_device(keys), cuda.to_device(np.array(offsets)), values=cuda.to_device(values),
        descending=descending,
    )  # fmt: skip
    assert_same(cuda.to_host(got[0]), keys[want])
    assert_same(cuda.to_host(got[1]), want)


def marked(offsets: list[int], n: int) -> list[int]:
    """Return where segments begin; an element in none is one of its own."""
    ends = np.clip(offsets, 0, n).tolist()
    first, last = ends[0], ends[-1]
    found = {*ends, *range(min(first, n)), *range(last, n), 0, n}
    return sorted(found)


@pytest.mark.usefixtures("small_tiles")
def test_in_place(cuda: Backend) -> None:
    n, offsets = 5000, [0, 17, 17, 2100, 4990]
    keys = np.random.default_rng(2).integers(0, 99, n).astype(np.int32)
    values = np.arange(n, dtype=np.float64)
    want = orders(keys, [*offsets, *range(4991, n + 1)])
    given = cuda.to_device(keys), cuda.to_device(values)
    SORT(given[0], cuda.to_device(np.array(offsets)), values=given[1], out=given)
    assert_same(cuda.to_host(given[0]), keys[want])
    assert_same(cuda.to_host(given[1]), values[want])


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("dtypes", [("u1", "u1", "u1"), ("c16", "c16")], ids=str)
def test_values_of_several_numbers(cuda: Backend, dtypes: tuple[str, ...]) -> None:
    """Of odd sizes, or of so many bytes that their order travels, by which they are fetched."""
    n, offsets = 3000, [0, 1200, 1290, 3000]
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 9, n).astype(np.int8)
    values = [rng.integers(0, 99, n).astype(dtype) for dtype in dtypes]
    want = orders(keys, offsets)
    got = SORT(
        cuda.to_device(keys), cuda.to_device(np.array(offsets)),
        values=tuple(map(cuda.to_device, values)),
    )  # fmt: skip
    assert_same(cuda.to_host(got[0]), keys[want])
    for mine, other in zip(got[1], values, strict=True):
        assert_same(cuda.to_host(mine), other[want])


def test_beyond_32_bits(cuda: Backend) -> None:
    """One segment of almost all, between short ones."""
    n, step = 2**31 + 12_345, 1 << 28
    need_memory(cuda, 6 * n)
    xp = cuda.xp
    keys, counts = xp.empty(n, np.uint8), xp.zeros(256, np.int64)
    for start in range(0, n, step):
        mixed = xp.arange(start, min(start + step, n), dtype=np.uint64)
        keys[start : start + step] = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(56)
    ends = [0, 1000, n - 3000, n - 1000, n]
    got = SORT(keys, xp.asarray(ends))
    for begin, end in ((0, 1000), (n - 3000, n - 1000), (n - 1000, n)):
        assert bool((got[begin:end] == xp.sort(keys[begin:end])).all())
    for start in range(ends[1], ends[2], step):
        stop = min(start + step, ends[2])
        counts += xp.bincount(keys[start:stop], minlength=256)
        counts -= xp.bincount(got[start:stop], minlength=256)
        part = got[start : min(stop + 1, ends[2])]
        assert bool((part[1:] >= part[:-1]).all())
    assert not counts.any()


def test_marked() -> None:
    assert marked([2, 5, 4], 6) == [0, 1, 2, 4, 5, 6]
    assert list(itertools.pairwise(marked([0, 3], 3))) == [(0, 3)]
