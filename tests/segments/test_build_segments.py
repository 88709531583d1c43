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


def policies(dtype: Any, overlaps: bool = True) -> list[cuda.Policy]:
    """Return the policies of a reduction in one launch, and of one in two."""
    sizes = 1, cuda.ONE_LAUNCH_ITEMS + 1
    ways = [(n, commutes) for n in sizes for commutes in (False, True)]
    return [k for n, commutes in ways for k in cuda.policies_of(dtype, n, overlaps, commutes)]


def reductions(
    op: Operator, dtype: Any, is_spaced: bool = False, overlaps: bool = True
) -> list[Spec]:
    """Return the kernels of a reduction, from one start and from one for each segment."""
    count = len(records.field_dtypes(dtype))
    access = reading.spaced(count, is_even=True) if is_spaced else reading.dense(in_packs=False)
    return [
        cuda.reduce_spec(op, dtype, dtype, INDEX, access, kind, has_starts)
        for kind in policies(dtype, overlaps)
        for has_starts in (False, True)
    ]


def _scan_policy(dtype: Any) -> tiles.Policy:
    return tiles.policy_of(dtype, records.field_dtypes(dtype), dtype, cuda.MARK_BYTES)


def scans(op: Operator, dtype: Any) -> list[Spec]:
    """Return the kernels of both scans, from one start and from one for each segment."""
    access, kind = reading.dense(True), _scan_policy(dtype)
    return [
        cuda.scan_spec(
            op, dtype, dtype, access, kind, way, way and not starts, INDEX, starts, marks
        )
        for marks in (False, True)
        for way in (False, True)
        for starts in (False, True)
    ]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "complex128"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    """Hardly anything is kept in local memory, nothing called."""
    dtype = sass.dtype_of(name)
    sass.held([*reductions(FIRST, dtype), *scans(FIRST, dtype)], MAIN, tmp_path, FEW)


@needs_cuobjdump
def test_loads(tmp_path: Path) -> None:
    """A warp has so many rows under way at once, of chunks and of short segments."""
    codes = sass.read_all(reductions(Operator(operator.add), FLOAT32)[::2], MAIN, tmp_path)
    for code, kind in zip(codes, policies(FLOAT32), strict=True):
        loads = 0 if kind.taken == "chunks" else 2 + cuda.AHEAD
        loads += 0 if kind.taken == "segments" else cuda.CHUNK_AHEAD
        assert code.count(r"LDG\.E") >= loads * kind.rows


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    pair = records.record(["0", "1"], [np.dtype("int32"), np.dtype("complex128")])
    swapped, overlaps = Operator(lambda a, b: (a[0], b[1])), capability >= MAIN
    specs = [
        *reductions(Operator(operator.add), FLOAT32, overlaps=overlaps),
        *reductions(swapped, pair, is_spaced=True, overlaps=overlaps),
        *scans(swapped, pair), cuda.heads_spec(INDEX),
    ]  # fmt: skip
    sass.held(specs, capability, tmp_path, FEW)


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
    assert policies(sass.dtype_of(name))[0].shared_bytes <= 48 << 10
