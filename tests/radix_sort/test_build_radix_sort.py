"""The kernels of radix sorts, built without a GPU, and what the host decides before a launch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import sass
from hypothesis import given
from hypothesis import strategies as st
from sass import MAIN, Capability, Dtype, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.radix_sort import cuda_passes, problem, tuning
from gpualgo._algorithms.radix_sort.cuda_passes import Job, Layout
from gpualgo._algorithms.radix_sort.problem import Descending
from gpualgo._base import dtypes
from gpualgo._cuda import build

MANY = 1 << 28
KEYS = [
    sass.dtype_of(name)
    for name in ("bool", "int8", "uint16", "int32", "uint32", "int64", "uint64",
                 "float16", "bfloat16", "float32", "float64")
]  # fmt: skip
FLOATS = [dtype for dtype in KEYS if dtypes.kind(dtype) == "f"]
FLOAT32, UINT32, UINT64 = (np.dtype(name) for name in ("float32", "uint32", "uint64"))


pytestmark = pytest.mark.usefixtures("own_cache")


def pass_spec(
    dtype: Dtype, value_bytes: int, result_bytes: int, capability: Capability,
    num_keys: int = MANY, has_rows: bool = False, descending: Descending = False,
) -> build.Spec:  # fmt: skip
    cut = tuning.pass_policy(
        num_keys, dtype.itemsize, value_bytes, 4, sass.shared_bytes(capability)
    )
    overlaps = capability >= (9, 0)
    return tuning.pass_spec(
        dtype, descending, value_bytes, result_bytes, 4, cut, has_rows, overlaps
    )


def rows_spec(
    dtype: Dtype, value_bytes: int, row_items: int, num_rows: int, capability: Capability,
    descending: Descending = False,
) -> build.Spec:  # fmt: skip
    cut = tuning.row_policy(
        num_rows, row_items, dtype.itemsize, value_bytes, 132, sass.shared_bytes(capability)
    )
    assert cut is not None
    return tuning.rows_spec(dtype, descending, value_bytes, cut)


def check_all(
    specs: Mapping[build.Spec, bool], capability: Capability, folder: Path
) -> list[sass.Sass]:
    """Check kernels, each of which may spill or not."""
    codes = sass.read_all(list(specs), capability, folder)
    for (spec, may_spill), code in zip(specs.items(), codes, strict=True):
        where = f"{build.arch_of(capability)} {spec.expression}"
        assert not code.calls(), f"{where}: calls"
        bytes_ = code.local_bytes
        assert may_spill or not bytes_, f"{where}: {bytes_} bytes of local memory"
    return codes


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("dtype", "values", "results"),
    [(UINT32, 0, 0), (FLOAT32, 0, 0), (UINT32, 4, 4), (UINT64, 0, 0), (UINT64, 8, 8)],
)
def test_passes_hold_all_in_registers(
    dtype: Dtype, values: int, results: int, tmp_path: Path
) -> None:
    (code,) = check_all({pass_spec(dtype, values, results, MAIN): False}, MAIN, tmp_path)
    cut = tuning.pass_policy(MANY, dtype.itemsize, values, 4, sass.shared_bytes(MAIN))
    # Eight votes find the lanes with the same digit; a few more keep warps together.
    assert 8 * cut.items <= code.count("VOTE") <= 8 * cut.items + 8
    assert code.count("ATOMS") == cut.items


@needs_cuobjdump
@pytest.mark.parametrize("num_passes", [1, 4, 8])
def test_histogram_reads_wide_and_counts_without_waiting(num_passes: int, tmp_path: Path) -> None:
    cuts = [
        tuning.histogram_policy(num_bytes, num_passes, sass.shared_bytes(MAIN))
        for num_bytes in (1 << 16, 1 << 30)
    ]
    specs = [tuning.histogram_spec(UINT64, False, num_passes, 4, cut, True) for cut in cuts]
    for code in check_all(dict.fromkeys(specs, False), MAIN, tmp_path):
        assert code.count(r"LDG\.E\.128")
        assert code.count(r"ATOMS\.POPC\.INC")


@needs_cuobjdump
@pytest.mark.parametrize("dtype", sampled(KEYS), ids=str)
def test_every_key_has_its_kernels(dtype: Dtype, tmp_path: Path) -> None:
    specs = {
        pass_spec(dtype, 4, 8, MAIN, 1 << 20, True): False,
        rows_spec(dtype, 0, 300, 1000, MAIN): True,  # a word or two
        tuning.small_rows_spec(dtype, False, 8, 8): False,
    }
    check_all(specs, MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("dtype", sampled(FLOATS, FLOATS[-2:]), ids=str)
def test_descending_floats_take_next_to_nothing(dtype: Dtype, tmp_path: Path) -> None:
    """Of float64 a comparison for each of two keys that are put in order, of the others nothing."""
    specs = [tuning.small_rows_spec(dtype, descending, 0, 8) for descending in (False, True)]
    codes = check_all(dict.fromkeys(specs, False), MAIN, tmp_path)
    ascending, descending = (code.count("(?!NOP)") for code in codes)
    assert descending <= ascending + 2 * (dtype.itemsize == 8)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("value_bytes", sampled(problem.WORD_SIZES, [1, 16]))
def test_every_value_has_its_kernels(value_bytes: int, tmp_path: Path) -> None:
    specs = {
        cuda_passes.gather_spec(value_bytes, 4): False,
    }
    for dtype in (UINT32, UINT64):
        specs[pass_spec(dtype, value_bytes, value_bytes, MAIN)] = True
        specs[rows_spec(dtype, value_bytes, 4000, 1000, MAIN)] = True
    check_all(specs, MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5)]), ids=build.arch_of)
def test_other_architectures(capability: Capability, tmp_path: Path) -> None:
    cut = tuning.histogram_policy(1 << 30, 4, sass.shared_bytes(capability))
    specs = [
        tuning.histogram_spec(FLOAT32, False, 4, 4, cut, capability >= (9, 0)),
        pass_spec(FLOAT32, 0, 0, capability),
        pass_spec(UINT64, 8, 8, capability),
        rows_spec(FLOAT32, 4, 1024, 1000, capability),
        rows_spec(UINT64, 0, 2000, 1, capability),
    ]
    check_all(dict.fromkeys(specs, True), capability, tmp_path)


# --- how work is cut, and what it needs --------------------------------------------------------


@given(
    st.integers(1, 1 << 34), st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([0, *problem.WORD_SIZES]),
    st.sampled_from([4, 8]), st.sampled_from([48 << 10, 64 << 10, 99 << 10, 227 << 10]),
)  # fmt: skip
def test_tiles_fit_shared_memory(
    num_keys: int, key_bytes: int, value_bytes: int, index_bytes: int, limit: int
) -> None:
    cut = tuning.pass_policy(num_keys, key_bytes, value_bytes, index_bytes, limit)
    assert cut.items >= 1
    assert cut.shared_bytes(key_bytes, value_bytes, index_bytes) <= limit
    for num_passes in range(1, 9):
        counting = tuning.histogram_policy(num_keys * key_bytes, num_passes, limit)
        assert counting.replicas >= 1
        assert counting.shared_bytes(num_passes) <= limit


@given(
    st.integers(1, 1 << 20), st.integers(1, 20000), st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([0, 4, 8, 16]), st.sampled_from([64 << 10, 227 << 10]),
)  # fmt: skip
def test_rows_fit_their_block(
    num_rows: int, row_items: int, key_bytes: int, value_bytes: int, limit: int
) -> None:
    cut = tuning.row_policy(num_rows, row_items, key_bytes, value_bytes, 132, limit)
    if cut is None:
        assert row_items > 1024
        return
    assert cut.warps * tuning.WARP * cut.items >= row_items
    assert cut.warps == 1 or cut.rows_per_block == 1
    assert cut.block_threads <= 1024
    assert cut.shared_bytes(key_bytes, value_bytes > 0) <= limit


@pytest.mark.parametrize("key_bytes", [1, 2, 4, 8])
def test_temporary_storage_is_one_copy(key_bytes: int) -> None:
    num_keys = 1 << 26
    dtype = np.dtype(f"u{key_bytes}")
    for value_bytes, num_rows in itertools.product([0, *problem.WORD_SIZES], [1, 64]):
        job = Job(
            0, dtype, num_rows, num_keys // num_rows, False, 0, 8 * key_bytes,
            value_bytes=value_bytes, result_bytes=value_bytes,
        )  # fmt: skip
        layout = Layout(job, num_rows, max(2, key_bytes), tuning.RING)
        assert layout.side_bytes <= num_keys * (key_bytes + value_bytes) + 512
        assert layout.control_bytes + layout.state_bytes + layout.table_bytes <= 7 << 20
    for index_bytes in (4, 8):
        job = Job(
            0, dtype, 1, num_keys, False, 0, 8 * key_bytes, value_bytes=4,
            result_bytes=index_bytes, makes_indices=True, keeps_keys=False,
        )  # fmt: skip
        layout = Layout(job, 1, max(2, key_bytes), tuning.RING)
        spare = 0 if index_bytes == 8 else key_bytes  # the indices hold a copy where they are wide
        assert layout.side_bytes <= num_keys * (key_bytes + index_bytes + spare) + 1024
        # What is lent lies within the output.
        if layout.lent_keys:
            assert layout.lent_keys + num_keys * key_bytes <= num_keys * index_bytes


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 20, 32]), st.integers(0, 15), st.integers(-9, 9))
def test_words_divide_what_is_moved(itemsize: int, address: int, step: int) -> None:
    word = cuda_passes.word_bytes(itemsize, address, step * itemsize)
    assert word in problem.WORD_SIZES
    assert math.gcd(itemsize, address, 16) % word == 0
