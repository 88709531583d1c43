"""Everything that an operator may contain compiles for a GPU, which need not be there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sass import needs_compilers
from support import Backend
from walk import Walk, source_of
from walk_cases import Array, Case, cases, edges
from walk_others import of_one, of_two, whole_numbers

from gpualgo._cuda.operator import compile_operator
from gpualgo._operators.operator import Operator


class _Compiling(Walk):
    """Compiles cases for sm_90 instead of applying them; compares their dtypes alone."""

    def _applied(self, found: list[Case], arrays: list[Array]) -> Array:
        dtypes = (np.dtype(np.int8), *(a.dtype for a in arrays))
        made = compile_operator(Operator(source_of(found, len(arrays))), dtypes, None, (9, 0))
        assert made.ltoir
        return np.zeros((len(found), len(arrays[0])), made.result_dtype)

    def _compare(self, case: Case, arrays: list[Array], want: Array, got: Array) -> None:
        self.num_cases += 1
        if got.dtype != want.dtype:
            self._note(case, arrays, f"is {got.dtype}, NumPy's {want.dtype}")


DTYPES = [("int8",), ("float32",), ("complex64",), ("int64", "uint64"), ("float16", "float16"),
          ("complex128", "int8")]  # fmt: skip


@needs_compilers
@pytest.mark.parametrize("names", DTYPES, ids=lambda names: "-".join(names))
def test_all_compiles(names: tuple[str, ...]) -> None:
    walk = _Compiling(Backend("cpu", np))
    others: list[Any] = [*of_one(), *whole_numbers()] if len(names) == 1 else of_two()
    arrays = [edges(np.dtype(name))[:1] for name in names]
    walk.over([*cases(len(names)), *others], arrays)
    walk.finish()
