"""What the host decides for joint and weighted histograms: the cut, and the words of a sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import DTYPES, REPOSITORY

from gpualgo._algorithms.histogram import sums, tuning
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._cuda.parameters import Parameters

H200 = tuning.Machine(132, 227 << 10, (9, 0))
SMALLEST = tuning.Machine(40, 64 << 10, (7, 5))


def _bins(table_bins: int, **more: Any) -> DeviceBins:
    return DeviceBins("bins", Parameters("Bins"), lambda _: {}, table_bins=table_bins, **more)


KINDS = [*(_bins(1 << k) for k in (0, 6, 10, 12, 14, 16, 20)), _bins(3000, shared_bytes=48 << 10)]
machines, kinds = st.sampled_from([H200, SMALLEST]), st.sampled_from(KINDS)
channels = st.sampled_from([1, 2, 7, 512])
counts = st.integers(0, 40).flatmap(lambda bits: st.integers(1, 1 << bits))
items = st.sampled_from([0, 1, 2, 4, 8])


@given(
    machines, kinds, st.sampled_from(DTYPES), channels, st.sampled_from([1, 100, 1 << 16]), counts,
    items,
)  # fmt: skip
def test_cut_of_sums_fits_the_machine(
    machine: tuning.Machine, bins: DeviceBins, dtype: np.dtype[Any], channels: int, num_rows: int,
    num_samples: int, items: int,
) -> None:  # fmt: skip
    if dtype.kind == "b":
        return
    found = sums.sum_of(dtype)
    if items:
        channels = 1
    cut = tuning.tile_sums(machine, bins, found, channels, num_rows, num_samples, items)
    slots = channels * bins.table_bins
    assert cut.shared_bytes(bins) <= machine.shared_bytes
    assert cut.words % 4 == 0
    assert cut.words >= slots * found.parts * cut.digits * cut.replicas
    assert cut.replicas in [1 << k for k in range(6)]
    assert cut.parts >= 1
    assert cut.digits <= found.digits
    assert -(-num_samples // cut.parts) <= tuning.MAX_BLOCK_SAMPLES


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


def test_many_samples_keep_the_gpu_busy() -> None:
    for table_bins in (1, 256, 4096, 1 << 15, 1 << 20):
        bins = _bins(table_bins)
        for items in (1, 2, 4):
            counted = tuning.tile_counts(H200, bins, 1, 1, 1 << 28, items)
            assert counted.parts >= H200.num_sms
            for dtype in ("int32", "float32", "float64"):
                found = sums.sum_of(np.dtype(dtype))
                assert tuning.tile_sums(H200, bins, found, 1, 1, 1 << 28, items).parts >= 132


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_hold_all_that_a_dtype_reaches(dtype: np.dtype[Any]) -> None:
    """2^42 of the greatest numbers do not reach the sign; the kernels have as many words."""
    if dtype.kind == "b":
        return
    found = sums.sum_of(dtype)
    if found.format is None:
        assert found.digits == 2
        return
    import ml_dtypes

    info: Any = ml_dtypes.finfo(found.number)
    units = int(math.ldexp(float(info.max), 0)) * 2 ** -math.frexp(
        float(info.smallest_subnormal)
    )[1] * 2  # fmt: skip
    assert units * 2**42 < 2 ** (32 * found.digits - 1)
    assert found.format.mantissa == info.nmant
    source = (REPOSITORY / "cuda_src/histogram/sums.cuh").read_text()
    bits = 8 * found.number.itemsize
    form = found.format
    words = f"FloatFormat<uint{bits}, {form.mantissa}, {form.exponent}, {found.digits // 2}>"
    assert words in source
