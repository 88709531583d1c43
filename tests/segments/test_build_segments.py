"""The kernels of segments, built without a GPU."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.by_key import cuda as tiles
from gpualgo._algorithms.segments import cuda
from gpualgo._algorithms.select import cuda as reading
from gpualgo._base import dtypes, records
from gpualgo._cuda.build import Spec
from gpualgo._operators.operator import Operator

FLOAT32, INDEX = np.dtype("float32"), np.dtype("int64")
FEW = 16  # bytes: a word or two that stay as they are through a loop
FIRST = Operator(lambda a, b: b if a == b else a)

pytestmark = pytest.mark.usefixtures("own_cache")


def reductions(op: Operator, dtype: Any, is_spaced: bool = False) -> list[Spec]:
    """Return the kernel of a reduction."""
    count = len(records.field_dtypes(dtype))
    access = reading.spaced(count, is_even=True) if is_spaced else reading.dense(in_packs=False)
    return [cuda.reduce_spec(op, dtype, dtype, INDEX, access, cuda.policy_of(dtype))]


def _scan_policy(dtype: Any) -> tiles.Policy:
    return tiles.policy_of(dtype, records.field_dtypes(dtype), dtype, cuda.MARK_BYTES)


def scans(op: Operator, dtype: Any) -> list[Spec]:
    """Return the kernels of both scans, from one start and from one for each segment."""
    access, kind = reading.dense(True), _scan_policy(dtype)
    return [
        cuda.scan_spec(op, dtype, dtype, access, kind, way, way and not starts, INDEX, starts)
        for way in (False, True)
        for starts in (False, True)
    ]


def starts(op: Operator, dtype: Any) -> list[Spec]:
    """Return the kernel that puts starts before results."""
    return [cuda.starts_spec(op, dtype, INDEX)]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "complex128"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    """Hardly anything is kept in local memory, nothing called."""
    dtype = sass.dtype_of(name)
    sass.held([*reductions(FIRST, dtype), *starts(FIRST, dtype)], MAIN, tmp_path)
    sass.held(scans(FIRST, dtype), MAIN, tmp_path, FEW)


@needs_cuobjdump
def test_loads(tmp_path: Path) -> None:
    """A warp has so many rows under way at once, of chunks and of short segments."""
    (code,) = sass.read_all(reductions(Operator(operator.add), FLOAT32), MAIN, tmp_path)
    rows = cuda.policy_of(FLOAT32).rows
    assert code.count(r"LDG\.E") >= (2 + 2 * cuda.AHEAD) * rows


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    pair = records.record(["0", "1"], [np.dtype("int32"), np.dtype("complex128")])
    swapped = Operator(lambda a, b: (a[0], b[1]))
    specs = [
        *reductions(Operator(operator.add), FLOAT32), *reductions(swapped, pair, is_spaced=True),
        *starts(swapped, pair), cuda.heads_spec(INDEX),
    ]  # fmt: skip
    # On sm_100 the kernel of chunks has a frame of 8 bytes, on sm_90 and sm_120 none.
    spilled = 8 if capability == (10, 0) else 0
    sass.held(specs, capability, tmp_path, spilled)
    sass.held(scans(swapped, pair), capability, tmp_path, FEW)


@pytest.mark.parametrize(
    ("num_items", "num_segments", "per_warp", "long_items", "chunk_bits"),
    [
        (1 << 28, 1 << 24, 32, 512, 13), (1 << 28, 1 << 20, 4, 4096, 13),
        (1 << 28, 1 << 12, 1, 8192, 13), (1, 1, 32, 512, 12), (100, 3, 16, 1024, 12),
        (1 << 20, 1, 1, 4096, 12), (1 << 40, 1 << 20, 1, 1 << 14, 25),
    ],
)  # fmt: skip
def test_cut(
    num_items: int, num_segments: int, per_warp: int, long_items: int, chunk_bits: int
) -> None:
    cut = cuda.tiling_of(num_items, num_segments)
    assert cut[:3] == (per_warp, long_items, chunk_bits)
    assert num_items >> cut.chunk_bits <= cuda.MOST_CHUNKS
    assert cuda.STAGE_ITEMS <= cut.long_items <= 1 << cut.chunk_bits


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_sizes_in_shared_memory(name: str) -> None:
    """What kernels take at most fits in what every GPU has."""
    assert cuda.policy_of(sass.dtype_of(name)).shared_bytes <= 48 << 10
