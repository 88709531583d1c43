"""Dask arrays with chunks of unknown size beside each other, and beside arrays of known sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import pytest
from chunked import affine, built, check, compose, cut

import gpualgo as ga

H = np.arange(8.0)
X = cut(H, (4, 4))
RNG = np.random.default_rng(15)
GRID, OTHER = RNG.integers(1, 97, (2, 9, 10))
KEPT = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1], bool)
ADVICE = r"call x\.compute_chunk_sizes\(\) first"

if not hasattr(X, "reshape"):
    pytest.skip("dask has no such index here", allow_module_level=True)


def chosen(*indices: int) -> Any:
    """Return some of the numbers below 8, in two chunks of unknown sizes."""
    return X[cut(np.isin(H, indices), (4, 4))]


def grid(values: Any, *columns: int) -> Any:
    """Return the kept rows, in chunks of unknown sizes."""
    return cut(values, (4, 0, 5), columns)[cut(KEPT, (4, 0, 5))]


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "transform": lambda a, b: ga.transform(lambda p, q: p + q, a, b),
    "reduce": lambda a, b: ga.reduce((a, b), None, affine),
    "scan": lambda a, b: ga.inclusive_scan((a, b), None, affine),
    "select": lambda a, b: ga.select(a, b > 3),
    "select tuples": lambda a, b: ga.select((a, b), lambda p: p[0] >= 0),
    "unique": lambda a, b: ga.unique((a, b), return_inverse=True),
    "keys": ga.reduce_by_key,
    "keys of tuples": lambda a, b: ga.reduce_by_key((a, b), a),
    "weights": lambda a, b: ga.histogram(a, 3, (0, 9), weights=b),
    "two dimensions": lambda a, b: ga.histogram((a, b), 2, ((0, 9), (0, 9))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_chunks_of_a_pair_have_equal_sizes(name: str) -> None:
    """One element of a chunk is not taken for several, as of two whole arrays of one length."""
    call, (a, b) = PAIRS[name], (chosen(0, 4, 5), chosen(0, 1, 4))
    lazy = built(call, a, b)
    with pytest.raises(ValueError, match=rf"chunk .* elements .*{ADVICE}"):
        dask.compute(lazy)
    whole = call(a.compute(), b.compute())
    check(call(a.compute_chunk_sizes(), b.compute_chunk_sizes()), whole)
    a = chosen(0, 4, 5)
    check(built(call, a, a * 2 + 1), call(a.compute(), a.compute() * 2 + 1))


@pytest.mark.parametrize("name", PAIRS)
def test_known_sizes_beside_unknown_ones(name: str) -> None:
    for pair in ((chosen(0, 4, 5), X), (X, chosen(6)), (chosen(0, 4, 5), np.arange(3.0))):
        with pytest.raises(ValueError, match=ADVICE):
            built(PAIRS[name], *pair)
    if name not in ("weights", "keys"):
        return
    values = RNG.random(3)
    for call in (ga.radix_sort, ga.reduce_by_key):
        with pytest.raises(ValueError, match=ADVICE):
            built(call, cut(values, (2, 1)), chosen(0, 4, 5))


def test_one_chunk_needs_no_sizes() -> None:
    a, h = cut(H, (8,)), H[H > 2]
    got = built(ga.transform, lambda p, q: p * q, a[a > 2], np.arange(5))
    check(got, h * np.arange(5))
    check(built(ga.reduce, (a[a > 2], 2.0), None, affine), ga.reduce((h, 2.0), None, affine))
    got = built(ga.transform, lambda p, q: p * q, a[a > 2], np.arange(4))
    with pytest.raises(ValueError, match=r"chunk \(0,\) has 4 elements in .* and 5 in another"):
        got.compute()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_other_axes_are_cut_anew(axis: Any) -> None:
    pair, whole = (grid(GRID, 3, 7), grid(OTHER, 5, 0, 5)), (GRID[KEPT], OTHER[KEPT])
    check(
        built(ga.reduce, pair, None, affine, axis=axis), ga.reduce(whole, None, affine, axis=axis)
    )
    for other, values in ((pair[1], whole[1]), (pair[1][:, :1], whole[1][:, :1]), (GRID[0],) * 2):
        check(
            built(ga.histogram, pair[0], 3, (0, 97), weights=other, axis=axis),
            ga.histogram(whole[0], 3, (0, 97), weights=values, axis=axis),
        )
        got = built(ga.transform, lambda a, b: a * 100 + b, pair[0], other)
        check(got, whole[0] * 100 + values)
        check(built(ga.reduce, (pair[0], other), None, affine, axis=axis),
              ga.reduce((whole[0], values), None, affine, axis=axis))  # fmt: skip
    wrong = cut(OTHER, (4, 5), (10,))[cut(~KEPT, (4, 5))]
    with pytest.raises(ValueError, match=ADVICE):
        built(ga.reduce, (pair[0], wrong), None, affine, axis=axis)


@pytest.mark.parametrize("call", [ga.reduce, ga.inclusive_scan, ga.exclusive_scan])
def test_a_start_for_each_row_of_a_known_number(call: Any) -> None:
    x, start = grid(GRID % 6, 4, 6), RNG.integers(0, 6, 10)
    want = call(GRID[KEPT] % 6, start, compose, axis=0)
    for init in (start, cut(start, (1,) * 10), cut(start, (4, 6)), cut(start, (10,))):
        check(built(call, x, init, compose, axis=0), want)
    for init in (start[:8], cut(np.arange(20), (4, 16)), cut(np.arange(4), (2, 2))):
        with pytest.raises(ValueError, match=r"init has shape .*rows have shape \(10,\)"):
            built(call, x, init, compose, axis=0)


@pytest.mark.parametrize("call", [ga.reduce, ga.inclusive_scan])
def test_a_start_for_each_row_of_an_unknown_number(call: Any) -> None:
    x, rows = grid(GRID, 4, 6), cut(np.arange(9), (4, 0, 5))
    start, whole = rows[cut(KEPT, (4, 0, 5))], GRID[KEPT]
    check(built(call, x, start, axis=1), call(whole, start.compute(), axis=1))
    other = rows[cut(np.array([1, 1, 1, 1, 0, 0, 0, 1, 1], bool), (4, 0, 5))]
    with pytest.raises(ValueError, match=ADVICE):
        built(call, x, other, axis=1).compute()
    for init in (np.arange(6), cut(np.arange(6), (3, 0, 3)), cut(np.arange(2), (1, 1))):
        with pytest.raises(ValueError, match=ADVICE):
            built(call, x, init, axis=1)
    one = cut(GRID, (9,), (4, 6))
    one = one[cut(KEPT, (9,))]
    check(built(call, one, np.arange(6), axis=1), call(whole, np.arange(6), axis=1))
