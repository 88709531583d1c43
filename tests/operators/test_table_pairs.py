"""Everything that an operator may contain of two numbers, beside NumPy on edge values.

CI takes some pairs of dtypes; `--exhaustive` all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import DTYPES, Backend
from walk import Walk, pairs
from walk_cases import cases, grid
from walk_others import of_two

_SAMPLE = [("int64", "uint64"), ("float16", "int8"), ("complex64", "complex64")]
SAMPLE = [(np.dtype(left), np.dtype(right)) for left, right in _SAMPLE]


def _two(backend: Backend, left: np.dtype[Any], right: np.dtype[Any]) -> None:
    walk = Walk(backend)
    walk.over([*cases(2), *of_two()], grid(left, right))
    walk.finish()


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), SAMPLE, ids=str)
def test_functions_of_two_numbers(
    backend: Backend, left: np.dtype[Any], right: np.dtype[Any]
) -> None:
    _two(backend, left, right)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("left", "right"), pairs(DTYPES), ids=str)
def test_functions_of_every_pair(
    backend: Backend, left: np.dtype[Any], right: np.dtype[Any]
) -> None:
    _two(backend, left, right)
