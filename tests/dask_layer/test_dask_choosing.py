"""select, top_k and searchsorted of dask arrays beside the single machine's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunked import built, check, cut, ones
from support import a_few

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(12)
H = RNG.integers(-5, 50, (20, 30))
X = cut(H, (7, 0, 13), (9, 11, 10))


def test_select_keeps_c_order() -> None:
    bound = 7
    check(built(ga.select, X, lambda a: a > bound), ga.select(H, lambda a: a > bound))
    for mark in (H > 0, cut(H > 0, (20,), (15, 15)), X > 0):
        check(built(gd.select, X, mark), ga.select(H, H > 0))
    check(built(ga.select, H, X > 0), ga.select(H, H > 0))
    got = built(ga.select, (X, X[0]), lambda p: p[0] > p[1])
    check(got, ga.select((H, H[0]), lambda p: p[0] > p[1]))
    check(gd.select(cut(np.zeros(0), (0, 0)), lambda a: a > 0), np.zeros(0))
    with pytest.raises(ValueError, match="predicate has shape"):
        built(gd.select, X, H[0] > 0)
    with pytest.raises(TypeError, match="bool"):
        built(gd.select, X, lambda a: a + 1)


def test_what_was_selected_goes_on() -> None:
    """Its chunks are of unknown size, which most functions take."""
    some = built(ga.select, X, lambda a: a > 0)
    kept = H[H > 0]
    check(built(ga.reduce, some), ga.reduce(kept))
    check(built(ga.inclusive_scan, some, None, max), ga.inclusive_scan(kept, None, max))
    check(built(ga.histogram, some, 5), ga.histogram(kept, 5))
    check(built(ga.unique, some, return_counts=True), ga.unique(kept, return_counts=True))
    check(built(ga.reduce_by_key, some, some), ga.reduce_by_key(kept, kept))
    check(built(ga.transform, lambda a: a + 1, some), kept + 1)
    for function, args in ((ga.argsort, ()), (ga.top_k, (3,))):
        with pytest.raises(ValueError, match=r"unknown size.*compute_chunk_sizes\(\)"):
            built(function, some, *args)


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k(axis: Any, mode: str) -> None:
    floats = np.where(RNG.random(H.shape) < 0.2, np.nan, H.astype(np.float32))
    for h in (H, floats, np.zeros(H.shape, bool)):
        # Into blocks in C order dask's expressions (2026.8) do not bring such columns.
        x = cut(h, (7, 0, 13), ones(30) if hasattr(X, "reshape") else (9, 11, 10))
        for k in (0, 1, 7, 20):
            got = built(ga.top_k, x, k, axis=axis, mode=mode)
            check(got, ga.top_k(h, k, axis=axis, mode=mode))
    for k, axis_of in ((31, 1), (-1, 0), (601, None)):
        errors = []
        for x in (H, X):
            with pytest.raises(ValueError, match="k is") as caught:
                built(ga.top_k, x, k, axis=axis_of)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_searchsorted() -> None:
    a, v = np.sort(H.reshape(-1)), RNG.integers(-9, 60, (5, 6))
    table, wanted = cut(a, (100, 0, 400, 100)), cut(v, (2, 3), (6,))
    for side in a_few(("left", "right")):
        for asked, real in a_few(((wanted, v), (v, v), (3, 3), (3.5, 3.5), (v + 0.5, v + 0.5)), 3):
            check(
                built(ga.searchsorted, table, asked, side=side), ga.searchsorted(a, real, side=side)
            )
        check(built(ga.searchsorted, a, wanted, side=side), ga.searchsorted(a, v, side=side))
    back = cut(a[::-1].copy(), (250, 350))
    want = ga.searchsorted(a[::-1], v, descending=True)
    check(built(ga.searchsorted, back, wanted, descending=True), want)
    check(built(ga.searchsorted, back, wanted, less=lambda p, q: p > q), want)
    pair = (cut(a, (300, 300)), cut(np.arange(600), (300, 300)))
    got = built(gd.searchsorted, pair, (wanted, 50), dtype=np.uint16)
    check(got, ga.searchsorted((a, np.arange(600)), (v, np.full_like(v, 50)), dtype=np.uint16))
    with pytest.raises(ValueError, match="dtype"):
        built(gd.searchsorted, table, wanted, dtype=np.int8)
