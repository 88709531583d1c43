"""Selections of positions: where marks are true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
from gpualgo import lazy

Host = np.ndarray[Any, Any]
COUNTS = [1, 31, 16383, 16384, 16385, 40_003]  # a tile of a GPU has 16384


def marks(count: int, share: float = 0.4) -> Host:
    found: Host = np.random.default_rng(count).random(count) < share
    return found


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", COUNTS)
def test_counts(backend: Backend, count: int, share: float) -> None:
    keep = marks(count, share)
    got = ga.select(lazy.arange(count), backend.to_device(keep))
    np.testing.assert_array_equal(backend.to_host(got), np.flatnonzero(keep))


@pytest.mark.parametrize("part", [np.s_[1:], np.s_[3::3], np.s_[::-1]], ids=str)
def test_layouts(backend: Backend, part: slice) -> None:
    keep = marks(50_001)
    given, want = backend.to_device(keep)[part], np.flatnonzero(keep[part])
    places = lazy.arange(len(keep[part]))
    np.testing.assert_array_equal(backend.to_host(ga.select(places, given)), want)


def test_both_parts_and_pairs(backend: Backend) -> None:
    keep = marks(40_003)
    places, given = lazy.arange(40_003), backend.to_device(keep)
    kept, rest = ga.stable_partition(places, given)
    np.testing.assert_array_equal(backend.to_host(kept), np.flatnonzero(keep))
    np.testing.assert_array_equal(backend.to_host(rest), np.flatnonzero(~keep))
    for numbers in ga.select((places, places), given):
        np.testing.assert_array_equal(backend.to_host(numbers), np.flatnonzero(keep))


def test_no_more_than_there_is_room_for(backend: Backend) -> None:
    keep = marks(40_003)
    out = backend.to_device(np.full(5000, -7))
    count = backend.to_device(np.zeros((), np.int64))
    ga.select(lazy.arange(40_003), backend.to_device(keep), out=out[:4096], out_count=count)
    assert backend.to_host(count) == keep.sum()
    np.testing.assert_array_equal(backend.to_host(out)[:4096], np.flatnonzero(keep)[:4096])
    assert (backend.to_host(out)[4096:] == -7).all()


@pytest.mark.parametrize("offset", [0, 3])
def test_bytes_that_are_true(backend: Backend, offset: int) -> None:
    values = np.random.default_rng(1).choice(np.array([0, 0, 1, 2, 8, 128, 255], np.uint8), 9001)
    keep = values.view(bool)[offset:]  # as other libraries may have them
    given = backend.to_device(keep)
    kept, rest = ga.stable_partition(lazy.arange(len(keep)) + 5, given)
    np.testing.assert_array_equal(backend.to_host(kept), np.flatnonzero(values[offset:]) + 5)
    np.testing.assert_array_equal(backend.to_host(rest), np.flatnonzero(values[offset:] == 0) + 5)
    places = ga.select(lazy.arange(len(keep))[2:], given[2:])
    np.testing.assert_array_equal(backend.to_host(places), np.flatnonzero(values[offset + 2 :]) + 2)
