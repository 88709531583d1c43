"""Sorts of segments on the CPU: short ones, long ones, a giant one, and keys of all kinds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import a_few, assert_same

import gpualgo as ga
from gpualgo._algorithms.segmented_sort import cpu, problem

Array = np.ndarray[Any, Any]
SHORT, TASK = problem.SHORT, problem.TASK


def offsets_of(kind: str, n: int) -> Array:
    rng = np.random.default_rng(5)
    if kind == "ragged":
        return np.sort(rng.integers(0, n + 1, n // 40))
    if kind == "mostly empty":
        return np.sort(rng.choice(rng.integers(0, n + 1, 9), 4 * TASK))
    if kind == "giant":
        return np.array([5, 9, 9, n - 7, n - 3])
    return np.arange(3, n, int(kind))


def expected(keys: Array, offsets: Array, *, descending: bool) -> Array:
    found = keys.copy()
    for begin, end in itertools.pairwise(offsets):
        found[begin:end].sort()
        if descending:
            found[begin:end] = found[begin:end][::-1]
    return found


@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8"])
@pytest.mark.parametrize(
    "kind", ["1", str(SHORT), str(SHORT + 1), "300", "ragged", "mostly empty", "giant"]
)
def test_numbers(kind: str, dtype: str) -> None:
    n = 2_200_000 if kind == "giant" else 3 * TASK
    rng = np.random.default_rng(1)
    keys = rng.integers(-(2**31), 2**31, n).astype(dtype)
    offsets = offsets_of(kind, n)
    with ga.default_device("cpu"):
        for descending in (False, True):
            want = expected(keys, offsets, descending=descending)
            assert_same(ga.segmented_sort(keys, offsets, descending=descending), want)
        target, given = np.zeros((n, 2), dtype)[:, 0], np.stack([keys, keys], 1)[:, 1]
        assert ga.segmented_sort(given, offsets, descending=True, out=target) is target
        assert_same(np.ascontiguousarray(target), want)
        assert ga.segmented_sort(keys, offsets, descending=True, out=keys) is keys
        assert_same(keys, want)


@pytest.mark.parametrize("odd", [np.nan, -0.0])
def test_equal_keys_of_other_bits(odd: float) -> None:
    """They keep their order, and NaN comes last both ways."""
    n = 5000
    keys = np.random.default_rng(2).integers(-2, 3, n).astype(np.float32)
    keys[np.random.default_rng(3).random(n) < 0.1] = odd
    offsets = np.array([0, 10, 60, 4000, n])
    assert not cpu._is_plain(keys)
    with ga.default_device("cpu"):
        for descending in a_few((False, True)):
            want = keys.copy()
            for begin, end in itertools.pairwise(offsets):
                part = keys[begin:end]
                way = -part if descending else part
                want[begin:end] = part[np.lexsort((way + 0.0, np.isnan(part)))]
            got = ga.segmented_sort(keys, offsets, descending=descending)
            assert_same(got, want)
