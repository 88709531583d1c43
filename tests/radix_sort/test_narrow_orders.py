"""Orders of keys of one and two bytes on the CPU: integers by NumPy, floats by digits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import FLOATS, INTEGERS, a_few, random_array
from test_radix_sort import assert_bits, special_floats, stable_order

import gpualgo as ga
from gpualgo._algorithms.radix_sort import problem as rk
from gpualgo._algorithms.radix_sort.problem import Sort

NARROW = [dtype for dtype in (np.dtype("bool"), *INTEGERS, *FLOATS) if dtype.itemsize <= 2]
SIZES = (rk.SHORT - 1, rk.SHORT, rk.SHORT + 1, rk.BLOCK, 2 * rk.BLOCK + 1, 5003, 20_011, 140_001)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    _forget()
    with ga.default_device("cpu"):
        yield
    _forget()


def _forget() -> None:
    Sort.problems.clear()


def _keys(dtype: np.dtype[Any], n: int) -> np.ndarray[Any, Any]:
    return special_floats(dtype, n) if dtype in FLOATS else random_array(n, dtype, seed=n)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_size(dtype: np.dtype[Any]) -> None:
    for n, descending in itertools.product(SIZES, (False, True)):
        keys = _keys(dtype, n)
        want = stable_order(keys, descending)
        for _ in range(2):  # the second time it is prepared
            assert_bits(ga.argsort(keys, descending=descending), want)
        short = ga.argsort(keys, descending=descending, dtype=np.uint32)
        assert_bits(short, want.astype(np.uint32))


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8", "bool"])
@pytest.mark.parametrize("kind", ["one", "low", "high", "two", "rising", "falling", "last"])
def test_digits_that_are_one(kind: str, dtype: str) -> None:
    n, random = 20_001, np.random.default_rng(0)
    keys = {
        "one": np.full(n, 7),
        "low": 0x300 + random.integers(0, 256, n),
        "high": 5 + 256 * random.integers(-100, 100, n),
        "two": 0x101 * random.integers(0, 2, n),
        "rising": np.arange(n) // 200 - 50,
        "falling": 50 - np.arange(n) // 200,
        "last": np.where(np.arange(n) == n - 1, -1, 3),
    }[kind].astype(dtype)
    for descending in a_few((False, True)):
        assert_bits(ga.argsort(keys, descending=descending), stable_order(keys, descending))
