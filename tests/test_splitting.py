"""Exact cuts of sorted runs, against sorting all elements by key, run and place."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpualgo._algorithms.radix_sort.cuts import borders, narrowed
from gpualgo._distributed import splitters


def _wanted(runs: list[list[Any]], rank: int) -> list[int]:
    everything = sorted((key, r, i) for r, run in enumerate(runs) for i, key in enumerate(run))
    least = [r for _, r, _ in everything[:rank]]
    return [least.count(r) for r in range(len(runs))]


def _order(keys: list[Any]) -> Any:
    return np.argsort(np.array(keys, np.int64), kind="stable")


def _cuts(runs: list[list[Any]], ranks: list[int], width: int) -> list[list[int]]:
    lengths = [len(run) for run in runs]
    samples = _order([key for run in runs for key in run[width - 1 :: width]])
    spans = narrowed(lengths, ranks, width, samples)
    orders = (
        _order([key for run, a, b in zip(runs, low, high, strict=True) for key in run[a:b]])
        for low, high in zip(*spans, strict=True)
    )
    first, *rows, last = borders(lengths, ranks, spans, orders).tolist()
    assert (first, last) == ([0] * len(runs), lengths)
    return rows


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 6), max_size=12).map(sorted), min_size=1, max_size=6),
    st.integers(1, 5),
)
def test_every_rank(runs: list[list[int]], width: int) -> None:
    ranks = list(range(sum(map(len, runs)) + 1))
    assert _cuts(runs, ranks, width) == [_wanted(runs, rank) for rank in ranks]


def test_ties_go_by_run_and_then_by_place() -> None:
    runs, want = (
        [[5] * 4, [5] * 3, [1, 5, 9]],
        [[0, 0, 1], [2, 0, 1], [4, 1, 1], [4, 3, 2], [4, 3, 3]],
    )
    for width in range(1, 5):
        assert _cuts(runs, [1, 3, 6, 9, 10], width) == want


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
