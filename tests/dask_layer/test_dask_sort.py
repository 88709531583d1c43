"""Sorts of dask arrays: all bits are the single machine's."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import support
from chunked import built, check, cut
from hypothesis import given, settings
from hypothesis import strategies as st

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(10)
N = 400
KEYS = {
    "random": RNG.random(N),
    "equal": np.ones(N),
    "few": RNG.integers(0, 3, N).astype(np.float32),
    "rising": np.arange(N),
    "falling": np.arange(N)[::-1].copy(),
    "nan": np.where(RNG.random(N) < 0.3, np.nan, RNG.integers(0, 9, N)),
    "zeros": np.where(RNG.random(N) < 0.5, -0.0, 0.0),
    "bool": RNG.random(N) < 0.5,
    "half": RNG.standard_normal(N).astype(np.float16),
    "wide": RNG.integers(-(1 << 63), 1 << 63, N, endpoint=False),
}
CHUNKS = [(100,) * 4, (1, 200, 0, 33, 166)]


@settings(max_examples=support.examples(40), deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), max_size=9), min_size=1, max_size=12), st.booleans())
def test_any_chunks(parts: list[list[int]], descending: bool) -> None:
    keys = np.array([key for part in parts for key in part], np.int8)
    x = cut(keys, list(map(len, parts)))
    got = built(gd.argsort, x, descending=descending)
    assert got.chunks == x.chunks
    check(got, ga.argsort(keys, descending=descending))


@pytest.mark.parametrize("chunks", [((1, 0), (0, 2, 1)), ((0, 1, 0), (1, 0, 2))])
def test_one_row_between_empty_chunks(chunks: Any) -> None:
    keys = np.array([[3, 1, 2]])
    got = built(ga.argsort, cut(keys, *chunks), axis=1)
    assert got.chunks == chunks
    check(got, ga.argsort(keys, axis=1))


@pytest.mark.parametrize("kind", ["random", "few", "rising", "falling"])
def test_more_chunks_than_go_directly(kind: str) -> None:
    x = cut(KEYS[kind], [4] * 90 + [40])
    got = built(gd.argsort, x)
    check(got, ga.argsort(KEYS[kind]))
    assert len(got.__dask_graph__()) < 3 * 91**1.5  # 91² = 8281


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64])
@pytest.mark.parametrize("descending", [False, True])
def test_some_bits(dtype: Any, descending: bool) -> None:
    """Cuts are between keys that differ in these bits, whatever their others are."""
    info = np.iinfo(dtype)
    keys = RNG.integers(info.min, info.max, N, dtype, endpoint=True)
    for begin, end in ((2, info.bits - 1), (1, 3), (info.bits - 3, None)):
        options: Any = {"begin_bit": begin, "end_bit": end, "descending": descending}
        got = built(gd.radix_sort, cut(keys, CHUNKS[1]), np.arange(N), **options)
        check(got, ga.radix_sort(keys, np.arange(N), **options))


def test_indices_of_other_dtypes() -> None:
    x = cut(KEYS["random"], CHUNKS[0])
    check(built(ga.argsort, x, dtype=np.uint32), ga.argsort(KEYS["random"], dtype=np.uint32))
    with pytest.raises(TypeError, match="dtype"):
        built(ga.argsort, x, dtype=np.float32)


def test_unknown_sizes_and_shapes_are_told() -> None:
    x = cut(KEYS["random"], CHUNKS[0])
    with pytest.raises(ValueError, match=r"values have shape \(399,\) and keys \(400,\)"):
        built(gd.radix_sort, x, np.arange(N - 1))
    with pytest.raises(TypeError, match="complex"):
        built(gd.radix_sort, x.astype(complex))
    if hasattr(x, "reshape"):
        some = x[x > 0.5]
        with pytest.raises(ValueError, match=r"unknown size.*keys.compute_chunk_sizes\(\)"):
            built(gd.radix_sort, some)
        some.compute_chunk_sizes()
        check(gd.radix_sort(some), np.sort(KEYS["random"][KEYS["random"] > 0.5]))


def test_both_results_by_one_pass() -> None:
    """The runs of keys and values are sorted once, though two arrays come of them."""
    x = cut(KEYS["random"], CHUNKS[0])
    keys, values = gd.radix_sort(x, np.arange(N))
    graph = {**dict(keys.__dask_graph__()), **dict(values.__dask_graph__())}
    assert sum("ga-radix-sort-run" in str(key) for key in graph) == 4
    dask.compute(keys, values)
