"""Everything that an operator may contain, beside NumPy on edge values of every dtype.

CI takes some dtypes; `--exhaustive` all, and every pair of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from listing import PAGE, listing, parts
from support import BFLOAT16, DTYPES, Backend, scaled
from walk import Walk
from walk_cases import cases, edges, grid, partner_cases
from walk_others import constructors, holding, of_one, whole_numbers

SAMPLE = [np.dtype("int8"), BFLOAT16, np.dtype("float32")]
# Out of bounds of some dtypes, beyond 64 bits, not exact in a float32.
INTEGERS = (0, 1, -1, 2, 3, 200, -200, 2**24 + 1, 2**53 + 1, 2**63, -(2**63), 2**64, -(2**70))
FLOATS = (0.0, -0.0, 0.5, 2.5, 1e10, 1e300)
INFINITIES = (float("inf"), float("nan"))  # have no literals


def _one(backend: Backend, dtype: np.dtype[Any]) -> None:
    walk = Walk(backend)
    walk.over([*cases(1), *of_one()], grid(dtype))
    small = edges(dtype)
    walk.over(whole_numbers(), [holding(small, np.dtype("int64"))])
    for case, made in constructors():
        walk.over([case], [holding(small, made)])
    walk.finish()


@pytest.mark.parametrize("dtype", SAMPLE, ids=str)
def test_functions_of_one_number(backend: Backend, dtype: np.dtype[Any]) -> None:
    walk = Walk(backend)
    walk.over([*cases(1), *of_one()], grid(dtype))
    walk.finish()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_one_number_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    _one(backend, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operators_of_every_dtype(backend: Backend, dtype: np.dtype[Any]) -> None:
    """Those of the language, of two numbers of one dtype."""
    walk = Walk(backend)
    some = [part[:: scaled(1, emulated=37)] for part in grid(dtype, dtype)]
    walk.over([case for case in cases(2) if case.text.startswith("a ")], some)
    walk.finish()


def _partners(
    backend: Backend, dtype: np.dtype[Any], numbers: tuple[Any, ...], *, is_literal: bool
) -> None:
    walk = Walk(backend)
    found = [case for number in numbers for case in partner_cases(number, is_literal)]
    walk.over(found, [edges(dtype)])
    walk.finish()


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_operators_with_python_numbers(backend: Backend, dtype: str) -> None:
    _partners(backend, np.dtype(dtype), (2**63, 200), is_literal=True)
    _partners(backend, np.dtype(dtype), (-1, 0.5), is_literal=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_literal", [True, False], ids=["literal", "captured"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operators_of_every_dtype_with_python_numbers(
    backend: Backend, dtype: np.dtype[Any], is_literal: bool
) -> None:
    # Beside these NumPy refuses what 64 bits do not hold; operators do not (docs/operators.md).
    fits = dtype not in (np.bool_, BFLOAT16)
    integers = [n for n in INTEGERS if fits or -(2**63) <= n < 2**63]
    numbers = (*integers, *FLOATS, 2j, *(() if is_literal else INFINITIES))
    _partners(backend, dtype, numbers, is_literal=is_literal)


def test_the_page_lists_the_table() -> None:
    """`python tests/operators/listing.py` writes the list anew."""
    _, listed, _ = parts(PAGE.read_text(encoding="utf-8"))
    assert listed == listing()
