"""Reductions of tuples of which some numbers are the same for all elements, or those of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, scaled

import gpualgo as ga

SIZES = [1, 5, 33, 4097, scaled(1_000_003, emulated=40_003)]


def _op(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1], a[2]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rows", [None, 3])
def test_in_rows(backend: Backend, rows: int | None, n: int) -> None:
    shape = (n,) if rows is None else (rows, n)
    x = np.random.default_rng(0).integers(-5, 6, shape).astype(np.float32)
    one, two = np.ones(1, np.float32), np.full((*shape[:-1], 1), 2)
    for start in (0, 1)[:n]:  # aligned, and not
        given = tuple(map(backend.to_device, (one, x, two)))
        found = ga.reduce((given[0], given[1][..., start:], given[2]), None, _op, axis=-1)
        count, total, last = map(backend.to_host, found)
        np.testing.assert_array_equal(count, np.full(shape[:-1], n - start))
        np.testing.assert_array_equal(total, x[..., start:].sum(-1))
        np.testing.assert_array_equal(last, two[..., 0])


def test_down_columns(backend: Backend) -> None:
    x = np.random.default_rng(0).integers(-5, 6, (301, 40)).astype(np.float32)
    one, two = np.ones(1, np.float32), np.arange(40)
    given = tuple(map(backend.to_device, (one, x, two)))
    count, total, last = map(backend.to_host, ga.reduce(given, None, _op, axis=0))
    np.testing.assert_array_equal(count, np.full(40, 301))
    np.testing.assert_array_equal(total, x.sum(0))
    np.testing.assert_array_equal(last, two)


def test_all_of_them(backend: Backend) -> None:
    one, x = (backend.to_device(np.full(1, k, np.int32)) for k in (1, 3))
    wide = backend.xp.broadcast_to(x, (1000,))
    count, total, last = ga.reduce((one, wide, x), None, _op)
    assert [int(backend.to_host(y)) for y in (count, total, last)] == [1000, 3000, 3]
