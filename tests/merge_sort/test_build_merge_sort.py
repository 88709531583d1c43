"""The kernels of a merge sort, built without a GPU, and how its tiles are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from hypothesis import given
from hypothesis import strategies as st
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.problem import Comparison
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

MANY = 1 << 28
FEW = 64  # bytes that stay as they are through a loop; NVRTC 13.0 spills more than newer ones
ANY = 1 << 12
COARSE = Operator(lambda a, b: a // 16 < b // 16)
PAIRS = Operator(lambda p, q: p[0] < q[0] or (p[0] == q[0] and p[1] > q[1]))
INT32, INT64, FLOAT16, FLOAT32 = (
    np.dtype(name) for name in ("int32", "int64", "float16", "float32")
)
WIDE = records.record([str(i) for i in range(4)], [np.dtype("complex128"), FLOAT32, INT64, INT32])
WIDE_KEYS = records.record(("0", "1", "2"), (INT64, FLOAT32, FLOAT16))

pytestmark = pytest.mark.usefixtures("own_cache")


def specs(
    element: Any, op: Operator | None, values: list[int], capability: Capability,
    num_items: int = MANY,
) -> tuple[build.Spec, ...]:  # fmt: skip
    limit = sass.shared_bytes(capability)
    cut = tuning.policy_of(num_items, element.itemsize, limit, bool(values))
    ways = (False,) if op is not None else (True,) * len(records.field_dtypes(element))
    order, async_bytes = Comparison(element, op, ways), limit if capability >= (8, 0) else 0
    return tuning.specs(order, values, cut, capability >= (9, 0), async_bytes, num_items)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("element", "op", "values"),
    [
        (INT32, COARSE, []),
        (FLOAT32, None, [4]),
        pytest.param(INT64, COARSE, [8], marks=pytest.mark.exhaustive),
        pytest.param(FLOAT16, None, [], marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_all_is_held_in_registers(
    element: Any, op: Operator | None, values: list[int], tmp_path: Path
) -> None:
    tiles, *_, merge = sass.held(specs(element, op, values, MAIN), MAIN, tmp_path, FEW)
    for code in (tiles, merge):
        assert code.count("BAR") >= 3


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5), (12, 0)]), ids=build.arch_of)
def test_other_architectures(capability: Capability, tmp_path: Path) -> None:
    sass.held(specs(INT32, COARSE, [4], capability), capability, tmp_path, FEW)
    pair = records.record(("0", "1"), (INT32, FLOAT32))
    sass.held(specs(pair, PAIRS, [], capability, 1 << 16), capability, tmp_path, FEW)


@needs_cuobjdump
@pytest.mark.parametrize(
    "capability", sampled([MAIN, *sass.OTHERS], [(7, 5), MAIN]), ids=build.arch_of
)
def test_merged_runs(capability: Capability, tmp_path: Path) -> None:
    limit = sass.shared_bytes(capability)
    for element, ways, values, runs in (
        (FLOAT32, (True,), [4], 4), (WIDE_KEYS, (True, False, True), [], 16),
    ):  # fmt: skip
        pieces = tuning.run_pieces(element.itemsize, values, runs, limit)
        order = Comparison(element, None, ways)
        built = tuning.merge_runs(
            order, values, 8 if values else 0, runs, pieces, capability >= (9, 0),
            capability >= (8, 0),
        )  # fmt: skip
        codes = sass.held(built, capability, tmp_path, ANY if runs > 4 else FEW)
        assert min(code.count("BAR") for code in codes) >= 4


@given(
    st.integers(1, 64), st.sampled_from([[], [4], [8], [8, 4, 4], [16]]), st.integers(2, 16),
    st.sampled_from([64 << 10, 99 << 10, 227 << 10]),
)  # fmt: skip
def test_rings_and_samples_fit_shared_memory(
    key_bytes: int, values: list[int], runs: int, limit: int
) -> None:
    pieces = tuning.run_pieces(key_bytes, values, runs, limit)
    assert pieces.shared_bytes <= limit
    assert pieces.samples > 4 * tuning.MAX_RUNS  # so that each round of samples narrows down
    assert tuning.cut_bytes(key_bytes) <= 48 << 10
    for num_items in (1, 1 << 20, 1 << 34):
        chunks = -(-num_items // (pieces.samples << pieces.shift(num_items)))
        assert chunks <= tuning.CHUNKS * (1 + num_items // (1 << 34))


@needs_cuobjdump
def test_wide_records(tmp_path: Path) -> None:
    """More bytes than registers hold may spill; that they are built is what counts."""
    op = Operator(lambda p, q: p[1] < q[1])
    sass.held(specs(WIDE, op, [1, 2, 4], MAIN), MAIN, tmp_path, ANY)


@needs_cuobjdump
@pytest.mark.exhaustive
def test_records_by_value(tmp_path: Path) -> None:
    ordered = records.record(("0", "1", "2"), (INT64, FLOAT32, FLOAT16))
    sass.held(specs(ordered, None, [16], MAIN), MAIN, tmp_path, ANY)


@given(
    st.integers(1, 1 << 34), st.integers(1, 128),
    st.sampled_from([48 << 10, 64 << 10, 99 << 10, 227 << 10]),
)  # fmt: skip
def test_tiles_fit_shared_memory(num_items: int, key_bytes: int, limit: int) -> None:
    cut = tuning.policy_of(num_items, key_bytes, limit)
    assert cut.shared_bytes(key_bytes) <= limit
    assert cut.tile_items <= 1 << 16
    assert cut.block_threads % 32 == 0


@given(st.integers(2, 1 << 15), st.integers(0, (1 << 16) - 1))
def test_a_place_tells_its_row(row_items: int, place: int) -> None:
    """By one multiplication, as tiles of several rows find it."""
    assert place * ((1 << 32) // row_items + 1) >> 32 == place // row_items


def test_what_values_travel_along() -> None:
    assert all(map(tuning.are_moved, ([4], [8, 4, 4], [16])))
    assert not tuning.are_moved([3])
    assert not tuning.are_moved([16, 1])
