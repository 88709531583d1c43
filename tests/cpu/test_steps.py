"""Passes that one thread makes one after another, in one call of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gpualgo as ga


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with ga.default_device("cpu"):
        yield


@pytest.mark.parametrize("n", [5000, 100_003])  # two passes in one call, by one thread
def test_passes_that_follow_one_another(n: int) -> None:
    x = np.random.default_rng(0).standard_normal(n)
    pairs = x, np.arange(n)

    def op(a: Any, b: Any) -> Any:
        return a + b * 1.5

    def of_pairs(a: Any, b: Any) -> Any:
        return a[0] + b[0] * 1.5, max(a[1], b[1])

    def results() -> list[bytes]:
        found = ga.reduce(x, None, op), ga.reduce(x, 2.5, op), *ga.reduce(pairs, None, of_pairs)
        return [np.asarray(one).tobytes() for one in found]

    want = results()
    assert ga.reduce(pairs, None, of_pairs)[1] == n - 1
    with ThreadPoolExecutor(4) as pool:
        assert all(found == want for found in pool.map(lambda _: results(), range(40)))
    y = x.copy()
    y[-1] += 1.0
    assert ga.reduce(y, None, op) != ga.reduce(x, None, op)


def test_an_operator_that_raises_ends_passes_that_follow_one_another() -> None:
    def op(a: Any, b: Any) -> Any:
        total = a
        for i in range(0, 5, b):  # numba's own function raises for a step of 0
            total += i
        return total

    x, y = np.full(10_000, 9), np.full(10_000, 9)
    y[7777] = 0
    for _ in range(3):
        assert ga.reduce(x, None, op) == 9
        with pytest.raises(RuntimeError, match="op raised an exception"):
            ga.reduce(y, None, op)
