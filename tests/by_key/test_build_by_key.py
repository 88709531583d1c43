"""The kernels by key, built without a GPU: what their machine code holds."""

from __future__ import annotations

import dataclasses
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.by_key import cuda
from gpualgo._algorithms.select.cuda import dense, spaced
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

FEW = 16  # bytes: a word or two that stay as they are through a loop
LEAST_SHARED = 64 << 10  # bytes that a block can have on every architecture
ADD, LATEST = Operator(operator.add), Operator(lambda a, b: a * 2 + b)
BOOL, INT8, INT32, INT64, FLOAT32, FLOAT64, COMPLEX = (
    np.dtype(name)
    for name in ("bool", "int8", "int32", "int64", "float32", "float64", "complex128")
)
SHIFTED = Operator((lambda number: lambda a, b: a + b + number)(5))
AFFINE = Operator(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]))
THREE = Operator(lambda p, q: (p[0] + q[0], p[1] + q[1], p[2] + q[2]))
MIXED = records.record(("0", "1", "2"), [INT8, FLOAT64, INT32])
PAIR = records.record(("0", "1"), [FLOAT32, FLOAT32])
WIDE = records.record(tuple(map(str, range(7))), [COMPLEX] * 7)

pytestmark = pytest.mark.usefixtures("own_cache")


def kind_of(
    way: str,
    key: Any,
    acc: Any,
    op: Operator = ADD,
    *,
    is_dense: bool = True,
    is_wide: bool = False,
) -> cuda.Kind:
    leaves = [*records.field_dtypes(key), *records.field_dtypes(acc)]
    source = records.record(tuple(map(str, range(len(leaves)))), leaves)
    written = tuple(leaves) if way == "reduce" else records.field_dtypes(acc)
    access = dense(True) if is_dense else spaced(len(leaves), False)
    cut = cuda.policy_of(source, written, acc)
    has_init = way == "exclusive"
    return cuda.Kind(
        way, op, key, source, acc, access, cut, written, is_wide, False, has_init
    )  # fmt: skip


WAYS = ("reduce", "inclusive", "exclusive")


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize(
    ("key", "acc", "op", "is_dense"),
    [(INT8, FLOAT32, SHIFTED, False), (INT32, np.dtype("float16"), LATEST, True)],
    ids=["captured number", "half precision"],
)
def test_a_start_for_each_run_by_a_function(
    way: str, key: Any, acc: Any, op: Operator, is_dense: bool
) -> None:
    """It is built: ptxas has few registers for the conditions of a tile's elements."""
    kind = kind_of(way, key, acc, op, is_dense=is_dense)
    assert build.cubin(dataclasses.replace(kind, has_init=True).spec, (9, 0))


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("key", "acc", "op"),
    [
        (INT32, FLOAT32, ADD),
        (INT32, PAIR, AFFINE),
        pytest.param(INT64, FLOAT64, LATEST, marks=pytest.mark.exhaustive),
        pytest.param(INT8, INT64, ADD, marks=pytest.mark.exhaustive),
        pytest.param(INT64, MIXED, THREE, marks=pytest.mark.exhaustive),
        pytest.param(COMPLEX, COMPLEX, ADD, marks=pytest.mark.exhaustive),
        pytest.param(PAIR, FLOAT32, ADD, marks=pytest.mark.exhaustive),
    ],
    ids=[
        "numbers",
        "pairs",
        "wide numbers",
        "narrow keys",
        "gaps",
        "wide ones",
        "keys that are pairs",
    ],
)
def test_all_is_held_in_registers(
    way: str, key: Any, acc: Any, op: Operator, tmp_path: Path
) -> None:
    (code,) = sass.held([kind_of(way, key, acc, op).spec], MAIN, tmp_path, FEW)
    assert code.count("LDG.E.(128|64)") >= 2  # whole vectors
    assert code.count("BAR") >= 3


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("capability", sampled(sass.OTHERS, [(7, 5), (12, 0)]), ids=build.arch_of)
def test_other_architectures(capability: Capability, tmp_path: Path) -> None:
    found = [kind_of(way, INT32, FLOAT32).spec for way in WAYS]
    sass.held(found, capability, tmp_path, FEW)


@pytest.mark.slow
@needs_cuobjdump
def test_strides_and_wide_counts(tmp_path: Path) -> None:
    kind = kind_of("reduce", INT32, FLOAT32, is_dense=False, is_wide=True)
    sass.held([kind.spec], MAIN, tmp_path, FEW)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [BOOL, INT32, PAIR, COMPLEX], ids=str)
@pytest.mark.parametrize("acc", [INT8, FLOAT32, COMPLEX, PAIR, WIDE], ids=str)
def test_tiles_fit_every_gpu(way: str, key: Any, acc: Any) -> None:
    """A tile decides how elements are grouped, and so is the same wherever it runs."""
    kind = kind_of(way, key, acc, AFFINE)
    cut = kind.policy
    assert kind.shared_bytes <= LEAST_SHARED - 1024
    assert cut.block_threads in (64, 128, 192, 256)
    assert cut.rows in (1, 2, 3, 4)
    assert 32 * cut.items < 256
