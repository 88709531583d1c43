"""Ranks of keys on the host: they order keys as sorts do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import REAL, a_few, random_array

import gpualgo as ga
from gpualgo._algorithms.radix_sort.digits import rank_of, ranks_of


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_dtype(dtype: np.dtype[Any]) -> None:
    keys = np.asarray(random_array(300, dtype))
    if dtype.kind not in "biu":
        special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan]).astype(dtype)
        keys[::50] = special
    bits = keys.view(f"u{dtype.itemsize}").tolist()
    for descending in a_few((False, True)):
        rank = rank_of(dtype, descending, (0, 8 * dtype.itemsize))
        with ga.default_device("cpu"):
            order = ga.argsort(keys, descending=descending)
        assert sorted(range(300), key=lambda i: rank(bits[i])) == order.tolist()


def test_some_bits_and_several_numbers() -> None:
    keys = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, 300, np.int16)
    bits = keys.view(np.uint16).tolist()
    for first, end in ((2, 5), (12, 16)):
        rank = rank_of(keys.dtype, True, (first, end))
        with ga.default_device("cpu"):
            places = np.arange(300)
            _, order = ga.radix_sort(keys, places, descending=True, begin_bit=first, end_bit=end)
        assert sorted(range(300), key=lambda i: rank(bits[i])) == order.tolist()
    both = ranks_of([np.dtype("u1"), np.dtype("i1")], [False, True], None)
    assert both([3, 0xFF]) > both([3, 0]) > both([2, 0x80])
