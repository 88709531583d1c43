"""Runs by key that many tiles of a GPU share, in groups of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from by_key.reference import same_bits
from support import Backend, affine, compose, scaled

import gpualgo as ga
from gpualgo._algorithms.by_key import cuda as tuning
from gpualgo._algorithms.by_key.problem import ExclusiveScan, InclusiveScan, Reduction

TILE, GROUP = 64, 32  # elements of a tile, with the policy below; tiles of a group
POLICY = {"BLOCK_THREADS": TILE, "MOST_ITEMS": 1, "MOST_ROWS": 1}
COUNTS = [1, 31, 32, 33, 63, 64, 65, 97, 1023, 1024, 1025, 1100]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name, value in POLICY.items():
            patch.setattr(tuning, name, value)
        _forget()
        yield
    _forget()


def _forget() -> None:
    for kind in (Reduction, InclusiveScan, ExclusiveScan):
        kind.problems.clear()


def _heads(num_tiles: int, where: str) -> np.ndarray[Any, Any]:
    """Return the tiles in which a run begins: some of these, behind the first."""
    rng = np.random.default_rng(num_tiles)
    groups = np.arange(1, num_tiles // GROUP + 1) * GROUP
    groups = groups[rng.random(groups.size) < 0.7]
    tiles = {
        "none": groups[:0],
        "first of groups": groups,
        "last of groups": groups - 1,
        "any": np.flatnonzero(rng.random(num_tiles) < 0.02),
    }[where]
    return tiles[(tiles > 0) & (tiles < num_tiles)]


def _keys(num_tiles: int, where: str) -> np.ndarray[Any, Any]:
    """Return keys of tiles of which the last one is not full."""
    n = num_tiles * TILE - 3
    begins = np.zeros(n, np.int32)
    tiles = _heads(num_tiles, where)
    begins[np.minimum(tiles * TILE + tiles * 7 % TILE, n - 1)] = 1
    return np.cumsum(begins, dtype=np.int32)


@pytest.mark.parametrize("num_tiles", COUNTS)
@pytest.mark.parametrize("where", ["none", "first of groups", "last of groups", "any"])
def test_groups_of_tiles(cuda: Backend, num_tiles: int, where: str) -> None:
    """Functions that are composed show each mistake of order."""
    keys = _keys(num_tiles, where)
    x = affine(keys.size, seed=num_tiles)
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    want = x.copy()
    for i in np.flatnonzero(keys[1:] == keys[:-1]) + 1:
        want[i] = compose(want[i - 1], x[i])
    arrays = cuda.to_device(keys), cuda.to_device(x)
    got = ga.inclusive_scan_by_key(*arrays, None, compose, consecutive=True)
    same_bits(cuda, got, want)
    found = ga.reduce_by_key(*arrays, None, compose, consecutive=True)
    same_bits(cuda, found.keys, keys[heads])
    same_bits(cuda, found.aggregates, want[np.append(heads[1:], keys.size) - 1])


@pytest.mark.parametrize("num_tiles", COUNTS)
@pytest.mark.parametrize("side", ["first", "last"])
def test_first_and_last(cuda: Backend, num_tiles: int, side: str) -> None:
    """No operator gets anything but elements."""
    keys = _keys(num_tiles, "any")
    x = np.random.default_rng(1).integers(1, 1 << 30, keys.size).astype(np.int32)
    op: Callable[[Any, Any], Any] = (lambda a, b: a) if side == "first" else (lambda a, b: b)
    arrays = cuda.to_device(keys), cuda.to_device(x)
    got = ga.inclusive_scan_by_key(*arrays, None, op, consecutive=True)
    heads = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    same_bits(cuda, got, x[heads][keys] if side == "first" else x)


@pytest.mark.parametrize("where", ["none", "any"])
def test_same_bits(cuda: Backend, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Sums that round, by grids of any size and whoever is first."""
    keys = _keys(scaled(5000, emulated=300), where)
    x = np.random.default_rng(2).standard_normal(keys.size).astype(np.float32)
    arrays = cuda.to_device(keys), cuda.to_device(x)
    for function in (ga.inclusive_scan_by_key, ga.reduce_by_key):
        found = set()
        for threads in (64, 256, 2048):
            monkeypatch.setattr(tuning, "SM_THREADS", {1 << 30: threads})
            _forget()
            for _ in range(3):
                got = function(*arrays, consecutive=True)
                last = got[1] if isinstance(got, tuple) else got
                found.add(cuda.to_host(last).tobytes())
        assert len(found) == 1
