"""What the host decides before a histogram's launch: positions, cells, tables, blocks. No GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpualgo._algorithms.histogram import cuda_bins as device
from gpualgo._algorithms.histogram import tuning
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._cuda.headers import cpp

Array = np.ndarray[Any, Any]
H200 = tuning.Machine(132, 227 << 10, (9, 0))
SMALLEST = tuning.Machine(4, 64 << 10, (7, 5))

FLOAT_RANGES = [(0.0, 1.0), (-3.7, 11.3), (1000.0, 1001.0), (1e-30, 1e-29),
                (np.float32(0.1), np.float32(0.9)), (np.float64(0.1), np.float64(0.7))]  # fmt: skip
INTEGER_RANGES = [(0, 256), (0, 255), (-0.5, 9.5), (0.1, 9.7), (-100_000, 100_001), (5, 2**62 + 1)]
EDGES = [[0, 1, 2, 10], [0.5, 0.5, 0.7], [-np.inf, 0, 1, np.inf], [3, 3], np.geomspace(1e-3, 1e3)]


def _samples(bins: Bins) -> Array:
    """Return samples at all edges, next to them, between them, and far from them."""
    dtype = bins.sample_dtype
    lower, upper = bins.thresholds()
    at = np.append(lower, upper).astype(dtype)
    if dtype.kind in "iu":
        least, greatest = (int(limit) for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        near = {min(max(int(x) + d, least), greatest) for x in at for d in (-2, -1, 0, 1, 2)}
        return np.array(sorted(near | {least, greatest}), dtype)
    up, down = (np.nextafter(at, dtype.type(end)) for end in (np.inf, -np.inf))
    middle = at[:-1] / 2 + at[1:] / 2
    with np.errstate(over="ignore"):
        far = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30]).astype(dtype)
    return np.concatenate([at, up, down, np.nextafter(up, dtype.type(np.inf)), middle, far])


def _positions(bins: Bins, found: device.Fit, x: Array) -> Array:
    first = bins.thresholds()[0][0]
    return device._positions(x, first, found.origin, found.scale, found.bits) + found.shift


def _check_fit(bins: Bins, found: device.Fit) -> None:
    """Assert that a sample's position tells its bin, or else one of the two next to an edge."""
    x = _samples(bins)
    with np.errstate(all="ignore"):
        want, v = bins.of_values(x), _positions(bins, found, x)
        whole, part = np.divmod(v, 2.0**found.bits)
    is_integer = x.dtype.kind in "iu"
    if is_integer:  # compared with both ends exactly, beforehand
        whole, part, want = whole[want >= 0], part[want >= 0], want[want >= 0]
        whole = np.minimum(whole, bins.num_bins - 1)
    inside = (whole >= 0) & (whole < bins.num_bins)
    plain = inside & (part >= found.near_width)
    np.testing.assert_array_equal(whole[plain], want[plain])
    near = inside & ~plain
    assert np.isin(want[near] - whole[near], [-1, 0]).all()
    beyond = ~inside & np.isfinite(v) if not is_integer else ~inside
    assert (want[beyond & (whole != bins.num_bins)] == -1).all()


@pytest.mark.parametrize("num_bins", [1, 2, 7, 100, 256, 1000, 4096])
@pytest.mark.parametrize("name", ["float32", "float64", "int16", "uint32", "int64", "uint64"])
def test_positions_tell_bins(name: str, num_bins: int) -> None:
    dtype = np.dtype(name)
    for lo, hi in FLOAT_RANGES if dtype.kind == "f" else INTEGER_RANGES:
        bins = Bins(dtype, num_bins, None, lo, hi)
        for wanted in (np.dtype(np.float32), np.dtype(np.float64)):
            if wanted.itemsize >= dtype.itemsize or dtype.itemsize <= 4:
                found = device.fit(bins, wanted)
                if found is not None and found.near <= device.MOST_NEAR:
                    _check_fit(bins, found)
        assert device.fit_even(bins, H200.capability) is not None or name == "int64"


