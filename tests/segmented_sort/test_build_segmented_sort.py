"""The kernels of a segmented sort, built without a GPU, and how its tiles are cut."""

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

from gpualgo._algorithms.merge_sort.problem import Comparison
from gpualgo._algorithms.segmented_sort import cuda
from gpualgo._base import records
from gpualgo._cuda import build

MANY = 1 << 28
INT8, INT64, FLOAT16, FLOAT32 = map(np.dtype, ("int8", "int64", "float16", "float32"))
PAIR = records.record(("0", "1"), (INT64, FLOAT32))
WIDE = records.record([str(i) for i in range(7)], [INT64] * 7)

pytestmark = pytest.mark.usefixtures("own_cache")


def check(
    element: Any, values: list[int], capability: Capability, folder: Path, num_items: int = MANY,
    spilled: int = 64, mean: int = 16,
) -> None:  # fmt: skip
    limit, overlaps = sass.shared_bytes(capability), capability >= (9, 0)
    cut = cuda.policy_of(num_items, num_items // mean, element.itemsize, values, limit)
    order = Comparison(element, None, (True,) * len(records.field_dtypes(element)))
    specs = [
        cuda.tiles_spec(order, values, cut, overlaps),
        cuda.merge_spec(order, values, cut, limit if capability >= (8, 0) else 0),
        *cuda.span_specs(cut, overlaps),
    ]
    sass.held(specs, capability, folder, spilled)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("element", "values"),
    [
        pytest.param(FLOAT32, [], marks=pytest.mark.exhaustive),
        (FLOAT32, [4]),
        (PAIR, [8]),
        pytest.param(INT8, [], marks=pytest.mark.exhaustive),
        pytest.param(INT64, [16], marks=pytest.mark.exhaustive),
        pytest.param(FLOAT16, [8, 4, 4], marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_all_is_held_in_registers(element: Any, values: list[int], tmp_path: Path) -> None:
    check(element, values, MAIN, tmp_path)
    check(element, values, MAIN, tmp_path, mean=1 << 10)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5), (12, 0)]), ids=build.arch_of)
def test_other_architectures(capability: Capability, tmp_path: Path) -> None:
    check(FLOAT32, [4], capability, tmp_path)
    check(INT64, [], capability, tmp_path, 1 << 16)


@pytest.mark.slow
@needs_cuobjdump
def test_wide_keys(tmp_path: Path) -> None:
    """More bytes than registers hold may spill; that they are built is what counts."""
    check(WIDE, [1, 2, 4], MAIN, tmp_path, spilled=1 << 12)


@given(
    st.integers(1, 1 << 34), st.integers(1, 1 << 34), st.integers(1, 56), st.booleans(),
    st.sampled_from([48 << 10, 64 << 10, 99 << 10, 227 << 10]),
)  # fmt: skip
def test_tiles_fit_shared_memory(
    num_items: int, num_segments: int, key_bytes: int, has_values: bool, limit: int
) -> None:
    cut = cuda.policy_of(num_items, num_segments, key_bytes, [8] * has_values, limit)
    assert cut.shared_bytes(key_bytes, has_values) <= limit
    assert cut.tile_items <= 1 << 15
    assert cut.tile_items % cut.merge_items == 0
    assert cut.merge_items % 32 == 0
    assert cut.block_threads % 32 == 0
