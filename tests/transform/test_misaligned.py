"""Inputs that begin at no multiple of a pack, outputs that do, and the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array, sampled

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._algorithms.transform import cuda, tuning
from gpualgo._algorithms.transform.cuda import Case
from gpualgo._operators.operator import Operator

DTYPES = [np.dtype(name) for name in ("int8", "int16", "int32", "float64", "complex128")]


@pytest.mark.parametrize("dtype", sampled(DTYPES, ["int8", "int16", "int32", "float64"]), ids=str)
def test_neighbours(backend: Backend, guarded: Any, dtype: np.dtype[Any]) -> None:
    tile = tuning.BLOCK_THREADS * tuning.LOOSE_ITEMS
    for n in (2, 5, tile, tile + 1, 2 * tile + 3):
        x = random_array(n + 2, dtype)
        given = backend.to_device(x)
        for first, second in ((0, 1), (1, 0), (2, 1), (1, 1)):
            a, b = slice(first, first + n), slice(second, second + n)
            out = guarded((n,), dtype)
            ga.transform(lambda p, q: p - q, given[a], given[b], out=out)
            assert_same(backend.to_host(out), x[a] - x[b])
            got = ga.transform(lambda p, q: p - q, given[a], given[b])
            assert_same(backend.to_host(got), x[a] - x[b])
    out = guarded((n,), dtype, "offset")
    ga.transform(lambda p, q: q, given[:-2], given[1:-1], out=out)
    assert_same(backend.to_host(out), x[1:-1])


def test_several_of_them(backend: Backend) -> None:
    """Of several sizes, a number and tuples among them."""
    a, b = random_array(2051, np.dtype("float32")), random_array(2051, np.dtype("float64"))
    x, y = backend.to_device(a), backend.to_device(b)
    got = ga.transform(lambda p, q, r: (p * q, r), x[1:], y[:-1], x[:-1])
    assert_same(backend.to_host(got[0]), a[1:] * b[:-1])
    assert_same(backend.to_host(got[1]), a[:-1])
    assert_same(backend.to_host(ga.transform(lambda p, q: q - p, x[3:], 2.0)), 2 - a[3:])


def test_differences(backend: Backend) -> None:
    x = random_array(5003, np.dtype("float32"))
    for order in (1, 2, 3):
        got = gnp.diff(backend.to_device(x), order)
        assert_same(backend.to_host(got), np.diff(x, order))


@pytest.mark.parametrize(
    ("pointers", "items", "loose"),
    [((0, 0, 0), 4, 0), ((0, 4, 0), 4, 1), ((0, 0, 4), 4, 2), ((0, 8, 4), 4, 3), ((8, 0, 4), 2, 2),
     ((4, 0, 4), 1, 0), ((8, 8, 8), 2, 0)],
)  # fmt: skip
def test_which_are_loaded_one_by_one(pointers: tuple[int, ...], items: int, loose: int) -> None:
    single = np.dtype("float32")
    applied = tuning.Applied(Operator(np.subtract), (single, single), single)
    case = Case(applied, (single,) * 3, pointers, [(100, (4, 4, 4))])
    found = cuda._flat(case)
    assert found is not None
    loads = tuning.loads_in_flight((single, single), items)
    assert found.spec() == tuning.flat_spec(applied, items, loads, loose=loose)


def test_random_numbers_stay_in_blocks(backend: Backend) -> None:
    u = ga.lazy.random(2051, seed=1)
    want = np.asarray(u)
    x = backend.to_device(want)
    got = ga.transform(lambda p, q, r: (p, q, r), u[1:], x[1:], x[:-1])
    for number, expected in zip(got, (want[1:], want[1:], want[:-1]), strict=True):
        assert_same(backend.to_host(number), expected)
