"""Transformations of host arrays for which a GPU has no room as a whole: they go by blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga
from gpualgo._base import threads
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
    from gpualgo._algorithms.transform import cuda as blocks

    monkeypatch.setattr(blocks, "SLOT_BYTES", 512)
    monkeypatch.setattr(blocks, "MOST_LANES", 2)
    with ga.default_device("cuda"):
        yield refused


def _in_eight_threads(body: Callable[[int, int], None], num_tasks: int, num_bytes: int) -> int:
    with ThreadPoolExecutor(8) as pool:
        ends = [num_tasks * i // 8 for i in range(9)]
        list(pool.map(body, ends, ends[1:]))
    return 8


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


def test_more_threads_than_buffers(full: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread waits for a buffer: lanes, which all calls of a device share, may be more."""
    monkeypatch.setattr(threads, "run", _in_eight_threads)
    x = np.arange(50_003, dtype=np.int32)
    for _ in range(3):
        assert_same(ga.transform(lambda a: a * 3, x), x * 3)
    assert full


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
