"""The rows of gpualgo.numpy compare calls whose results are alike, down to their shapes."""

from __future__ import annotations

import numpy as np
import pytest

import gpualgo as ga
from bench.rows import numpy as rows
from bench.timing import error_of

DATA = rows.data(np, 1 << 10, "float64")


@pytest.mark.parametrize("name", ["bincount", "extract", "sort"])
def test_the_algorithm_underneath_gives_the_same(name: str) -> None:
    call, _, algorithm = rows.case(name)
    with ga.default_device("cpu"):
        assert error_of(algorithm(*DATA), call(np, *DATA), any_dtype=True) == 0.0


def test_counts_are_as_many_whatever_is_drawn() -> None:
    assert [len(np.bincount(rows.data(np, 1 << n, "float64").ints)) for n in (4, 10)] == [1000] * 2
