"""The kernels of a reduction by index, built without a GPU."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import OTHERS, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.by_index import cuda, tuning
from gpualgo._algorithms.select import cuda as reading
from gpualgo._base import dtypes, records
from gpualgo._cuda.build import Spec
from gpualgo._operators.operator import Operator

MAIN: Capability = (9, 0)
FIRST = Operator(lambda a, b: b if a == b else a)
INDEX = np.dtype("int32")

pytestmark = pytest.mark.usefixtures("own_cache")


def specs(op: Operator, dtype: Any, index: Any = INDEX, overlaps: bool = True) -> list[Spec]:
    """Return the kernels for elements without gaps, and those of strided ones with starts."""
    source = records.record(
        map(str, range(1 + len(records.field_dtypes(dtype)))), [index, *records.field_dtypes(dtype)]
    )
    count = len(records.field_dtypes(source))
    accesses = reading.dense(in_packs=False), reading.spaced(count, is_even=True)
    return [
        spec
        for access, has_row_init in zip(accesses, (False, True), strict=True)
        for spec in cuda.Kind(op, index, source, dtype, access, has_row_init, overlaps).specs
    ]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "float32", "complex128"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    """Nothing is kept in local memory, nothing called."""
    for code in sass.read_all(specs(FIRST, sass.dtype_of(name)), MAIN, tmp_path):
        assert code.local_bytes == 0
        assert not code.calls()


@needs_cuobjdump
def test_loads_and_groups(tmp_path: Path) -> None:
    """Eight rows of elements are under way at once; a mark is exchanged for each."""
    fold = sass.read_all(specs(Operator(operator.add), np.dtype("float32")), MAIN, tmp_path)[0]
    assert fold.count(r"LDG\.E") >= 2 * tuning.MOST_ROWS
    assert fold.count("ATOMS.EXCH") >= tuning.MOST_ROWS


@needs_cuobjdump
@pytest.mark.parametrize(
    "capability", [OTHERS[0], *(pytest.param(c, marks=pytest.mark.exhaustive) for c in OTHERS[1:])]
)
def test_every_architecture(capability: Capability, tmp_path: Path) -> None:
    pair = records.record(["0", "1"], [np.dtype("int32"), np.dtype("complex128")])
    swapped, overlaps = Operator(lambda a, b: (a[0], b[1])), capability >= MAIN
    found = specs(swapped, pair, np.dtype("uint64"), overlaps)
    found += [cuda.starts_spec(np.dtype(key)) for key in ("int32", "uint64")]
    for code in sass.read_all(found, capability, tmp_path):
        assert code.local_bytes == 0


@pytest.mark.parametrize("log", range(0, 41, 2))
def test_cuts(log: int) -> None:
    """Shares hold all elements, tables few bytes beside them, and their number is bounded."""
    for n in {1 << log, (1 << log) + 1}:
        for size in (1, 16, 1000, 4000):
            cut = tuning.tiling_of(n, size)
            assert (cut.num_shares - 1) * cut.share_items < n <= cut.num_shares * cut.share_items
            assert cut.num_shares <= tuning.MOST_SHARES
            assert cut.share_items >= size
            assert cut.share_items % tuning.SHARE_UNIT == 0


def test_tables() -> None:
    for size in (1, 33, 4096):
        table = tuning.table_of(size, np.dtype("float64"))
        assert table.fits
        assert table.warps == 1 or table.warps * table.table_bytes <= tuning.BLOCK_BYTES
    assert not tuning.table_of(4097, np.dtype("float64")).fits
    assert tuning.table_of(6144, np.dtype("float32")).fits
    assert not tuning.table_of(6145, np.dtype("float32")).fits
