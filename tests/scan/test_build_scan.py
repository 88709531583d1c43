"""The kernels of scans, built without a GPU: what their machine code holds."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import numpy as np
import pytest
import sass
from sass import Capability, Dtype, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.scan import tuning as tiles
from gpualgo._base import dtypes, records
from gpualgo._cuda import build
from gpualgo._cuda.headers import cpp
from gpualgo._operators.operator import Operator

MAIN: Capability = (9, 0)  # every dtype is compiled for this architecture, some for the others
ADD = Operator(operator.add)
LAMBDA = Operator(lambda a, b: b if a == b else a + b)
MANY = 1 << 20
WIDE = r"LDG(STS)?\.E(\.\w+)*\.128|UBLKCP"  # 16 bytes at a time, or in bulk
Case = tuple[build.Spec, bool | None]  # a kernel, and whether it should load so (None: either)


pytestmark = pytest.mark.usefixtures("own_cache")


def check(cases: list[Case], capability: Capability, folder: Path) -> None:
    codes = sass.read_all([spec for spec, _ in cases], capability, folder)
    for (spec, is_wide), code in zip(cases, codes, strict=True):
        where = f"{build.arch_of(capability)} {spec.expression}"
        assert not code.calls(), f"{where}: calls, as if the operator were not inlined"
        # Some versions of the compilers keep one word of a kernel for bytes outside registers.
        is_byte = re.search(r"UserOperator<\w+, \w+, (bool|gpualgo::u?int8)\b", spec.expression)
        allowed = 8 if is_byte else 0
        assert code.local_bytes <= allowed, f"{where}: {code.local_bytes} bytes of local memory"
        assert allowed or code.count("LDL|STL") == 0, f"{where}: registers spill"
        if is_wide is not None:
            assert bool(code.count(WIDE)) == is_wide, f"{where}: 16-byte loads: {not is_wide}"


def tiles_case(op: Operator, source: Dtype, acc: Dtype, capability: Capability) -> Case:
    cut = tiles.tiles_policy(MANY << 10, max(source.itemsize, acc.itemsize))
    access = tiles.flat(source, acc, (0, 0), False)
    assert isinstance(cut, tiles.Policy)
    return tiles.tiles_spec(op, source, acc, access, cut, False, capability), True


def wave_case(op: Operator, source: Dtype, acc: Dtype, num_bytes: int) -> Case:
    cut = tiles.tiles_policy(num_bytes, max(source.itemsize, acc.itemsize))
    assert isinstance(cut, tiles.WavePolicy)
    access = tiles.flat(source, acc, (0, 0), False)
    return tiles.wave_spec(op, source, acc, access, cut, False), None


def rows_case(
    op: Operator, source: Dtype, acc: Dtype, num_items: int, capability: Capability
) -> Case:
    cut = tiles.tile_rows(num_items, max(source.itemsize, acc.itemsize))
    access = cpp("DenseRows", 16, 16, False)
    return tiles.rows_spec(op, source, acc, access, cut, True, capability >= (8, 0)), True


def spaced_case(op: Operator, source: Dtype, acc: Dtype) -> Case:
    cut = tiles.tile_rows(1000, max(source.itemsize, acc.itemsize))
    access = cpp("SpacedRows", len(records.field_dtypes(acc)))
    is_wide = None if source.itemsize == 16 else False
    return tiles.rows_spec(op, source, acc, access, cut, False, True), is_wide


def columns_case(
    op: Operator, source: Dtype, acc: Dtype, num_columns: int, capability: Capability,
    unit: int = 16,
) -> Case:  # fmt: skip
    cut = tiles.tile_columns(MANY, num_columns, 1, source, acc)
    is_wide = True if unit else None if source.itemsize == 16 else False
    is_async = capability >= (8, 0)
    return tiles.columns_spec(op, source, acc, cut, (unit, unit), True, is_async), is_wide


def walks_case(op: Operator, source: Dtype, acc: Dtype) -> Case:
    widest = max(source.itemsize, acc.itemsize)
    items = tiles.walk_items(16 * MANY, MANY, widest, 16)
    is_wide = items * source.itemsize == 16
    return tiles.walks_spec(op, source, acc, items, False), is_wide


def all_cases(op: Operator, source: Dtype, acc: Dtype, capability: Capability) -> list[Case]:
    return [
        tiles_case(op, source, acc, capability),
        *(wave_case(op, source, acc, size << 20) for size in (0, 1, 8)),
        rows_case(op, source, acc, 1024, capability),
        columns_case(op, source, acc, 1024, capability),
        walks_case(op, source, acc),
    ]


# --- machine code -------------------------------------------------------------------------


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["bfloat16", "float32", "complex128"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    is_recognised = dtypes.NAMES.index(name) % 2 and dtype.kind != "b"
    check(all_cases(ADD if is_recognised else LAMBDA, dtype, dtype, MAIN), MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(("capability", "name"), [((7, 5), "int8"), ((8, 0), "float64")])
def test_every_architecture(capability: Capability, name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    check(all_cases(ADD, dtype, dtype, capability), capability, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(["int8", "float32", "complex128"], ["int8"]))
def test_short_long_narrow_and_strided(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    cases = [rows_case(LAMBDA, dtype, dtype, n, MAIN) for n in (16 // dtype.itemsize, MANY)]
    cases += [columns_case(LAMBDA, dtype, dtype, 3, MAIN, unit) for unit in (16, 0)]
    check([*cases, spaced_case(ADD, dtype, dtype)], MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("names", sampled(["int8 int64", "float64 float32"], ["int8 int64"]))
def test_mixed_dtypes(names: str, tmp_path: Path) -> None:
    source, acc = map(sass.dtype_of, names.split())
    cases = [rows_case(ADD, source, acc, 1024, MAIN), columns_case(ADD, source, acc, 1024, MAIN)]
    check([*cases, walks_case(ADD, source, acc)], MAIN, tmp_path)


# --- cuts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("widest", [1, 2, 4, 8, 16])
def test_rows_hold_their_lines(widest: int) -> None:
    for num_items in range(1, 10000, 7):
        cut = tiles.tile_rows(num_items, widest)
        room = cut.width * cut.vectors * (16 // widest)
        assert cut.vectors % 2 == 1  # or the banks of shared memory would conflict
        assert cut.is_long == (room < num_items)
        if not cut.is_long and cut.width > 1:
            assert room < 2 * num_items  # few lanes have nothing


@pytest.mark.parametrize("names", ["int8 int8", "int16 int16", "float32 float32", "int8 int64",
                                   "float64 float32", "complex128 complex128"])  # fmt: skip
@pytest.mark.parametrize("num_columns", [2, 3, 7, 16, 31, 32, 63, 64, 65, 300, 1 << 20])
def test_columns_fit_a_block(names: str, num_columns: int) -> None:
    source, acc = map(np.dtype, names.split())
    for num_rows in (2, 1000, 1 << 26):
        cut = tiles.tile_columns(num_rows, num_columns, 1, source, acc)
        assert 1 <= cut.width <= 64
        assert cut.segments * cut.width <= tiles.COLUMNS_THREADS
        assert cut.strips * cut.width * cut.items >= num_columns
        assert (cut.chunks - 1) * cut.rows < num_rows <= cut.chunks * cut.rows
        assert cut.shared_bytes(source, acc) <= 64 << 10  # of an sm_75


LIMITS = [64 << 10, 99 << 10, 163 << 10, 227 << 10]  # bytes of a block: sm_75, 86 and 120, 80, 90


@pytest.mark.parametrize("limit", LIMITS)
def test_tiles_fit_a_block(limit: int) -> None:
    dtypes = list(map(np.dtype, ("int8", "int16", "float32", "float64", "complex128")))
    kinds = [(a, b) for a in dtypes for b in dtypes]
    kinds += [(pair, pair) for pair in (records.record("abcdefgh"[:n], [d] * n)
                                        for d in dtypes for n in (1, 2, 3, 8))]  # fmt: skip
    for source, acc in kinds:
        cut = tiles.policy_of(MANY << 10, source, acc)
        if isinstance(cut, tiles.Policy):
            fitting = cut.fitting(source, acc, limit)
            assert fitting.shared_bytes(source, acc) <= limit
            assert fitting.tile_items(16) == cut.tile_items(16)  # so are the bits


# --- records -------------------------------------------------------------------------------


def record_cases(op: Operator, dtype: Dtype, capability: Capability) -> list[Case]:
    """Return the kernels that scan records: what is wide of them are single numbers."""
    is_async = capability >= (8, 0)
    cut = tiles.policy_of(MANY << 10, dtype, dtype)
    assert isinstance(cut, tiles.Policy)
    stepped = cpp("SteppedLines", dtype, dtype)
    cases = [tiles.tiles_spec(op, dtype, dtype, stepped, cut, False, capability)]
    wave = tiles.policy_of(1 << 20, dtype, dtype)
    assert isinstance(wave, tiles.WavePolicy)
    cases.append(tiles.wave_spec(op, dtype, dtype, stepped, wave, True))
    if capability == MAIN:  # for sm_120 bulk copies of several leaves are calls
        flat = tiles.flat(dtype, dtype, (0, 0), True)
        cases.append(tiles.tiles_spec(op, dtype, dtype, flat, cut, False, capability))
    for num_items in (3, MANY):
        rows = tiles.rows_tiling(num_items, dtype, dtype)
        leaves = len(records.field_dtypes(dtype))
        for access in (cpp("SpacedRows", leaves), cpp("DenseRows", 8, 8, True, leaves)):
            cases.append(tiles.rows_spec(op, dtype, dtype, access, rows, True, is_async))
    for num_columns in (3, 1024):
        columns = tiles.tile_columns(MANY, num_columns, 1, dtype, dtype)
        units = 0, 0
        cases.append(tiles.columns_spec(op, dtype, dtype, columns, units, False, is_async))
    items = tiles.walk_items(16 * MANY, MANY, dtype.itemsize, 16)
    cases.append(tiles.walks_spec(op, dtype, dtype, items, False))
    return [(case, None) for case in cases]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("capability", "names"),
    [
        (MAIN, "float32 float32"),
        pytest.param(MAIN, "bool float32", marks=pytest.mark.exhaustive),
        pytest.param(MAIN, "int8 float64 bool", marks=pytest.mark.exhaustive),
        pytest.param(MAIN, " ".join(["float64"] * 8), marks=pytest.mark.exhaustive),
        ((7, 5), "float32 int32"),
        pytest.param((8, 0), "float64 float64", marks=pytest.mark.exhaustive),
        pytest.param((10, 0), "float32 float32", marks=pytest.mark.exhaustive),
        pytest.param((12, 0), "float32 float32", marks=pytest.mark.exhaustive),
    ],
)
def test_records(capability: Capability, names: str, tmp_path: Path) -> None:
    fields = [sass.dtype_of(name) for name in names.split()]
    dtype = records.record([str(i) for i in range(len(fields))], fields)
    op = Operator(lambda a, b: b if a[0] else (b[0], a[1] + b[1]))
    if len(fields) > 2:
        op = Operator(lambda a, b: b if a[1] == b[1] else a)
    check(record_cases(op, dtype, capability), capability, tmp_path)


@pytest.mark.parametrize(
    "names",
    [
        "int8 int8 int8", "float32 float32", "int8 float64 bool", " ".join(["float64"] * 5),
        " ".join(["complex128"] * 8),
    ],
)  # fmt: skip
def test_records_fit_shared_memory(names: str) -> None:
    fields = [np.dtype(name) for name in names.split()]
    dtype = records.record([str(i) for i in range(len(fields))], fields)
    for num_columns in (1, 2, 3, 17, 1000):
        columns = tiles.tile_columns(1000, num_columns, 1, dtype, dtype)
        assert columns.segments * columns.width <= columns.threads
        assert columns.shared_bytes(dtype, dtype) <= 64 << 10  # of an sm_75
    for num_items in (1, 10, 100, 1000, 10000):
        rows = tiles.rows_tiling(num_items, dtype, dtype)
        room = rows.width * rows.rounds * rows.vectors * tiles.vector_items(dtype.itemsize)
        assert rows.vectors % 2 == 1
        assert rows.is_long or num_items * (32 // rows.width) <= room * (32 // rows.width)
        warps = tiles.ROWS_THREADS // 32
        stages = 2 if rows.is_long else 1
        lane = rows.vectors * tiles.vector_items(dtype.itemsize) * dtype.itemsize
        assert warps * stages * rows.rounds * 32 * lane <= tiles.ROWS_SHARED
