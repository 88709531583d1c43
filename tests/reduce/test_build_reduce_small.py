"""Machine code of the kernel that reduces few elements."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest
import sass
from sass import MAIN, Capability, needs_cuobjdump
from support import sampled

from gpualgo._algorithms.reduce import tuning
from gpualgo._base import dtypes, records
from gpualgo._cuda import build
from gpualgo._cuda.headers import Cpp
from gpualgo._operators.operator import Operator, as_operator

ADD = as_operator(operator.add, "test", 2)
LAMBDA = Operator(lambda a, b: b if a == b else a + b)
FIRST = Operator(lambda a, b: a if a[0] == b[0] else b)

pytestmark = pytest.mark.usefixtures("own_cache")


def _cases(
    op: Operator, dtype: records.Element, access: Cpp, is_wide: bool | None
) -> list[sass.Case]:
    """Return the kernels of all lengths."""
    size = tuning.bytes_read(dtype)
    cuts = [tuning.small_tiling(most // size, dtype) for most in tuning.SMALL_POLICIES]
    specs = [tuning.small_spec(op, dtype, dtype, access, cut.policy) for cut in cuts if cut]
    assert len(specs) >= len(cuts) - 2
    return [sass.Case(spec, is_wide) for spec in specs]


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(dtypes.NAMES, ["int8", "float32"]))
def test_every_dtype(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    cases = _cases(LAMBDA, dtype, tuning.flat(dtype, tuning.row_items(dtype)), True)
    if name != "bool":
        cases += _cases(ADD, dtype, tuning.flat(dtype, tuning.row_items(dtype)), True)
    sass.check(cases, MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize("name", sampled(["int8", "float32", "complex128"], ["float32"]))
def test_unaligned_and_strided(name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    is_wide = None if dtype.itemsize == 16 else False
    cases = _cases(LAMBDA, dtype, tuning.flat(dtype, 1), is_wide)
    cases += _cases(LAMBDA, dtype, tuning.strided(dtype, is_even=True), is_wide)
    sass.check(cases, MAIN, tmp_path)


@needs_cuobjdump
@pytest.mark.parametrize("names", sampled(["float32 float32", "float64 int64 float64"]))
def test_records(names: str, tmp_path: Path) -> None:
    fields = [sass.dtype_of(name) for name in names.split()]
    dtype = records.record([str(i) for i in range(len(fields))], fields)
    cases = _cases(FIRST, dtype, tuning.flat(dtype, tuning.row_items(dtype)), True)
    sass.check(cases, MAIN, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((7, 5), "float16"),
        pytest.param((8, 0), "complex64", marks=pytest.mark.exhaustive),
        pytest.param((10, 0), "int8", marks=pytest.mark.exhaustive),
        ((12, 0), "float64"),
    ],
)
def test_every_architecture(capability: Capability, name: str, tmp_path: Path) -> None:
    dtype = sass.dtype_of(name)
    access = tuning.flat(dtype, tuning.row_items(dtype))
    cases = [*_cases(ADD, dtype, access, True), *_cases(LAMBDA, dtype, access, True)]
    sass.check(cases, capability, tmp_path)


@pytest.mark.slow
@needs_cuobjdump
@pytest.mark.parametrize(
    "capability",
    [
        (7, 5),
        MAIN,
        pytest.param((8, 0), marks=pytest.mark.exhaustive),
        pytest.param((10, 0), marks=pytest.mark.exhaustive),
        (12, 0),
    ],
    ids=build.arch_of,
)
def test_the_wait_is_there_and_short(capability: Capability, tmp_path: Path) -> None:
    """Compilers leave out loops that leave nothing, and unroll those that end."""
    dtype = sass.dtype_of("float32")
    cuts = [tuning.small_tiling(most // 4, dtype) for most in tuning.SMALL_POLICIES]
    found = [cut for cut in cuts if cut is not None]
    access = tuning.flat(dtype, tuning.row_items(dtype))
    specs = [tuning.small_spec(ADD, dtype, dtype, access, cut.policy) for cut in found]
    for cut, code in zip(found, sass.read_all(specs, capability, tmp_path), strict=True):
        looks = [at for at, _, _, operands in code.instructions if "SR_CLOCK" in operands]
        if not cut.policy.wait:
            assert not looks, cut
            continue
        assert 2 <= len(looks) <= 3, cut  # where it begins, perhaps before the loop, and in it
        jumps = [
            (int(operands.split()[-1], 16), at)
            for at, _, opcode, operands in code.instructions
            if opcode.startswith("BRA") and operands.split()[-1].startswith("0x")
        ]
        rounds = [last - first for first, last in jumps if first <= looks[-1] < last]
        assert min(rounds) < 10 * sass.INSTRUCTION_BYTES, cut
