"""unique and reduce_by_key of dask arrays beside the single machine's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import support
from chunked import affine, built, check, compose, cut, ones
from hypothesis import given, settings
from hypothesis import strategies as st
from support import a_few

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(13)
N = 300
VALUES = RNG.integers(0, 6, N)
KEYS = {
    "any": np.where(RNG.random(N) < 0.2, -0.0, RNG.integers(0, 30, N).astype(float)),
    "nan": np.where(RNG.random(N) < 0.4, np.nan, RNG.integers(0, 3, N).astype(np.float32)),
    "runs": np.resize(np.repeat(RNG.integers(0, 4, 50), RNG.integers(0, 40, 50)), N),
    "one": np.zeros(N, np.int8),
    "distinct": np.arange(N),
}
CHUNKS = {"one": (N,), "uneven": (1, 99, 0, 0, 150, 50), "many": (*ones(9), N - 9, 0)}


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_unique(kind: str, chunks: str, consecutive: bool) -> None:
    keys = KEYS[kind]
    x = cut(keys, CHUNKS[chunks])
    for index, inverse, counts in itertools.product([False, True], repeat=3):
        flags = {"return_index": index, "return_inverse": inverse, "return_counts": counts}
        given = {name: np.bool_(flag) for name, flag in flags.items()}  # as comparisons return
        got = built(ga.unique, x, consecutive=np.bool_(consecutive), **given)
        check(got, ga.unique(keys, consecutive=consecutive, **flags))


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_reduce_by_key(kind: str, chunks: str, consecutive: bool) -> None:
    keys = KEYS[kind]
    x, values = cut(keys, CHUNKS[chunks]), cut(VALUES, (100, 200))
    for init in (None, 2):
        want = ga.reduce_by_key(keys, VALUES, init, compose, consecutive=consecutive)
        for initial in (init, init and cut(np.array(init))):
            got = built(ga.reduce_by_key, x, values, initial, compose, consecutive=consecutive)
            check(got, want)


def test_another_equality() -> None:
    """It is asked of neighbours: what is equal to the next need not be equal to the first."""
    keys = np.cumsum(RNG.integers(0, 4, N))
    for chunks in CHUNKS.values():
        options = {"consecutive": True, "eq": lambda a, b: b - a <= 2}
        got = built(ga.reduce_by_key, cut(keys, chunks), VALUES, 1, compose, **options)
        check(got, ga.reduce_by_key(keys, VALUES, 1, compose, **options))


@settings(max_examples=support.examples(25), deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=10), st.booleans())
def test_any_chunks(parts: list[list[int]], consecutive: bool) -> None:
    keys = np.array([key for part in parts for key in part], np.int8)
    x, sizes = np.arange(len(keys)) % 6, list(map(len, parts))
    got = built(gd.reduce_by_key, cut(keys, sizes), x, None, compose, consecutive=consecutive)
    check(got, ga.reduce_by_key(keys, x, None, compose, consecutive=consecutive))
    flags = {"consecutive": consecutive, "return_index": True, "return_counts": True}
    check(built(gd.unique, cut(keys, sizes), **flags), ga.unique(keys, **flags))


def test_tuples_and_shapes() -> None:
    a = RNG.integers(0, 5, N)
    x = cut(a, CHUNKS["uneven"])
    for consecutive in a_few((False, True)):
        got = built(
            ga.reduce_by_key, (x, VALUES), (x, a + 1), (1, 0), affine, consecutive=consecutive
        )
        want = ga.reduce_by_key((a, VALUES), (a, a + 1), (1, 0), affine, consecutive=consecutive)
        check(got, want)
        flags = {"consecutive": consecutive, "return_counts": True, "return_inverse": True}
        check(built(ga.unique, (x, VALUES), **flags), ga.unique((a, VALUES), **flags))
    m = a.reshape(15, 20)
    got = built(ga.unique, cut(m, (10, 5), (7, 13)), return_inverse=True, return_index=True)
    check(got, ga.unique(m, return_inverse=True, return_index=True))
    none = np.zeros((0, 5, 5))
    got = built(ga.unique, cut(none, (0,), (3, 2), (5,)), return_inverse=True)
    check(got, ga.unique(none, return_inverse=True))
    with pytest.raises(ValueError, match="keys have shape"):
        built(gd.reduce_by_key, x, a[1:])


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
