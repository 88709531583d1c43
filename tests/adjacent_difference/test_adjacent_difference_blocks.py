"""Differences of host arrays that go to a GPU in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga
from gpualgo._algorithms.transform import cuda as blocks
from gpualgo._driver import staging


@pytest.fixture
def ran(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let blocks be small; tells how many elements each call had that came in blocks."""
    found: list[int] = []
    usual = blocks.transform

    def transform(problem: Any, applied: Any, arrays: Any, *rest: Any) -> None:
        found.append(arrays[0].size)
        usual(problem, applied, arrays, *rest)

    monkeypatch.setattr(blocks, "transform", transform)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 256)
    monkeypatch.setattr(staging, "GAPS_BYTES", 256)
    monkeypatch.setattr(blocks, "LARGE_BYTES", 256)
    monkeypatch.setattr(staging.pieces, "__defaults__", (200,))
    with ga.default_device("cuda"):
        yield found


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["pageable", "out is pinned", "x is pinned"])
def test_blocks(ran: list[int], axis: int, kind: str) -> None:
    x, out = np.arange(37 * 211, dtype=np.int32).reshape(37, 211) ** 2, None
    zeros = np.zeros((1, 211) if axis == 0 else (37, 1), np.int32)
    if kind == "out is pinned":
        out = ga.empty_pinned(x.shape, np.int32)
    if kind == "x is pinned":
        x = ga.empty_pinned(x.shape, np.int32)
        x[...] = np.arange(x.size).reshape(x.shape) ** 2
        out = np.zeros_like(x)
    got = ga.adjacent_difference(x, axis=axis, out=out)
    assert_same(got, np.diff(x, axis=axis, prepend=zeros))
    assert ran == [x.size - zeros.size]


def test_blocks_of_tuples(ran: list[int]) -> None:
    x, y = np.arange(5003, dtype=np.int16), np.arange(5003) / 4
    limit = np.float64(1000)  # a number that is captured
    got = ga.adjacent_difference((x, y[::-1]), lambda a, b: (a[0] > limit, a[1] * 2 - b[1]))
    assert ran == [5002]
    assert_same(got[0], np.append(x[:1] != 0, x[1:] > limit))
    assert_same(got[1], np.append(y[-1:], y[::-1][1:] * 2 - y[::-1][:-1]))


def test_what_comes_whole(ran: list[int]) -> None:
    x = np.arange(5003, dtype=np.int32)
    assert_same(ga.adjacent_difference(x[:20]), np.diff(x[:20], prepend=np.int32(0)))
    lazy = ga.lazy.asarray(x) * 2
    assert_same(ga.adjacent_difference(lazy), np.diff(x * 2, prepend=np.int32(0)))
    assert_same(ga.adjacent_difference(x[:, None], axis=1), x[:, None])
    assert ran == []
