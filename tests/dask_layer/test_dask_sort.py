"""Sorts of dask arrays: all bits are the single machine's."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import support
from chunked import built, check, cut, ones
from hypothesis import given, settings
from hypothesis import strategies as st
from support import a_few

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
CHUNKS = [(100,) * 4, (1, 200, 0, 33, 166), (N,), (*ones(15), N - 15, 0)]


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("chunks", CHUNKS, ids=["even", "uneven", "one", "ones"])
def test_keys_values_and_places(kind: str, descending: bool, chunks: Any) -> None:
    keys, options = KEYS[kind], {"descending": descending}
    x = cut(keys, chunks)
    got = built(ga.radix_sort, x, **options)
    assert got.chunks == x.chunks
    check(got, ga.radix_sort(keys, **options))
    values = np.arange(N, dtype=np.int32)
    check(built(ga.radix_sort, x, values, **options), ga.radix_sort(keys, values, **options))
    check(built(ga.argsort, x, **options), ga.argsort(keys, **options))


@settings(max_examples=support.examples(40), deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), max_size=9), min_size=1, max_size=12), st.booleans())
def test_any_chunks(parts: list[list[int]], descending: bool) -> None:
    keys = np.array([key for part in parts for key in part], np.int8)
    x = cut(keys, list(map(len, parts)))
    check(built(gd.argsort, x, descending=descending), ga.argsort(keys, descending=descending))


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


@pytest.mark.slow
def test_tuples_records_and_bits() -> None:
    a, b = RNG.integers(0, 9, N), RNG.integers(0, 99, N).astype(np.float32)
    x, y = cut(a, CHUNKS[1]), cut(b, CHUNKS[0])
    for ways in (False, True, (False, True)):
        options = {"descending": ways}
        check(built(ga.radix_sort, (x, y), **options), ga.radix_sort((a, b), **options))
        check(built(ga.argsort, (x, y), **options), ga.argsort((a, b), **options))
    got = built(ga.radix_sort, x, (y, cut(np.arange(N), CHUNKS[1])))
    check(got, ga.radix_sort(a, (b, np.arange(N))))
    record = np.zeros(N, [("a", "i2"), ("b", "f4")])
    record["a"], record["b"] = a, b
    check(built(ga.radix_sort, cut(record, CHUNKS[1])), ga.radix_sort(record))
    names = RNG.choice(np.array(["x", "yy", "z"]), N)
    check(gd.radix_sort(x, cut(names, CHUNKS[1])), ga.radix_sort(a, names))
    small = RNG.integers(-500, 500, N, dtype=np.int16)
    for begin, end in ((3, 9), (8, 16), (0, 4)):
        for descending in a_few((False, True)):
            bits = {"begin_bit": begin, "end_bit": end, "descending": descending}
            check(built(ga.radix_sort, cut(small, CHUNKS[0]), **bits), ga.radix_sort(small, **bits))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_axes(axis: Any) -> None:
    h = RNG.integers(0, 50, (20, 30))
    x = cut(h, (7, 13), (9, 11, 10))
    for got, want in (
        (built(ga.radix_sort, x, axis=axis), ga.radix_sort(h, axis=axis)),
        (built(ga.argsort, x, axis=axis), ga.argsort(h, axis=axis)),
    ):
        check(got, want)
        assert axis is None or got.chunks == x.chunks
    row = cut(h.reshape(1, -1, 1), (1,), (77, 523), (1,))
    got = built(ga.argsort, row, axis=1)
    check(got, ga.argsort(h.reshape(1, -1, 1), axis=1))
    assert got.chunks == row.chunks


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
