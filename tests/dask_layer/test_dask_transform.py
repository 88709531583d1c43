"""transform of dask arrays beside the single machine's."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from chunked import built, check, cut, last

import gpualgo as ga
import gpualgo.dask as gd

RNG = np.random.default_rng(9)
H = RNG.random((12, 10)).astype(np.float32)
X = cut(H, (5, 7), (3, 3, 4))


class Point(NamedTuple):
    x: Any
    y: Any


class Weekday(enum.Enum):
    MONDAY = 1
    SUNDAY = 7


def test_tuples_in_and_out() -> None:
    got = built(ga.transform, lambda p: (p[0] + p[1], p[0] > p[1]), (X, X[::-1]))
    check(got, ga.transform(lambda p: (p[0] + p[1], p[0] > p[1]), (H, H[::-1])))
    got = built(ga.transform, lambda p: Point(p.y, p.x), Point(X, 2.0))
    check(got, ga.transform(lambda p: Point(p.y, p.x), Point(H, 2.0)))
    got = gd.transform(lambda a: (a, 1), X, dtype=(np.float64, np.int8))
    check(got, ga.transform(lambda a: (a, 1), H, dtype=(np.float64, np.int8)))


def test_captured_values() -> None:
    table, scale, sunday = RNG.random(5000), 3.5, Weekday.SUNDAY
    indices = RNG.integers(0, 5000, 77)

    def op(i: Any) -> Any:
        return table[i] * scale + (1 if sunday is Weekday.SUNDAY else 0)

    want = ga.transform(op, indices)
    got = built(ga.transform, op, cut(indices, (70, 0, 7)))
    kept, table[:], scale = table.copy(), 0, 0.0  # frozen at the call
    check(got, want)
    table[:], scale = kept, 3.5
    check(built(ga.transform, op, cut(indices, (70, 0, 7))), want)


def test_unknown_sizes_and_no_dimensions() -> None:
    if not hasattr(X, "reshape"):
        pytest.skip("dask has no such index here")
    some = X[X > 0.5]
    check(built(ga.transform, lambda a, b: a + b, some, some), H[H > 0.5] * 2)
    check(gd.transform(lambda a: a + 1, X[0, 0]), np.asarray(H[0, 0] + np.float32(1)))


@pytest.mark.parametrize("chunks", [(0, 1), (1, 0), (0, 1, 0, 0)])
def test_one_element_between_empty_chunks(chunks: Any) -> None:
    """It is no chunk that is read for all: the first has nothing."""
    one, row = np.array([7]), np.arange(3)
    x, rows = cut(one, chunks), cut(row, (2, 1))
    got = built(ga.transform, lambda a: a + 1, x)
    assert got.chunks == x.chunks
    check(got, one + 1)
    check(built(ga.transform, lambda a, b: a - b, rows, x), row - one)
    check(built(ga.reduce, (x, cut(one * 2, (1,))), None, last), (np.int64(7), np.int64(14)))
    column = cut(row[:, None], (1, 2), chunks)
    check(built(ga.transform, lambda a, b: a - b, column, x), row[:, None] - one)
    check(built(ga.transform, lambda a, b: a - b, rows, column), row - row[:, None])
