"""reduce on dask arrays: beside the single machine's, for operators that show every swap."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import pytest
import support
from chunked import affine, built, check, compose, cut, ones
from hypothesis import given, settings
from hypothesis import strategies as st
from support import a_few

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(7)
H = RNG.integers(0, 6, (12, 10))
CHUNKS = [((5, 7), (3, 3, 4)), ((12,), (10,)), ((1, 0, 11), ones(10)), (ones(12), (10,))]


def test_a_start_for_each_row() -> None:
    x, start = cut(H, *CHUNKS[0]), RNG.integers(0, 6, 12)
    for init in (start, da.from_array(start, chunks=5), da.from_array(start, chunks=(1, 11))):
        check(built(gd.reduce, x, init, compose, axis=1), ga.reduce(H, start, compose, axis=1))
    with pytest.raises(ValueError, match=r"init has shape \(11,\).*rows have shape \(12,\)"):
        gd.reduce(x, start[1:], axis=1)
    total = gd.reduce(x)  # itself a dask array
    check(built(gd.reduce, x, total), ga.reduce(H, ga.reduce(H)))


@pytest.mark.parametrize("call", [ga.reduce, ga.inclusive_scan, ga.exclusive_scan])
def test_one_element_starts_each_row(call: Any) -> None:
    """As on one machine, whatever its number of dimensions and the rows are."""
    x = cut(H, *CHUNKS[0])
    for shape in ((1,), (1, 1)):
        start = da.from_array(np.full(shape, 3))
        for axis in (None, 0, 1) if call is ga.reduce else (0, 1):
            check(built(call, x, start, compose, axis=axis), call(H, 3, compose, axis=axis))
        pair = (start, da.from_array(np.full((), 4)))
        with pytest.raises(ValueError, match=r"broadcast|init"):
            call((x, x), (start, da.from_array(np.arange(5))), affine, axis=0)
        check(built(call, (x, x), pair, affine, axis=0), call((H, H), (3, 4), affine, axis=0))
    rows = x[x[:, 0] > 2]  # an unknown number
    got = built(ga.reduce, rows, da.from_array(np.ones(1, int)), axis=1)
    check(got, ga.reduce(H[H[:, 0] > 2], 1, axis=1))


class Affine(NamedTuple):
    factor: Any
    term: Any


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_tuples(axis: Any) -> None:
    a, b = RNG.integers(1, 97, (2, 12, 10))
    pair = cut(a, *CHUNKS[0]), cut(b, *CHUNKS[2])
    check(
        built(ga.reduce, pair, None, affine, axis=axis), ga.reduce((a, b), None, affine, axis=axis)
    )
    start = (np.int64(3), np.int64(4))
    check(gd.reduce(pair, start, affine), ga.reduce((a, b), start, affine))
    lazy = tuple(da.from_array(np.asarray(each)) for each in start)
    check(gd.reduce(pair, lazy, affine), ga.reduce((a, b), start, affine))

    def named(f: Any, g: Any) -> Any:
        return Affine(f.factor * g.factor % 97, (f.term * g.factor + g.term) % 97)

    x, row = Affine(a, b), b[0]
    check(built(gd.reduce, Affine(*pair), None, named), ga.reduce(x, None, named))
    check(gd.reduce((pair[0], row), None, affine), ga.reduce((a, row), None, affine))
    check(gd.reduce((pair[0], 2), None, affine), ga.reduce((a, 2), None, affine))


@settings(max_examples=support.examples(25), deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.booleans())
def test_any_chunks(sizes: list[int], has_init: bool) -> None:
    h = np.random.default_rng(len(sizes)).integers(0, 6, sum(sizes))
    x, init = cut(h, sizes), 4 if has_init else None
    if has_init or len(h):
        check(built(gd.reduce, x, init, compose), ga.reduce(h, init, compose))
    check(gd.reduce(x), ga.reduce(h))  # whose identity is known


def test_nothing_to_reduce() -> None:
    empty = cut(np.zeros((0, 3)), (0, 0), (2, 1))
    check(gd.reduce(empty), np.float64(0))
    check(gd.reduce(empty, axis=0), np.zeros(3))
    check(gd.reduce(empty, axis=1), np.zeros(0))
    lazy = built(gd.reduce, empty, None, max)
    with pytest.raises(ValueError, match="identity"):
        lazy.compute()


def test_chunks_of_unknown_size() -> None:
    x = cut(H, *CHUNKS[0])
    some = x[x > 2] if hasattr(x, "reshape") else pytest.skip("dask has no such index here")
    check(built(gd.reduce, some, None, compose), ga.reduce(H[H > 2], None, compose))


def test_memory_order_does_not_matter() -> None:
    """A chunk that has travelled may come in another order of memory; bits stay."""
    h = RNG.standard_normal((60, 70)).astype(np.float32)
    plain = da.from_array(h, chunks=(40, 50))
    other = plain.map_blocks(np.asfortranarray, dtype=h.dtype)
    spaced = plain.map_blocks(lambda c: np.repeat(c, 2, 1)[:, ::2], dtype=h.dtype)
    for axis in a_few((None, 0, 1)):
        want = gd.reduce(plain, axis=axis).compute()
        for x in (other, spaced):
            assert np.array_equal(gd.reduce(x, axis=axis).compute(), want)


def test_wrong_arguments_are_told_at_the_call() -> None:
    x = cut(H, *CHUNKS[0])
    for options in ({"axis": 2}, {"axis": (0, 0)}, {"keepdims": 1}, {"dtype": "S3"}, {"op": 3}):
        errors = []
        for array in (H, x):
            with pytest.raises((TypeError, ValueError)) as caught:
                built(ga.reduce, array, **options)
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]
    with pytest.raises(ga.CompileError):
        built(gd.reduce, x, None, lambda a, b: a.nothing)
    with pytest.raises(TypeError, match="out= is not supported with a dask array"):
        ga.reduce(x, out=np.zeros(()))


def test_no_dimension_and_no_recording() -> None:
    x = da.from_array(np.array(3.5), chunks=())
    for args in ((), (2.0,)):
        check(built(ga.reduce, x, *args), ga.reduce(np.array(3.5), *args))
    with pytest.raises(TypeError, match="dask array, which prepare, explain and graphs"):
        ga.prepare(ga.reduce, x)
    with (
        pytest.raises(TypeError, match="dask array, which prepare, explain and graphs"),
        ga.graph(),
    ):
        ga.inclusive_scan(cut(np.arange(4), (2, 2)))
    with pytest.raises(TypeError, match=r"got ShardedArray; pass x.gather\(\)"):
        ga.transform(lambda a, b: a, cut(np.arange(4), (2, 2)), ga.distribute(np.arange(4), "cpu"))


def test_nothing_in_chunks_of_any_number() -> None:
    none = np.zeros(0)
    one, two = cut(none, (0,)), cut(none, (0, 0))
    for pair in ((one, two), (two, one)):
        check(built(ga.reduce, pair, (1.0, 2.0), affine), (np.float64(1), np.float64(2)))
        got = built(ga.histogram, pair[0], 3, (0, 1), weights=pair[1])
        check(got, ga.histogram(none, 3, (0, 1), weights=none))
