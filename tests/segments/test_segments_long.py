"""Scans of segments that many tiles of a GPU share, in groups of tiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, affine, assert_same, compose

import gpualgo as ga
from gpualgo._algorithms.by_key import cuda as tuning
from gpualgo._algorithms.segments import cuda as launches
from gpualgo._algorithms.segments.problem import SegmentedExclusiveScan, SegmentedScan

TILE, N = 64, 70 * 64 + 5  # elements of a tile, with this policy; of all
POLICY = {"BLOCK_THREADS": TILE, "MOST_ITEMS": 1, "MOST_ROWS": 1}
OFFSETS = {
    "the whole": [0, N],
    "a part": [40 * TILE - 1, 69 * TILE],
    "behind a group": [0, 32 * TILE, 64 * TILE, N],
    "before a group ends": [3, 31 * TILE + 5, 63 * TILE, N - 1],
    "short and long": [0, *range(100, 300, 3), 300, 300, 3000, 3000, N - 9],
    "each": [*range(5, N - 70)],
    "no segment": [N, N],
}


@pytest.fixture(autouse=True, params=["one launch", "more"])
def small_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kinds = SegmentedScan, SegmentedExclusiveScan
    for kind in kinds:
        kind.problems.clear()
    with monkeypatch.context() as patch:
        for name, value in POLICY.items():
            patch.setattr(tuning, name, value)
        if request.param == "more":
            patch.setattr(launches, "ONE_LAUNCH_ITEMS", -1)
        else:
            patch.setattr(launches, "LEAST_STARTED", 0)
        yield
    for kind in kinds:
        kind.problems.clear()


@pytest.mark.parametrize("starts", ["none", "one", "of each"])
@pytest.mark.parametrize("f", [ga.segmented_inclusive_scan, ga.segmented_exclusive_scan])
@pytest.mark.parametrize("case", OFFSETS)
def test_groups_of_tiles(cuda: Backend, case: str, f: Callable[..., Any], starts: str) -> None:
    """Functions that are composed show each mistake of order."""
    x, offsets = affine(N, seed=3), np.array(OFFSETS[case], np.int32)
    given = affine(offsets.size - 1, seed=4)
    is_exclusive, identity = f is ga.segmented_exclusive_scan, np.uint64(1 << 32)
    init = {"none": None, "one": np.uint64(7 << 32 | 5), "of each": cuda.to_device(given)}[starts]
    op = ga.Operator(compose, identity=int(identity)) if starts == "none" else compose
    want = x.copy()
    for i, (begin, end) in enumerate(itertools.pairwise(offsets)):
        total = {"none": identity, "one": init, "of each": given[i]}[starts]
        for place in range(begin, end):
            following = compose(total, x[place])
            want[place] = total if is_exclusive else following
            total = following
    in_place = cuda.to_device(x)
    got = f(in_place, cuda.to_device(offsets), init, op)
    assert_same(cuda.to_host(got), want)
    f(in_place, cuda.to_device(offsets), init, op, out=in_place)
    assert_same(cuda.to_host(in_place), want)


def test_first_and_last(cuda: Backend) -> None:
    """No operator gets anything but elements."""
    x = np.arange(1, N + 1, dtype=np.int32)
    offsets = np.array([3, 31 * TILE + 5, 63 * TILE, N - 1])
    want = x.copy()
    for begin, end in itertools.pairwise(offsets):
        want[begin:end] = x[begin]
    given = cuda.to_device(x), cuda.to_device(offsets), None
    assert_same(cuda.to_host(ga.segmented_inclusive_scan(*given, lambda a, b: a)), want)
    assert_same(cuda.to_host(ga.segmented_inclusive_scan(*given, lambda a, b: b)), x)


def test_same_bits(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that round, by grids of any size and whoever is first."""
    x = np.random.default_rng(2).standard_normal(N).astype(np.float32)
    given = cuda.to_device(x), cuda.to_device(np.array([9, 33 * TILE, N]))
    found = set()
    for threads in (64, 256, 2048):
        monkeypatch.setattr(tuning, "SM_THREADS", {1 << 30: threads})
        SegmentedScan.problems.clear()
        found |= {cuda.to_host(ga.segmented_inclusive_scan(*given)).tobytes() for _ in range(3)}
    assert len(found) == 1