@pytest.mark.parametrize("name", ["float32", "float64", "int32"])
def test_edges_by_formula(name: str) -> None:
    """The kernel computes an edge as NumPy does, from scalars that it is given as float64."""
    for lo, hi in FLOAT_RANGES:
        bins = Bins(np.dtype(name), 1000, None, lo, hi)
        assert bins.is_affine
        work, edge = bins.work_dtype.type, bins.edge_dtype
        start, step, stop = (work(np.float64(x)) for x in (bins.start, bins.step, bins.stop))
        i = np.arange(1001).astype(bins.work_dtype)
        edges = (i * step + start).astype(edge)
        edges[-1] = edge.type(stop)
        np.testing.assert_array_equal(edges, bins.all_edges())


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int32", "uint64"])
@pytest.mark.parametrize("edges", EDGES, ids=len)
def test_cells_narrow_the_search(name: str, edges: Any) -> None:
    bins = Bins(np.dtype(name), len(edges) - 1, np.asarray(edges), None, None)
    x = _samples(bins) if bins.thresholds()[0].size else np.zeros(1, name)
    found = device.search_bins(bins)
    given = found.values(0)
    key = np.dtype(np.float32) if name == "float16" else bins.sample_dtype
    first, last, base, scale = (given[field] for field in ("first", "last", "base", "scale"))
    step, num_keys, num_cells = (
        given[field] for field in ("first_step", "num_thresholds", "num_cells")
    )
    assert first.dtype == last.dtype == key
    keys = np.frombuffer(found.table, key, num_keys)
    starts = np.frombuffer(found.table, np.uint32, offset=-(-keys.nbytes // 16) * 16)
    samples = x.astype(key)
    cell = device._cells(samples, base, np.float32(scale), num_cells)
    begin, end = starts[cell].astype(int), starts[cell + 1].astype(int)
    while step:
        is_above = (begin + step <= end) & (keys[np.minimum(begin + step, num_keys) - 1] <= samples)
        begin += np.where(is_above, step, 0)
        step //= 2
    got = np.where((samples >= first) & (samples <= last), begin - 1, -1)
    np.testing.assert_array_equal(got, bins.of_values(x))


def _bins(table_bins: int, name: str = "Bins", **more: Any) -> device.DeviceBins:
    return device.DeviceBins(cpp(name), lambda _: {}, table_bins=table_bins, **more)


KINDS = [
    _bins(256, "ByteBins"),
    *(_bins(1 << k) for k in (0, 8, 12, 13, 15, 16, 18)),
    _bins(3000, shared_bytes=48 << 10, is_search=True),
]


@given(
    st.sampled_from([H200, SMALLEST]), st.sampled_from(KINDS), st.integers(1, 4),
    st.sampled_from([1, 2, 3, 100, 1 << 16]), st.integers(0, 40).flatmap(
        lambda bits: st.integers(1, 1 << bits)), st.sampled_from([0, 1, 2, 4, 8]),
)  # fmt: skip
def test_cut_fits_the_machine(
    machine: tuning.Machine, bins: device.DeviceBins, channels: int, num_rows: int, num_items: int,
    itemsize: int,
) -> None:  # fmt: skip
    cut = tuning.tiling(machine, bins, channels, num_rows, num_items * channels, itemsize)
    slots = channels * bins.table_bins
    assert cut.shared_bytes(bins) <= machine.shared_bytes
    assert cut.words % 4 == 0
    room = {tuning.GLOBAL: slots, tuning.PACKED: 2 * cut.words,
            tuning.REPLICATED: cut.words // cut.replicas}  # fmt: skip
    assert room[cut.table] >= slots
    assert cut.replicas in [1 << k for k in range(6)]
    assert cut.parts >= 1
    assert -(-num_items * channels // cut.parts) <= tuning.MAX_BLOCK_SAMPLES
    assert cut.table != tuning.GLOBAL or not tuning.is_bytes(bins)
