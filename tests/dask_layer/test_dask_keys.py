"""unique and reduce_by_key of dask arrays beside the single machine's."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import pytest
import support
from chunked import built, check, compose, cut, ones
from hypothesis import given, settings
from hypothesis import strategies as st

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(13)
N = 300
KEYS = {
    "any": np.where(RNG.random(N) < 0.2, -0.0, RNG.integers(0, 30, N).astype(float)),
    "nan": np.where(RNG.random(N) < 0.4, np.nan, RNG.integers(0, 3, N).astype(np.float32)),
    "runs": np.resize(np.repeat(RNG.integers(0, 4, 50), RNG.integers(0, 40, 50)), N),
    "one": np.zeros(N, np.int8),
    "distinct": np.arange(N),
}
CHUNKS = {"one": (N,), "uneven": (1, 99, 0, 0, 150, 50), "many": (*ones(9), N - 9, 0)}


@settings(max_examples=support.examples(25), deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=10), st.booleans())
def test_any_chunks(parts: list[list[int]], consecutive: bool) -> None:
    keys = np.array([key for part in parts for key in part], np.int8)
    x, sizes = np.arange(len(keys)) % 6, list(map(len, parts))
    got = built(gd.reduce_by_key, cut(keys, sizes), x, None, compose, consecutive=consecutive)
    check(got, ga.reduce_by_key(keys, x, None, compose, consecutive=consecutive))
    flags = {"consecutive": consecutive, "return_index": True, "return_counts": True}
    check(built(gd.unique, cut(keys, sizes), **flags), ga.unique(keys, **flags))


def test_many_chunks_go_by_groups() -> None:
    keys = np.arange(600) % 97
    got = built(ga.unique, cut(keys, (4,) * 150), return_counts=True)
    check(got, ga.unique(keys, return_counts=True))
    assert len(got[0].__dask_graph__()) < 2600  # not 150² / 4 = 5625


def test_floats_repeat() -> None:
    x = RNG.standard_normal(N).astype(np.float32)
    keys = cut(KEYS["any"], CHUNKS["uneven"])
    found = [built(gd.reduce_by_key, keys, x).aggregates.compute().tobytes() for _ in range(2)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "chunks", [((1,), (0, 1)), ((1,), (1,), (0, 1)), ((0, 2, 0), (3, 0, 4)), ((2,), (0,))]
)
def test_run_numbers_between_empty_chunks(chunks: Any) -> None:
    shape = tuple(map(sum, chunks))
    x = np.arange(math.prod(shape)).reshape(shape) // 3
    flags = {"consecutive": True, "return_inverse": True}
    got = ga.unique(da.from_array(x, chunks=chunks), **flags)
    for a, b in zip(got, ga.unique(x, **flags), strict=True):
        np.testing.assert_array_equal(a.compute(), b)
