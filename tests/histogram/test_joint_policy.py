"""What the host decides for joint and weighted histograms: the cut, and shares of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support import DTYPES

from gpualgo._algorithms.by_index import cuda as sums
from gpualgo._algorithms.by_index import tuning as indexed
from gpualgo._algorithms.histogram import tuning
from gpualgo._algorithms.histogram.cuda import SUMS_SEARCH_BYTES
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.histogram.problem import accumulator
from gpualgo._cuda.headers import cpp

H200 = tuning.Machine(132, 227 << 10, (9, 0))
SMALLEST = tuning.Machine(40, 64 << 10, (7, 5))


def _bins(table_bins: int, **more: Any) -> DeviceBins:
    return DeviceBins(cpp("Bins"), lambda _: {}, table_bins=table_bins, **more)


KINDS = [*(_bins(1 << k) for k in (0, 6, 10, 12, 14, 16, 20)), _bins(3000, shared_bytes=48 << 10)]
machines, kinds = st.sampled_from([H200, SMALLEST]), st.sampled_from(KINDS)
channels = st.sampled_from([1, 2, 7, 512])
counts = st.integers(0, 40).flatmap(lambda bits: st.integers(1, 1 << bits))
items = st.sampled_from([0, 1, 2, 4, 8])


@given(st.sampled_from(DTYPES), st.integers(1, 1 << 20), st.integers(1, 1 << 20), counts)
def test_shares_of_sums(
    dtype: np.dtype[Any], num_bins: int, num_rows: int, num_samples: int
) -> None:
    """Tables fit the smallest GPU, and take no more memory than a few times samples or results."""
    acc = accumulator(dtype)
    assert acc.itemsize >= 4
    assert np.can_cast(dtype, acc)
    if not sums.fits(num_bins, dtype):
        return
    table = indexed.table_of(num_bins, acc)
    shared = table.warps * table.table_bytes + SUMS_SEARCH_BYTES + tuning.NUMBERS_BYTES
    assert shared <= SMALLEST.shared_bytes
    found = indexed.tiling_of(num_samples, num_bins, num_rows)
    assert found.share_items * found.num_shares >= num_samples
    assert found.num_shares == 1 or found.share_items >= max(num_bins, 1024)


@given(machines, kinds, channels, st.sampled_from([1, 100, 1 << 16]), counts, items)
def test_cut_of_counts_fits_the_machine(
    machine: tuning.Machine, bins: DeviceBins, channels: int, num_rows: int, num_samples: int,
    items: int,
) -> None:  # fmt: skip
    if items:
        channels = 1
    cut = tuning.tile_counts(machine, bins, channels, num_rows, num_samples, items)
    assert cut.shared_bytes(bins) <= machine.shared_bytes
    tile = cut.policy.block_threads * cut.policy.loads * max(1, items)
    assert cut.table != tuning.PACKED or tile <= 0x8000  # before PackedTable has to be looked at
