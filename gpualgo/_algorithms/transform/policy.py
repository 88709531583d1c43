"""Transformation: which kernel, which template arguments. One table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._cuda import build
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
def _pointers(outputs: int, inputs: int) -> Parameters:
    return Parameters("TransformPointers", output=POINTER[outputs], input=POINTER[inputs])


@cache
def flat_operands(outputs: int, inputs: int) -> Parameters:
    """Return FlatOperands<outputs, inputs>."""
    return Parameters("FlatOperands", pointers=_pointers(outputs, inputs), num_items=I64)


@cache
def strided_operands(outputs: int, inputs: int) -> Parameters:
    """Return StridedOperands<outputs, inputs>."""
    return Parameters(
        "StridedOperands",
        pointers=_pointers(outputs, inputs), num_items=I64, layout=layout(outputs + inputs),
    )  # fmt: skip


class Applied(NamedTuple):
    """An operator, what it takes, and what it returns: numbers or records."""

    op: Operator
    arguments: tuple[records.Argument, ...]
    result: np.dtype[Any]
    reads: tuple[np.dtype[Any], ...] = ()  # positions among them, if there are any

    @property
    def inputs(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the arrays that are read."""
        return self.reads or records.slots(self.arguments)

    @property
    def outputs(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the arrays that are written."""
        return records.leaves(self.result)


def pack_items(dtypes: Sequence[np.dtype[Any]], alignment: int) -> int:
    """Return how many elements of every operand one aligned pack holds."""
    read = [dtype for dtype in dtypes if not records.is_position(dtype)]
    narrowest = min(dtype.itemsize for dtype in read)
    widest = max(dtype.itemsize for dtype in read)
    most = max(1, min(VECTOR_BYTES // narrowest, MAX_PACK_BYTES // widest))
    steps = [
        records.step_of(dtype)
        for dtype in dtypes
        if dtype not in (records.POSITION, records.SHARED_POSITION)
    ]
    while most > 1 and any(alignment % min(VECTOR_BYTES, most * step) for step in steps):
        most //= 2
    return most


def loads_in_flight(inputs: Sequence[np.dtype[Any]], items: int) -> int:
    """Return how many packs of each input a thread holds."""
    read = [dtype.itemsize for dtype in inputs if not records.is_position(dtype)]
    bytes_per_load = items * sum(read or [8])
    loads = max(1, BYTES_IN_FLIGHT // bytes_per_load)
    return min(8, 1 << int(math.log2(loads)))


def flat_spec(applied: Applied, items: int, loads: int) -> Spec:
    """Return the kernel for operands without gaps."""
    counts = len(applied.outputs), len(applied.inputs)
    return _spec("flat", (BLOCK_THREADS, loads, items), flat_operands(*counts), applied)


def strided_spec(applied: Applied) -> Spec:
    """Return the kernel for operands of any strides."""
    counts = len(applied.outputs), len(applied.inputs)
    return _spec("strided", (BLOCK_THREADS, STRIDED_LOADS, 1), strided_operands(*counts), applied)


def _spec(name: str, policy: tuple[int, ...], takes: Parameters, applied: Applied) -> Spec:
    op, arguments, result, _ = applied
    types = ", ".join(map(records.cpp_name, (result, *applied.inputs)))
    expression = (
        f"gpualgo::transform_{name}_kernel<gpualgo::TransformPolicy"
        f"<{', '.join(map(str, policy))}>, {functor(op, applied.inputs, result)}, {types}>"
    )
    header = "transform/kernel.cuh"
    if build.is_functor(op, arguments, result):
        return Spec(header, expression, takes)
    return Spec(header, expression, takes, op, arguments, result)
