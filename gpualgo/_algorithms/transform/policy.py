"""Transformation: which kernel, which template arguments. One table."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import dtypes as _dtypes
from gpualgo._cuda.build import Spec
from gpualgo._cuda.layout import layout
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.templates import VECTOR_BYTES, functor
from gpualgo._operators.operator import Operator

BLOCK_THREADS = 256
# Bytes that a thread loads before it stores, over all inputs.
BYTES_IN_FLIGHT = 16
# The widest operand takes at most this many bytes of a pack; the narrowest then fewer.
MAX_PACK_BYTES = 32
STRIDED_LOADS = 4


@cache
def _pointers(inputs: int) -> Parameters:
    return Parameters("TransformPointers", output=POINTER, input=POINTER[inputs])


@cache
def flat_operands(inputs: int) -> Parameters:
    """Return FlatOperands<inputs>."""
    return Parameters("FlatOperands", pointers=_pointers(inputs), num_items=I64)


@cache
def strided_operands(inputs: int) -> Parameters:
    """Return StridedOperands<inputs>."""
    return Parameters(
        "StridedOperands", pointers=_pointers(inputs), num_items=I64, layout=layout(inputs + 1)
    )


def pack_items(dtypes: list[np.dtype[Any]], alignment: int) -> int:
    """Return how many elements of every operand one aligned pack holds."""
    narrowest = min(dtype.itemsize for dtype in dtypes)
    widest = max(dtype.itemsize for dtype in dtypes)
    most = max(1, min(VECTOR_BYTES // narrowest, MAX_PACK_BYTES // widest))
    while most > 1 and any(
        alignment % min(VECTOR_BYTES, most * dtype.itemsize) for dtype in dtypes
    ):
        most //= 2
    return most


def loads_in_flight(inputs: list[np.dtype[Any]], items: int) -> int:
    """Return how many packs of each input a thread holds."""
    bytes_per_load = items * sum(dtype.itemsize for dtype in inputs)
    loads = max(1, BYTES_IN_FLIGHT // bytes_per_load)
    return min(8, 1 << int(math.log2(loads)))


def _arguments(op: Operator, inputs: list[np.dtype[Any]], result: np.dtype[Any]) -> str:
    types = ", ".join(_dtypes.cpp_name(dtype) for dtype in (result, *inputs))
    return f"{functor(op, tuple(inputs), result)}, {types}"


def flat_spec(
    op: Operator, inputs: list[np.dtype[Any]], result: np.dtype[Any], items: int, loads: int
) -> Spec:
    """Return the kernel for operands without gaps."""
    expression = (
        "gpualgo::transform_flat_kernel<gpualgo::TransformPolicy"
        f"<{BLOCK_THREADS}, {loads}, {items}>, {_arguments(op, inputs, result)}>"
    )
    return _spec(expression, flat_operands(len(inputs)), op, inputs, result)


def strided_spec(op: Operator, inputs: list[np.dtype[Any]], result: np.dtype[Any]) -> Spec:
    """Return the kernel for operands of any strides."""
    expression = (
        "gpualgo::transform_strided_kernel<gpualgo::TransformPolicy"
        f"<{BLOCK_THREADS}, {STRIDED_LOADS}, 1>, {_arguments(op, inputs, result)}>"
    )
    return _spec(expression, strided_operands(len(inputs)), op, inputs, result)


def _spec(
    expression: str, parameters: Parameters, op: Operator, inputs: list[np.dtype[Any]],
    result: np.dtype[Any],
) -> Spec:  # fmt: skip
    if op.name is not None and all(dtype == result for dtype in inputs):
        return Spec("transform/kernel.cuh", expression, parameters)
    return Spec("transform/kernel.cuh", expression, parameters, op, tuple(inputs), result)
