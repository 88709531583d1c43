"""From policies to machine code without a GPU or a driver: what kernels hold."""

from __future__ import annotations

import itertools
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.extremes.problem import ArgMaximum
from gpualgo._algorithms.reduce import tuning
from gpualgo._base import dtypes, records
from gpualgo._operators.operator import Operator, builtin

FLOAT32 = np.dtype("float32")
ADD, MULTIPLY = Operator(operator.add), Operator(operator.mul)
RECOGNISED = {"b": Operator(np.logical_or), "u": ADD, "i": ADD, "f": Operator(max), "c": MULTIPLY}
LAMBDA = Operator(lambda a, b: b if a == b else a + b)


pytestmark = pytest.mark.usefixtures("own_cache")


# --- machine code -------------------------------------------------------------------------


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("is_recognised", [True, False], ids=["recognised", "lambda"])
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "float64"]))
def test_every_dtype(name: str, is_recognised: bool, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    op = RECOGNISED[dtypes.kind(dtype)] if is_recognised else LAMBDA
    cases = sass.reduce_cases(op, dtype, dtype, sass.MANY_BYTES)
    sass.check([*cases, *sass.transform_cases(op, [dtype, dtype], dtype)], MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("capability", "names"),  # one for a recognised operator, one for a lambda
    [
        ((7, 5), "float16 int64"),
        pytest.param((8, 0), "complex64 bfloat16", marks=pytest.mark.exhaustive),
        pytest.param((10, 0), "int8 float32", marks=pytest.mark.exhaustive),
        ((12, 0), "float64 complex128"),
    ],
)
def test_every_architecture(capability: Capability, names: str, tmp_path: Path) -> None:
    for name, op in zip(names.split(), (ADD, LAMBDA), strict=True):
        dtype = sass.dtype_of(name)
        cases = sass.reduce_cases(op, dtype, dtype, sass.FEW_BYTES)
        cases += [sass.strided_case(op, dtype, dtype, is_nested=True)]
        cases += [sass.loose_case(op, [dtype, dtype], dtype)]
        sass.check([*cases, *sass.transform_cases(op, [dtype, dtype], dtype)], capability, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(["float32", "bool", "complex128"], ["float32"]))
def test_unaligned_and_strided(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    dims = {}, {"is_even": True}, {"is_nested": True}
    each = itertools.product((LAMBDA, Operator(LAMBDA.fn, commutative=True)), dims)
    cases = [sass.strided_case(op, dtype, dtype, **kind) for op, kind in each]
    cases += sass.reduce_cases(LAMBDA, dtype, dtype, sass.FEW_BYTES, aligned=False)
    cases += [sass.flat_case(LAMBDA, [dtype, dtype], dtype, aligned=False)]
    cases += [sass.loose_case(LAMBDA, [dtype, dtype], dtype)]
    sass.check(cases, MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    "names", sampled(["int8 int64", "bfloat16 float32", "float32 complex128"], ["bfloat16 float32"])
)
def test_mixed_dtypes(names: str, tmp_path: Path) -> None:
    narrow, wide = map(sass.dtype_of, names.split())
    cases = sass.reduce_cases(ADD, narrow, wide, sass.MANY_BYTES)
    cases += sass.transform_cases(LAMBDA, [narrow, wide], wide)
    sass.check(cases, MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("capability", [(7, 5), MAIN, (12, 0)])
def test_weak_literals_stay_single(capability: Capability, tmp_path: Path) -> None:
    result, code = sass.transformed(lambda a: a * 2.0 + 1, [FLOAT32], tmp_path, capability)
    assert result == FLOAT32
    assert code.count("F(MUL|ADD)") > 0
    assert code.count(sass.DOUBLE) == 0


@needs_cuobjdump
def test_what_is_looked_for_can_be_found(tmp_path: Path) -> None:
    """Double precision, and calls: ptxas makes a division's rare cases a subroutine."""
    result, code = sass.transformed(lambda a: 1 / (a * np.float64(2)), [FLOAT32], tmp_path, MAIN)
    assert result == np.float64
    assert code.count(sass.DOUBLE) > 0
    assert code.calls()


@needs_cuobjdump
def test_products_and_sums_round_apart(tmp_path: Path) -> None:
    for letter, dtype in (("F", FLOAT32), ("D", np.dtype("float64"))):
        _, code = sass.transformed(lambda a, b, c: a * b + c, [dtype] * 3, tmp_path, MAIN)
        assert code.count(letter + "FMA") == 0
        assert code.count(letter + "MUL") > 0
        assert code.count(letter + "ADD") > 0
    complex64 = np.dtype("complex64")
    case = sass.flat_case(MULTIPLY, [complex64] * 2, complex64)
    assert sass.read(case.spec, MAIN, tmp_path).count("FFMA") == 0


@needs_cuobjdump
def test_closures_are_constants(tmp_path: Path) -> None:
    scale, shift = np.float32(0.5), 3

    def scaled(a: Any) -> Any:
        return a * scale

    result, code = sass.transformed(lambda a: scaled(a) + shift, [FLOAT32], tmp_path, MAIN)
    assert result == FLOAT32
    assert code.count(sass.DOUBLE) == 0


# --- records -------------------------------------------------------------------------------


def _record_operator(dtype: np.dtype[Any]) -> Operator:
    if len(records.field_dtypes(dtype)) == 2:
        return Operator(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]))
    return Operator(lambda a, b: a if a[0] == b[0] else b)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("capability", "names"),
    [
        (MAIN, "float32 float32"),
        pytest.param(MAIN, "int8 float64 bool", marks=pytest.mark.exhaustive),
        pytest.param(MAIN, " ".join(["float32"] * 8), marks=pytest.mark.exhaustive),
        pytest.param(MAIN, " ".join(["complex128"] * 8), marks=pytest.mark.exhaustive),
        ((7, 5), "float64 float64"),
        pytest.param((8, 0), "int32 float32", marks=pytest.mark.exhaustive),
        pytest.param((10, 0), "float32 float32", marks=pytest.mark.exhaustive),
        pytest.param((12, 0), "float32 float64", marks=pytest.mark.exhaustive),
    ],
)
def test_records(capability: Capability, names: str, tmp_path: Path) -> None:
    fields = [sass.dtype_of(name) for name in names.split()]
    dtype = records.record([str(i) for i in range(len(fields))], fields)
    op = _record_operator(dtype)
    cases = sass.reduce_cases(op, dtype, dtype, sass.MANY_BYTES)
    sass.check([*cases, sass.strided_case(op, dtype, dtype)], capability, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    "names",
    sampled(["uint8 uint8 uint8", "float32 float32", "float64 float64", "uint8 int32"],
            ["uint8 uint8 uint8"]),
)  # fmt: skip
def test_interleaved_records(names: str, tmp_path: Path) -> None:
    fields = [sass.dtype_of(name) for name in names.split()]
    dtype = records.record([str(i) for i in range(len(fields))], fields)
    ends = np.cumsum([field.itemsize for field in fields]).tolist()
    source = records.Interleaved(dtype, ends[-1], (0, *ends[:-1]))
    op = _record_operator(dtype)
    specs = [case.spec for case in sass.reduce_cases(op, source, dtype, sass.MANY_BYTES)]
    for spec, code in zip(specs, sass.read_all(specs, MAIN, tmp_path), strict=True):
        assert not code.local_bytes, spec.expression


@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(["bool", "uint8", "float16"], ["uint8"]))
def test_extremes_along_columns_that_lie_apart(name: str, tmp_path: Path) -> None:
    dtype, many = sass.dtype_of(name), sass.MANY_ROWS
    source = records.record(("0", "1"), (dtype, records.SHARED_POSITION))
    acc = records.record(("0", "1"), (dtype, np.dtype(np.int64)))
    widest, size = tuning.column_items(source, acc, many), tuning.packed_size(source)
    cut = tuning.tile_columns(1, 1000, many, widest, 1, size, size)
    spec = tuning.columns_spec(builtin(ArgMaximum.functor), source, acc, cut, True)
    sass.check([sass.Case(spec, None)], MAIN, tmp_path)
