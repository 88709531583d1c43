"""Rows whose elements a GPU loads one by one: reversed, with gaps, or at odd addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array, sampled

import gpualgo as ga
from gpualgo._algorithms.transform import tuning

# Rows too short to share a block, several to a block, one to a block, and several blocks to a row.
EXTENTS = (
    5,
    31,
    32,
    33,
    57,
    61,
    100,
    129,
    191,
    193,
    256,
    300,
    513,
    700,
    1025,
    2047,
    2048,
    2049,
    4100,
)


@pytest.mark.parametrize("dtype", sampled(["int8", "float32", "complex128"], ["float32"]))
@pytest.mark.parametrize("extent", EXTENTS)
def test_rows(backend: Backend, guarded: Any, extent: int, dtype: str) -> None:
    x = random_array((9, extent + 5), np.dtype(dtype))
    given = backend.to_device(x)
    pairs = [
        (np.s_[:, 1 : extent + 1], np.s_[:, 3 : extent + 3]),
        (np.s_[:, extent - 1 :: -1] if extent < x.shape[1] else np.s_[:, ::-1], np.s_[:, 2:-3]),
        (np.s_[::-2, 1 : extent + 1], np.s_[1::2, 5:]),
    ]
    for first, second in pairs:
        a, b = x[first], x[second]
        rows = min(len(a), len(b))
        a, b = a[:rows], b[:rows]
        got = ga.transform(lambda p, q: p - q, given[first][:rows], given[second][:rows])
        assert_same(backend.to_host(got), a - b)
        out = guarded(a.shape, a.dtype, "offset")
        ga.transform(lambda p, q: q, given[first][:rows], given[second][:rows], out=out)
        assert_same(backend.to_host(out), b)


@pytest.mark.parametrize("extent", [3, 40, 130, 1000, 2100])
def test_rows_of_several_dimensions(backend: Backend, extent: int) -> None:
    x = random_array((3, 4, 5, extent + 2), np.dtype("int16"))
    given, column = backend.to_device(x), backend.to_device(x[:, 1:, 2:, :1].copy())
    cropped = np.s_[:, 1:, 2:, 1:-1]
    got = ga.transform(lambda p, q: (p, p - q), given[cropped], column)
    assert_same(backend.to_host(got[0]), x[cropped])
    assert_same(backend.to_host(got[1]), x[cropped] - x[:, 1:, 2:, :1])
    out = backend.to_device(np.zeros_like(x))
    ga.transform(lambda p: p, given[cropped], out=out[:, 3:0:-1, 2:, 1:-1])
    want = np.zeros_like(x)
    want[:, 3:0:-1, 2:, 1:-1] = x[cropped]
    assert_same(backend.to_host(out), want)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_tiles_cover_rows(itemsize: int) -> None:
    for extent in range(5000):
        tiles = tuning.row_tiles(extent, itemsize)
        if tiles is None:
            assert extent < 64
            continue
        loads, lanes, count = tiles
        assert lanes * tiles.rows <= tuning.BLOCK_THREADS
        assert (count - 1) * loads * lanes < extent <= count * loads * lanes


def test_rows_of_a_block_are_found_by_a_product() -> None:
    for lanes in range(1, tuning.BLOCK_THREADS + 1):
        factor = -(-(1 << 16) // lanes)
        assert all(t * factor >> 16 == t // lanes for t in range(tuning.BLOCK_THREADS))
