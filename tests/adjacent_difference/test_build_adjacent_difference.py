"""The kernel of adjacent differences, built without a GPU."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.adjacent_difference import cuda
from gpualgo._algorithms.select import cuda as reading
from gpualgo._algorithms.transform import tuning
from gpualgo._base import dtypes, records
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.templates import VECTOR_BYTES
from gpualgo._operators.operator import Operator

FLOAT32 = np.dtype("float32")
FIRST = Operator(lambda a, b: b if a == b else a)

pytestmark = pytest.mark.usefixtures("own_cache")


def dense(op: Operator, dtype: Any, inner: int = 1) -> Spec:
    """Return the kernel of elements without gaps that are aligned."""
    numbers = records.field_dtypes(dtype)
    items = tuning.pack_items((*numbers, *numbers), VECTOR_BYTES)
    loads = tuning.loads_in_flight(numbers, items)
    access = reading.dense(in_packs=True), cpp("DenseResults")
    return cuda.Kind(op, dtype, dtype, *access, items, loads, inner == 1).spec


def spaced(op: Operator, dtype: Any) -> Spec:
    """Return the kernel of elements and results in strides of several dimensions."""
    count = len(records.field_dtypes(dtype))
    access = reading.spaced(count, is_even=False), cuda.spaced(count, is_even=False)
    return cuda.Kind(op, dtype, dtype, *access, 1, 4, is_along=False).spec


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "float32"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    """Packs are loaded and stored at once; nothing is kept in local memory, nothing called."""
    dtype = sass.dtype_of(name)
    specs = [dense(FIRST, dtype), dense(FIRST, dtype, 64), spaced(FIRST, dtype)]
    for code in sass.held(specs, MAIN, tmp_path)[:2]:
        assert code.count(r"LDG\.E\.128") > 0
        assert code.count(r"STG\.E\.128") > 0


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    pair = records.record(["0", "1"], [np.dtype("int32"), np.dtype("complex128")])
    swapped = Operator(lambda a, b: (a[0], b[1]))
    specs = [dense(Operator(operator.sub), FLOAT32), dense(swapped, pair), spaced(swapped, pair)]
    # On sm_75 NVRTC 13.0 lacks one register for pairs of 20 bytes, newer ones do not.
    spilled = 16 if capability == (7, 5) else 0
    sass.held(specs, capability, tmp_path, spilled)


@pytest.mark.parametrize(
    ("names", "alignment", "items"),
    [
        (["float32"], 16, 4), (["float32"], 8, 2), (["float32"], 4, 1), (["int8"], 16, 16),
        (["int8", "float64"], 16, 4), (["complex128"], 16, 1),
    ],
)  # fmt: skip
def test_packs(names: list[str], alignment: int, items: int) -> None:
    assert tuning.pack_items(tuple(map(np.dtype, names)), alignment) == items
