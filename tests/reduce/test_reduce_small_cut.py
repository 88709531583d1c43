"""How few elements in a row are shared out among blocks, and how long the last block waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import DTYPES

import gpualgo as ga
from gpualgo._algorithms.reduce import tuning
from gpualgo._algorithms.reduce.tuning import Small, SmallTiling
from gpualgo._base import records

dtypes = st.sampled_from(DTYPES)


@given(st.integers(0, 26).flatmap(lambda bits: st.integers(1, 1 << bits)), dtypes)
def test_cut_covers_everything(num_items: int, dtype: np.dtype[Any]) -> None:
    cut = tuning.small_tiling(num_items, dtype)
    items = tuning.row_items(dtype)
    most = (4 << 20) if dtype.itemsize < 4 else (16 << 20)
    is_small = num_items * dtype.itemsize <= most
    assert (cut is not None) == (is_small and num_items >= items)
    if cut is None:
        return
    vectors, tile = num_items // items, cut.policy.block_threads * cut.policy.loads
    assert (cut.num_blocks - 1) * tile < vectors <= cut.num_blocks * tile
    assert 1 <= cut.num_blocks <= tuning.SMALL_MOST_BLOCKS
    assert cut.policy.loads & (cut.policy.loads - 1) == 0


@given(st.integers(1, 1 << 22), st.lists(dtypes, min_size=2, max_size=8))
def test_cut_of_records(num_items: int, fields: list[np.dtype[Any]]) -> None:
    dtype = records.record(map(str, range(len(fields))), fields)
    cut = tuning.small_tiling(num_items, dtype)
    if cut is None:
        return
    vectors, tile = (
        num_items // tuning.row_items(dtype),
        cut.policy.block_threads * cut.policy.loads,
    )
    assert (cut.num_blocks - 1) * tile < vectors <= cut.num_blocks * tile
    assert 1 <= cut.num_blocks <= tuning.SMALL_MOST_BLOCKS
    if dtype.itemsize > tuning.WIDE_RECORD:
        assert cut.policy.block_threads <= tuning.RECORD_THREADS


POSITIONS = records.Computed((records.POSITION,), np.dtype(np.int64))


def _of_positions(num_blocks: int) -> SmallTiling | None:
    """Return the cut of as many positions as fill so many blocks of the first row's shape."""
    first = next(iter(tuning.SMALL_POLICIES.values()))
    tile = first.block_threads * first.loads * tuning.row_items(POSITIONS)
    return tuning.small_tiling(num_blocks * tile, POSITIONS)


def test_positions_come_to_many_blocks() -> None:
    for num_blocks in (1, 2, 100, tuning.SMALL_MOST_BLOCKS):
        cut = _of_positions(num_blocks)
        assert cut is not None
        assert cut.num_blocks == num_blocks
    assert _of_positions(tuning.SMALL_MOST_BLOCKS + 1) is None


@pytest.mark.parametrize("n", [4113, 12_300])
@pytest.mark.usefixtures("cuda")
def test_positions_that_several_blocks_reduce(n: int) -> None:
    cut = tuning.small_tiling(n, POSITIONS)
    assert cut is not None
    assert cut.num_blocks > 1
    x = ga.lazy.arange(n, device="cuda")
    for _ in range(2):
        assert ga.reduce(x).copy_to_host() == n * (n - 1) // 2
        assert ga.reduce(x, None, lambda a, b: b).copy_to_host() == n - 1


@pytest.mark.parametrize("found", [*tuning.SMALL_POLICIES.values(), Small(32, 1, 0)], ids=str)
def test_the_last_block_has_threads_for_all_others(found: Small) -> None:
    share = found.cpp(1).args[2]
    assert found.block_threads * share >= tuning.SMALL_MOST_BLOCKS - 1
