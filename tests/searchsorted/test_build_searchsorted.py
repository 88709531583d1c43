"""The kernels of a search, built without a GPU, and how samples are cut."""

from __future__ import annotations

from dataclasses import replace
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
from gpualgo._algorithms.searchsorted import cuda
from gpualgo._algorithms.searchsorted.problem import AMONG, IN_EITHER, PLACE
from gpualgo._base import records
from gpualgo._cuda.build import Spec
from gpualgo._operators.operator import Operator

INT64 = np.dtype("int64")
MANY = 1 << 28
COARSE = Operator(lambda a, b: a // 16 < b // 16)

pytestmark = pytest.mark.usefixtures("own_cache")


def specs(
    element: Any, op: Operator | None = None, num_queries: int = MANY, answer: str = PLACE
) -> list[Spec]:
    """Return the kernels for arrays that lie as samples do."""
    cut = replace(cuda.policy_of(element, 64 << 10), answer=answer)
    cut = cuda.with_samples(cut, element, MANY, num_queries, 16)
    ways = (False,) * len(records.field_dtypes(element))
    order = Comparison(element, op, ways)
    result = INT64 if answer in (PLACE, IN_EITHER) else np.dtype(np.bool_)
    return cuda.specs(order, (element, element), False, result, cut, True)


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(["int8", "float16", "float32", "int64"], ["float32"]))
def test_nodes_are_loaded_whole(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    _, search = sass.held(specs(dtype), MAIN, tmp_path, 64)  # bytes, of four nodes under way
    width = min(128, 8 * dtype.itemsize << cuda.NODE_BITS.get(dtype.itemsize, 3))
    assert search.count(rf"LDG\.E\.{width}") > 0


@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]))
def test_other_architectures(capability: Capability, tmp_path: Path) -> None:
    pair = records.record(["0", "1"], [np.dtype("int32"), np.dtype("float64")])
    found = [*specs(np.dtype("int32"), COARSE), *specs(pair), *specs(INT64, None, 64)]
    assert len(found) == 4  # a pair and a few queries take no samples
    found += specs(np.dtype("float32"), answer=AMONG)
    found += specs(np.dtype("uint8"), answer=IN_EITHER)
    sass.held(found, capability, tmp_path, 64)


@given(
    st.integers(1, 1 << 40), st.sampled_from(["int8", "float32", "int64"]), st.integers(1, 1 << 40)
)
def test_samples(num_sorted: int, name: str, num_queries: int) -> None:
    """Nodes of all samples, and of the tree, are enough for every place."""
    dtype = sass.dtype_of(name)
    kind = cuda.policy_of(dtype, 64 << 10)
    kind = cuda.with_samples(kind, dtype, num_sorted, num_queries, 16)
    cut = cuda.tiling_of(kind, num_sorted, num_queries, 132)
    assert cut.num_samples <= cuda.MOST_SAMPLES
    assert num_sorted >> cut.stretch_bits < 1 << cut.num_levels
    assert cut.num_levels <= kind.levels
    assert bool(cut.begins) == bool(kind.node_bits)
    for number in range(1, cut.num_samples + 1):
        length = num_sorted >> number * kind.node_bits
        size = cut.begins[number] - cut.begins[number - 1]
        assert size % (1 << kind.node_bits) == 0
        assert length < size  # a node begins behind the last element, too
