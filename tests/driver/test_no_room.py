"""Transformations of host arrays for which a GPU has no room as a whole: they go by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, forget_problems

import gpualgo as ga
from gpualgo._driver import device as gpu
from gpualgo._driver import staging
from gpualgo._pipeline import host_small

ROOM = 1 << 12


@pytest.fixture
def full(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let a GPU give so little memory at once; tells what was asked for in vain."""
    device, refused = gpu.get(0), list[int]()
    allocate = device.allocate

    def limited(size: int, stream: int) -> int:
        if size > ROOM:
            refused.append(size)
            raise MemoryError("planted")
        return allocate(size, stream)

    monkeypatch.setattr(device, "allocate", limited)
    monkeypatch.setattr(host_small, "MOST_BYTES", 0)
    monkeypatch.setattr(staging.pieces, "__defaults__", (256,))
    from gpualgo._algorithms.transform import blocks

    monkeypatch.setattr(blocks, "SLOT_BYTES", 512)
    monkeypatch.setattr(blocks, "MOST_LANES", 2)
    forget_problems()
    with ga.default_device("cuda"):
        yield refused


@pytest.mark.parametrize("has_out", [False, True])
def test_transformations(full: list[int], has_out: bool) -> None:
    x = np.arange(5003, dtype=np.int32).reshape(-1, 1)
    y = np.arange(3, dtype=np.int16)
    out = np.zeros((5003, 3), np.int32) if has_out else None
    assert_same(ga.transform(lambda a, b: a - b, x, y, out=out), x - y)
    assert full
    wide = x.copy()
    ga.transform(lambda a: a + a, wide, out=wide)  # in place
    assert_same(wide, x + x)


@pytest.mark.parametrize("axis", [0, 1])
def test_differences(full: list[int], axis: int) -> None:
    x = np.random.default_rng(0).integers(0, 99, (70, 211)).astype(np.int32)
    zeros: Any = np.zeros((1, 211) if axis == 0 else (70, 1), np.int32)
    assert_same(ga.adjacent_difference(x, axis=axis), np.diff(x, axis=axis, prepend=zeros))
    assert full
    with pytest.raises(MemoryError, match="planted"):  # of one element: they come whole
        ga.adjacent_difference(x.reshape(-1, 1), axis=1)


def test_what_depends_on_its_cut_has_no_other_way(full: list[int]) -> None:
    x = np.ones(5003, np.float32)
    out = np.full(5003, 7, np.float32)
    for call in (lambda: ga.reduce(x), lambda: ga.inclusive_scan(x, out=out)):
        with pytest.raises(MemoryError, match="planted"):
            call()
    assert (out == 7).all()
