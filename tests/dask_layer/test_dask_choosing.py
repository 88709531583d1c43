"""select, top_k and searchsorted of dask arrays beside the single machine's."""

from __future__ import annotations

import numpy as np
import pytest
from chunked import built, check, cut

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


def test_what_does_not_fit() -> None:
    for k, axis in ((31, 1), (-1, 0), (601, None)):
        errors = []
        for x in (H, X):
            with pytest.raises(ValueError, match="k is") as caught:
                built(ga.top_k, x, k, axis=axis)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
    with pytest.raises(ValueError, match="dtype"):
        built(gd.searchsorted, cut(np.arange(600), (300, 300)), H, dtype=np.int8)
    with pytest.raises(ValueError, match="keys have shape"):
        built(gd.reduce_by_key, X, H[1:])
    with pytest.raises(ValueError, match=r"shapes .* do not broadcast together"):
        built(ga.transform, lambda a, b: a, X, np.arange(20))
