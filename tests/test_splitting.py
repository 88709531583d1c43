"""Exact cuts of sorted runs, against sorting all elements by key, run and place."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpualgo._base.threads import cut
from gpualgo._distributed import narrowed, splitters


def _wanted(runs: list[list[Any]], rank: int) -> list[int]:
    everything = sorted((key, r, i) for r, run in enumerate(runs) for i, key in enumerate(run))
    least = [r for _, r, _ in everything[:rank]]
    return [least.count(r) for r in range(len(runs))]


def _cuts(runs: list[list[Any]], ranks: list[int]) -> list[list[int]]:
    lengths = [len(run) for run in runs]
    return [cut(lengths, rank, lambda r, i: runs[r][i], 4) for rank in ranks]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), max_size=12).map(sorted), max_size=6), st.data())
def test_every_rank(runs: list[list[int]], data: st.DataObject) -> None:
    total = sum(map(len, runs))
    ranks = sorted(data.draw(st.lists(st.integers(0, total), max_size=6)))
    assert _cuts(runs, ranks) == [_wanted(runs, rank) for rank in ranks]
    if runs:
        assert _cuts(runs, [*range(total + 1)]) == [_wanted(runs, k) for k in range(total + 1)]


def test_ties_go_by_run_and_then_by_place() -> None:
    runs = [[5] * 4, [5] * 3, [1, 5, 9]]
    assert _cuts(runs, [1, 3, 6, 9, 10]) == [[0, 0, 1], [2, 0, 1], [4, 1, 1], [4, 3, 2], [4, 3, 3]]


def test_runs_are_read_a_few_times() -> None:
    runs = [sorted(i * 7919 % 100003 for i in range(r, 30000, 3)) for r in range(3)]
    reads = 0

    def read(r: int, i: int) -> int:
        nonlocal reads
        reads += 1
        return runs[r][i]

    lengths = [len(run) for run in runs]
    assert cut(lengths, 15000, read, 17) == _wanted(runs, 15000)
    assert reads < 3 * 15 * 15  # log2 of 30000


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 6), max_size=20).map(sorted), min_size=1, max_size=5),
    st.data(),
)
def test_samples_bound_every_cut(runs: list[list[int]], data: st.DataObject) -> None:
    """The cut lies between the bounds that samples give, and the order of all keys gives it."""
    lengths = [len(run) for run in runs]
    rank = data.draw(st.integers(0, sum(lengths)))
    width = data.draw(st.integers(1, 8))
    samples = [key for run in runs for key in run[width - 1 :: width]]
    (low,), (high,) = narrowed(lengths, [rank], width, np.argsort(samples, kind="stable"))
    wanted = _wanted(runs, rank)
    assert all(a <= cut <= b for a, cut, b in zip(low, wanted, high, strict=True))
    keys = [key for run in runs for key in run]
    ranks = range(sum(lengths) + 1)
    low_cuts, high_cuts = narrowed(lengths, ranks, 1, np.argsort(keys, kind="stable"))
    assert low_cuts.tolist() == high_cuts.tolist() == [_wanted(runs, rank) for rank in ranks]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 999), unique=True, max_size=40).map(sorted), min_size=1),
    st.integers(1, 6), st.integers(1, 5),
)  # fmt: skip
def test_splitters_divide_keys_about_evenly(
    runs: list[list[int]], outputs: int, width: int
) -> None:
    samples = [run[width - 1 :: width] for run in runs]
    keys = np.concatenate(samples)
    if not len(keys):
        return
    counts = [len(sample) for sample in samples]
    order = np.argsort(keys, kind="stable")
    chosen = keys[splitters([width] * len(runs), counts, order, outputs)]
    ends = np.searchsorted(np.sort(np.concatenate(runs)), chosen, "right")
    equal = len(runs)  # of a key, at most one in each run
    even = len(keys) * width // outputs
    sizes = np.diff([0, *ends, sum(map(len, runs))])
    assert len(chosen) == outputs - 1
    assert max(sizes) <= even + 2 * (width - 1) * len(runs) + width + equal
