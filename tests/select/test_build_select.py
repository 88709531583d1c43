"""The kernels of selections and runs, built without a GPU, and how tiles fit shared memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.select import cuda
from gpualgo._algorithms.select.problem import HEADS, IF, MARKED
from gpualgo._base import dtypes, records
from gpualgo._operators.operator import Operator, builtin

FLOAT32, BYTE = np.dtype("float32"), np.dtype("uint8")
NOT_ZERO = Operator(lambda a: a != 0)
NO_OPERATOR = builtin("no_operator")

pytestmark = pytest.mark.usefixtures("own_cache")


def kinds(dtype: Any, capability: Capability = MAIN) -> list[cuda.Kind]:
    """Return a selection by a function and by marks, a partition, heads, and run lengths."""
    limit, has_redux = sass.shared_bytes(capability), capability >= (8, 0)
    marked = records.record(["0", "1"], [dtype, BYTE])

    def kind(op: Any, source: Any, kept: str, **more: Any) -> cuda.Kind:
        lengths = more.get("gives_lengths", False)
        cut = cuda.policy_of(source, (dtype,), limit, lengths)
        found = cuda.Kind(op, source, (dtype,), cuda.dense(True), cut, kept, False, **more)
        return replace(found, has_redux=has_redux)

    return [
        kind(NOT_ZERO, dtype, IF),
        kind(NO_OPERATOR, marked, MARKED),
        kind(NOT_ZERO, dtype, IF, keeps_rest=True),
        kind(NO_OPERATOR, dtype, HEADS),
        kind(NO_OPERATOR, dtype, HEADS, gives_lengths=True),
    ]


def wide(kind: cuda.Kind) -> cuda.Kind:
    """Return it for counts of 64 bits, of elements in any strides."""
    leaves = len(records.field_dtypes(kind.source))
    return replace(kind, is_wide=True, access=cuda.spaced(leaves, is_even=False))


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["float32"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    sass.held([kind.selecting for kind in kinds(dtype)], MAIN, tmp_path, 32)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    found = kinds(FLOAT32, capability)
    rest = wide(found[2])
    specs = [*(kind.selecting for kind in found), rest.selecting, rest.counting]
    sass.held(specs, capability, tmp_path, 32)


@pytest.mark.parametrize("limit", [48 << 10, 64 << 10, 99 << 10, 163 << 10, 227 << 10])
def test_tiles_of_positions_fit_shared_memory(limit: int) -> None:
    """And what a warp's threads hold is counted in words of 16 bits."""
    cut = cuda.index_policy(limit)
    assert cut.shared_bytes(()) <= limit
    assert cut.block_threads >= 64
    assert cut.tile_items <= 1 << 15
