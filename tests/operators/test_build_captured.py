"""Machine code of operators that capture arrays, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sass
from sass import Capability, needs_compilers, needs_cuobjdump
from support import run_python

import gpualgo as ga
from gpualgo._base import dtypes
from gpualgo._cuda import build
from gpualgo._operators.operator import Operator

Function = Callable[..., Any]
INT64, FLOAT32 = np.dtype("int64"), np.dtype("float32")


pytestmark = pytest.mark.usefixtures("own_cache")


def _lookup(table: Any) -> Function:
    return lambda i: table[i]


def _add_to(table: Any) -> Function:
    return lambda a, b: a + b + table[1]


def _constants(code: sass.Sass) -> int:
    """Return how often the constants that a module defines are read."""
    return sum("c[0x3]" in operands for *_, operands in code.instructions)


@needs_cuobjdump
@pytest.mark.parametrize("capability", [(7, 5), (9, 0), (10, 0), (12, 0)], ids=build.arch_of)
def test_lookups_are_inlined(capability: Capability, tmp_path: Path) -> None:
    functions = _lookup(np.zeros(5, np.float32)), lambda i: np.float32(i)
    (result, code), (_, plain) = sass.all_transformed(functions, [INT64], tmp_path, capability)
    assert result == FLOAT32
    assert not code.calls()
    assert not code.local_bytes
    assert code.count("LDG") > 0
    assert _constants(code) > 0 == _constants(plain)


@needs_compilers
@pytest.mark.parametrize("name", dtypes.NAMES)
def test_every_dtype_links(name: str) -> None:
    dtype = dtypes.from_name(name)
    for table in (np.zeros(4, dtype), np.zeros((4, 6), dtype)[:, ::2]):
        op = Operator(_lookup(table) if table.ndim == 1 else lambda i: table[i, i - 1])  # noqa: B023
        assert build.result_dtype(op, (INT64,), None, (9, 0)) == dtype
        build.cubin(sass.flat_case(op, [INT64], dtype).spec, (9, 0))


@needs_cuobjdump
def test_reductions_keep_their_form(tmp_path: Path) -> None:
    op = Operator(_add_to(np.zeros(3, np.float32)))
    sass.check(sass.reduce_cases(op, FLOAT32, FLOAT32, sass.MANY_BYTES), (9, 0), tmp_path)


@needs_compilers
def test_other_tables_link_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(table: Any) -> build.Spec:
        return sass.flat_case(Operator(_lookup(table)), [INT64], FLOAT32).spec

    ones = np.ones(9, np.float32)
    sass.check_links_once(monkeypatch, spec, np.zeros(4, np.float32), ones, ones[::2])


@needs_compilers
def test_writing_is_refused() -> None:
    table = np.zeros(3)

    def write(i: Any) -> Any:
        table[i] = 1.0
        return i

    with pytest.raises(ga.CompileError, match="captures"):
        build.result_dtype(Operator(write), (INT64,), None, (9, 0))


def test_the_digest_is_that_of_other_processes() -> None:
    code = """if True:
        import numpy as np
        from gpualgo._operators.tokens import digest_of
        from gpualgo._operators.operator import Operator
        padding = [np.zeros({size}) for _ in range({size})]
        table = np.arange({size}.0)
        print(digest_of(Operator(lambda i: table[i]).key))
    """
    found = {run_python(code.format(size=size)).stdout for size in (3, 70)}
    assert len(found) == 1
    assert len(found.pop().strip()) == 64
