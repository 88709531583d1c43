"""The kernels of selections by rank, built without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.top_k import tuning
from gpualgo._base import dtypes
from gpualgo._cuda.build import Spec

LONG, HUGE = 1 << 24, 1 << 33

pytestmark = pytest.mark.usefixtures("own_cache")


def selecting(dtype: np.dtype[Any], size: int, num_sorted: int, result: str) -> Spec:
    policy = tuning.select_policy(size, num_sorted)
    return tuning.select_spec(dtype, True, size, policy, result)


def specs(dtype: np.dtype[Any], size: int, overlaps: bool) -> list[Spec]:
    """Return the kernels for long rows and for short ones."""
    return [
        tuning.gather_spec(dtype.itemsize, size),
        tuning.filter_spec(dtype, True, size, 1, overlaps),
        tuning.filter_spec(dtype, True, size, tuning.MOST_RANKS, overlaps),
        *[
            tuning.ranks_spec(dtype, True, size, result, overlaps)
            for result in (tuning.ONE, tuning.LISTED, tuning.BOUND)
        ],
        selecting(dtype, size, tuning.MOST_SORTED, tuning.SORTED),
        selecting(dtype, size, tuning.MOST_SORTED, tuning.LISTED),
        selecting(dtype, size, 0, tuning.ONE),
        selecting(dtype, 5000, tuning.FEW_SORTED, tuning.SORTED),
        selecting(dtype, 5000, 0, tuning.ONE),
        *[
            tuning.short_spec(dtype, True, row_items, count, in_parts)
            for row_items in (tuning.WARP_ROW, tuning.SHORT_ROW)
            for count in (10, 100, 256, 512, 1024)
            for in_parts in (False, True)
            if count <= tuning.short_count(dtype.itemsize)
        ],
        tuning.take_spec(dtype.itemsize),
    ]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled([n for n in dtypes.NAMES if "complex" not in n],
                                         ["int8", "float32"]))  # fmt: skip
def test_every_dtype(name: str, tmp_path: Path) -> None:
    """Rows are filtered 16 bytes at a time; nothing is called, nothing lies in local memory.

    Eight lists of bytes need 10 registers more than there are.
    """
    dtype = sass.dtype_of(name)
    codes = sass.held(specs(dtype, LONG, True), MAIN, tmp_path, 40 if dtype.itemsize == 1 else 0)
    assert codes[1].count(r"LDG\.E\.128") > 0


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    overlaps = capability >= (9, 0)
    found = specs(np.dtype("float32"), LONG, overlaps)
    # Bytes that stay as they are; and of eight lists on GPUs that no time was measured on.
    few = 48 if capability >= (10, 0) else 0 if capability >= (8, 0) else 8
    sass.held(found, capability, tmp_path, few)


@needs_cuobjdump
@pytest.mark.exhaustive
def test_rows_of_more_than_32_bits_can_count(tmp_path: Path) -> None:
    codes = sass.read_all(specs(np.dtype("float32"), HUGE, True), MAIN, tmp_path)
    assert not any(code.calls() for code in codes)
