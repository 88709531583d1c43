"""Shared by the templates of all kernels: constants, functors, specs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element, Interleaved
from gpualgo._base.strides import MAX_DIMS, Dims
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, U64, Parameters
from gpualgo._cuda.plan import GIVEN, VALUE
from gpualgo._operators.operator import SOURCE, Operator

WARP = 32


VECTOR_BYTES = 16


ROWS_PER_WARP = 2112


def tagged_bytes(dtype: np.dtype[Any]) -> int:
    """Return the size of a value that blocks exchange with tags (parts/tagged.cuh)."""
    return 8 * -(-dtype.itemsize // 4)


def functor(op: Operator, args: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> str:
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


# --- Shapes and strides in the form that kernels read (parts/layout.cuh).


def divisor(value: int) -> tuple[int, int, int]:
    """Return (value, magic, shift) of layout.cuh's Divisor, exact for dividends below 2^63."""
    if value == 1:
        return 1, 0, 0
    bits = (value - 1).bit_length()
    return value, (1 << (63 + bits)) // value + 1, bits - 1


def layout_type(is_even: bool) -> str:
    return "EvenLayout" if is_even else "Layout"


def layout_of(operands: int, is_even: bool) -> Parameters:
    return even_layout(operands) if is_even else layout(operands)


DIVISOR = Parameters("Divisor", divisor, value=I64, magic=U64, shift=I64)


@cache
def layout(operands: int) -> Parameters:
    """Return Layout<operands>; its value is a list of dimensions with a stride per operand."""

    def numbers(dims: Dims) -> list[int]:
        if len(dims) > MAX_DIMS:
            raise ValueError(
                f"an array has {len(dims)} separate dimensions after adjacent ones are merged, "
                f"kernels support at most {MAX_DIMS}; make it contiguous first"
            )
        padded = [*dims, *([(1, (0,) * operands)] * (MAX_DIMS - len(dims)))]
        values = [len(dims)]
        for extent, _ in padded:
            values += divisor(extent)
        for operand in range(operands):
            values += [strides[operand] for _, strides in padded]
        return values

    return Parameters(
        "Layout", numbers,
        num_dims=I64, extents=DIVISOR[MAX_DIMS], strides=I64[MAX_DIMS][operands],
    )  # fmt: skip


MAX_NESTED = (1 << 31) - 1  # greatest extent of the inner dimension


def is_nested(dims: Dims) -> bool:
    """Return whether a NestedLayout can hold these dimensions."""
    return len(dims) == 2 and dims[1][0] <= MAX_NESTED


@cache
def nested_layout(operands: int) -> Parameters:
    """Return NestedLayout<operands>; its value is two dimensions, as for Layout."""

    def numbers(dims: Dims) -> list[int]:
        (_, outer), (extent, strides) = dims
        to_first = [step - (extent - 1) * s for step, s in zip(outer, strides, strict=True)]
        return [*divisor(extent), *outer, *strides, *to_first]

    return Parameters(
        "NestedLayout", numbers,
        inner=DIVISOR, outer=I64[operands], strides=I64[operands], to_first=I64[operands],
    )  # fmt: skip


@cache
def even_layout(operands: int) -> Parameters:
    """Return EvenLayout<operands>; its value is at most one dimension, as for Layout."""

    def numbers(dims: Dims) -> tuple[int, ...]:
        return dims[0][1] if dims else (0,) * operands

    return Parameters("EvenLayout", numbers, strides=I64[operands])


# --- Arrays that are fields of the same records in memory: kernels load whole records if
# possible.


def interleaved(
    source: Element, pointers: Sequence[int], strides: Iterable[Sequence[int]], step: int
) -> Interleaved | None:
    """Return the record layout of fields at these pointers; None if they do not share records.

    `strides`: for each dimension the strides of all fields. `step`: size of a record in bytes. The
    fields must cover at least half of the record.
    """
    if not isinstance(source, np.dtype) or source.names is None:
        return None
    sizes = [field.itemsize for field in records.memory_fields(source)]
    if len(sizes) < len(pointers) or any(len(set(axis_strides)) > 1 for axis_strides in strides):
        return None
    layout = records.in_one_piece(pointers, sizes)
    if layout is None or layout[1] != step:
        return None
    return Interleaved(source, step, layout[0])


def fitting(field: Element, unit: int) -> int:
    """Return how many neighbouring elements one access may load at multiples of `unit` bytes."""
    if not isinstance(field, Interleaved):
        return unit // records.step_of(field)
    most = 0
    while most < VECTOR_BYTES and unit % math.gcd(VECTOR_BYTES, max(1, 2 * most) * field.size) == 0:
        most = max(1, 2 * most)
    return most
