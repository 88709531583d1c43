"""What histograms keep between calls: few bytes for each length, a bounded number for all edges."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from support import arrays_kept, forget_problems

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._arrays.view import NumPy
from gpualgo._base import memo


@pytest.mark.parametrize("has_weights", [False, True])
def test_a_new_length_keeps_no_edges(has_weights: bool) -> None:
    x = np.random.default_rng(0).random(400)

    def call(k: int) -> None:
        part = x[: 200 + k]
        weights = part if has_weights else None
        found = ga.histogram(part, 50_000, (0, 1), weights=weights)
        if k % 16 == 0:
            want, _ = np.histogram(part, 50_000, (0, 1), weights=weights)
            np.testing.assert_array_equal(found, want)

    with ga.default_device("cpu"):
        assert arrays_kept(call, 3, 35) < 2000


@pytest.mark.parametrize("is_joint", [False, True])
def test_edges_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, is_joint: bool) -> None:
    monkeypatch.setattr(memo, "MOST_BYTES", 1 << 20)
    x, edges = np.random.default_rng(0).random(500), np.linspace(0, 1, 5001)

    def call(k: int) -> None:
        given = edges + k * 1e-9
        weights = x if is_joint else None
        found = ga.histogram(x, given, weights=weights)
        want, _ = np.histogram(x, given, weights=weights)
        np.testing.assert_allclose(found, want, rtol=1e-12)

    with ga.default_device("cpu"):
        assert arrays_kept(call, 8, 40) < 2000
    kept = set(Histogram.problems.values())  # each is found by two keys
    assert 2 < len(kept) < 8
    assert all(problem.num_bytes > 3 * edges.nbytes for problem in kept)
    assert sum(problem.num_bytes for problem in kept) <= 1 << 20


def test_lengths_share_no_finder() -> None:
    """Its bytes count for each problem; the one of few samples is slow for many."""
    forget_problems()
    x = np.arange(1 << 15, dtype=np.int16)
    lengths = (100, 200, 300, 400, 1 << 14, 1 << 15)
    with ga.default_device("cpu"):
        for length in lengths:
            want, _ = np.histogram(x[:length], 64, (0, 1000))
            np.testing.assert_array_equal(ga.histogram(x[:length], 64, (0, 1000)), want)
    kept = {problem.num_samples: problem for problem in Histogram.problems.values()}
    finders = [kept[length].bins[0].finder for length in lengths]
    assert len({id(finder) for finder in finders}) == len(finders)
    assert [finder.dtype.itemsize for finder in finders] == [4, 4, 4, 4, 2, 2]
    assert all(kept[n].num_bytes >= f.num_bytes for n, f in zip(lengths, finders, strict=True))


def test_a_problem_that_is_given_up_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the collector comes by: its tables may be large."""
    monkeypatch.setattr(memo, "MOST_BYTES", 1 << 20)
    x, edges = np.random.default_rng(0).random(500), np.linspace(0, 1, 5001)
    gc.collect()
    gc.disable()
    try:
        with ga.default_device("cpu"):
            for k in range(20):
                ga.histogram(x, edges + k * 1e-9)
        alive = [one for one in gc.get_objects() if type(one) is Histogram]
        assert len(alive) < 8
    finally:
        gc.enable()


def test_long_edges_are_not_remembered() -> None:
    view = NumPy.view(np.arange(3.0))
    edges = np.arange((1 << 17) + 1.0)
    with pytest.raises(TypeError, match="cannot be hashed"):
        hash(arguments.bins_of(edges, None, view, None))
    assert isinstance(hash(arguments.bins_of(edges[:-1], None, view, None)), int)
