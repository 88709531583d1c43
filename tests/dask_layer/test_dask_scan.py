"""Scans of dask arrays beside the single machine's."""

from __future__ import annotations

import operator
from typing import Any

import dask.array as da
import numpy as np
import pytest
import support
from chunked import affine, built, check, compose, cut, last, ones
from hypothesis import given, settings
from hypothesis import strategies as st
from support import a_few

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(8)
H = RNG.integers(0, 6, (12, 10))
CHUNKS = [((5, 7), (3, 3, 4)), ((12,), (10,)), ((1, 0, 11), ones(10))]
SCANS = [(ga.inclusive_scan, None), (ga.inclusive_scan, 3), (ga.exclusive_scan, 3)]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", [compose, last, max], ids=lambda op: op.__name__)
def test_order_and_axes(chunks: Any, axis: Any, reverse: bool, op: Any) -> None:
    x, options = cut(H, *chunks), {"axis": axis, "reverse": reverse}
    for scan, init in SCANS:
        got = built(scan, x, init, op, **options)
        check(got, scan(H, init, op, **options))
        if axis is not None:
            assert got.chunks == x.chunks


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


def test_zeros_of_both_signs() -> None:
    h = np.array([-0.0] * 9)
    for op in (np.add, np.multiply):
        for scan in (ga.inclusive_scan, ga.exclusive_scan):
            check(scan(cut(h, (2, 3, 4)), None, op), scan(h, None, op))


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


def test_tuples() -> None:
    a, b = RNG.integers(1, 97, (2, 12, 10))
    pair = cut(a, *CHUNKS[0]), cut(b, *CHUNKS[2])
    for options in a_few(({"axis": 0}, {"axis": 1, "reverse": True}, {})):
        got = built(ga.inclusive_scan, pair, None, affine, **options)
        check(got, ga.inclusive_scan((a, b), None, affine, **options))
        got = built(ga.exclusive_scan, pair, (1, 0), affine, **options)
        check(got, ga.exclusive_scan((a, b), (1, 0), affine, **options))
    same = ga.Operator(affine, identity=(1, 0))
    check(gd.exclusive_scan(pair, None, same), ga.exclusive_scan((a, b), None, same))


def test_records_and_dtypes() -> None:
    x = np.zeros(40, [("factor", "i8"), ("term", "i4")])
    x["factor"], x["term"] = RNG.integers(1, 97, (2, 40))

    def op(f: Any, g: Any) -> Any:
        return (f.factor * g.factor % 97, (f.term * g.factor + g.term) % 97)

    check(built(ga.inclusive_scan, cut(x, (7, 33)), None, op), ga.inclusive_scan(x, None, op))
    small = RNG.integers(0, 100, 50, dtype=np.int8)
    ways: list[dict[str, Any]] = [{"dtype": np.int64}, {"init": np.float32(0.5)}, {}]
    for options in a_few(ways):
        check(
            gd.inclusive_scan(cut(small, (9, 41)), **options), ga.inclusive_scan(small, **options)
        )


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


def test_identities_of_bool() -> None:
    h = np.array([True, False, True, True, False])
    for op in (operator.add, operator.mul, operator.xor):
        got = built(ga.exclusive_scan, cut(h, (2, 1, 2)), None, op)
        check(got, ga.exclusive_scan(h, None, op))
