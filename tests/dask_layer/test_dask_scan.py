"""Scans of dask arrays beside the single machine's."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import support
from chunked import built, check, compose, cut, ones
from hypothesis import given, settings
from hypothesis import strategies as st

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(8)
H = RNG.integers(0, 6, (12, 10))
CHUNKS = [((5, 7), (3, 3, 4)), ((12,), (10,)), ((1, 0, 11), ones(10))]
SCANS = [(ga.inclusive_scan, None), (ga.inclusive_scan, 3), (ga.exclusive_scan, 3)]


@settings(max_examples=support.examples(25), deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.booleans())
def test_any_chunks(sizes: list[int], reverse: bool) -> None:
    h = np.random.default_rng(len(sizes)).integers(0, 6, sum(sizes))
    x = cut(h, sizes)
    for scan, init in SCANS:
        got = built(scan, x, init, compose, reverse=reverse)
        assert got.chunks == x.chunks
        check(got, scan(h, init, compose, reverse=reverse))
    check(gd.exclusive_scan(x, reverse=reverse), ga.exclusive_scan(h, reverse=reverse))


def test_a_start_for_each_line() -> None:
    x = cut(H, *CHUNKS[0])
    for axis, reverse in ((0, False), (1, True)):
        start = RNG.integers(0, 6, H.shape[1 - axis])
        for scan in (ga.inclusive_scan, ga.exclusive_scan):
            for init in (start, da.from_array(start, chunks=4)):
                got = built(
                    getattr(gd, scan.__name__), x, init, compose, axis=axis, reverse=reverse
                )
                check(got, scan(H, start, compose, axis=axis, reverse=reverse))


def test_unknown_sizes() -> None:
    x = cut(H, *CHUNKS[0])
    if not hasattr(x, "reshape"):
        pytest.skip("dask has no such index here")
    some = x[x > 2]
    check(built(gd.inclusive_scan, some, None, compose), ga.inclusive_scan(H[H > 2], None, compose))
    rows = x[x[:, 0] > 2]
    check(gd.inclusive_scan(rows, axis=0), ga.inclusive_scan(H[H[:, 0] > 2], axis=0))
    with pytest.raises(ValueError, match=r"unknown size.*compute_chunk_sizes"):
        gd.inclusive_scan(rows)


def test_no_identity_is_told_at_the_call() -> None:
    with pytest.raises(ValueError, match="identity"):
        built(gd.exclusive_scan, cut(H, *CHUNKS[0]), None, max, axis=0)
