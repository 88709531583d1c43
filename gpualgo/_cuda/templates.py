"""Shared by the templates of all kernels: constants, functors, specs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import Parameters
from gpualgo._cuda.plan import GIVEN, VALUE
from gpualgo._operators.operator import SOURCE, Operator

WARP = 32


VECTOR_BYTES = 16


ROWS_PER_WARP = 2112


def tagged_bytes(dtype: np.dtype[Any]) -> int:
    """Return the size of a value that blocks exchange with tags (parts/tagged.cuh)."""
    return 8 * -(-dtype.itemsize // 4)


def functor(op: Operator, args: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> str:
    """Return the C++ type of an operator."""
    if build.is_functor(op, args, result):
        assert op.name is not None
        functor_name = "gpualgo::" + "".join(word.capitalize() for word in op.name.split("_"))
        return f"gpualgo::WithNumbers<{functor_name}>" if op.key.numbers else functor_name
    types = ", ".join(map(records.cpp_name, (result, *args)))
    if op.part == SOURCE:
        return f"gpualgo::InputFunction<{str(bool(op.key.numbers)).lower()}, {types}>"
    name = "NumberedOperator" if op.key.numbers else "UserOperator"
    return f"gpualgo::{name}<{str(op.commutative).lower()}, {types}>"


START = {"value": VALUE, "is_given": GIVEN}
"""The address indices that an Init takes."""


class Access(NamedTuple):
    """How a kernel accesses elements: a C++ type and its fields."""

    cpp: str
    fields: Parameters
    in_bytes: bool = False  # records are loaded as raw bytes


def spec_of(
    header: str, expression: str, parameters: Parameters, op: Operator, acc: np.dtype[Any],
    source: records.Element | None = None,
) -> Spec:  # fmt: skip
    """Return the spec of a kernel with an operator on dtype acc that reads elements of `source`."""
    computed = source if isinstance(source, records.Computed) else None
    if op.name is not None and computed is None:
        return Spec(header, expression, parameters)
    return Spec(header, expression, parameters, op, (acc, acc), acc, computed)


def is_aligned(operands: Sequence[records.Element], items: int, alignment: int) -> bool:
    """Return whether vectors of so many elements can be loaded at multiples of `alignment`."""
    return all(
        alignment % math.gcd(VECTOR_BYTES, items * records.step_of(operand)) == 0
        for operand in operands
        if operand not in (records.POSITION, records.SHARED_POSITION)
    )
