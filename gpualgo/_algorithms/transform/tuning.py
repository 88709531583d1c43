"""Kernel parameters and tuning table of transformations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.templates import (
    DIVISOR,
    VECTOR_BYTES,
    functor,
    is_aligned,
    layout_of,
    layout_type,
)
from gpualgo._operators.operator import Operator

# --- Tuning table of transformations: kernels and template arguments.

BLOCK_THREADS = 256
# Bytes that a thread loads before it stores, over all inputs.
BYTES_IN_FLIGHT = 16
# Upper bound on the bytes of the widest operand in a pack; narrower ones then have fewer.
MAX_PACK_BYTES = 32
# Of a pack of records, which a block collects in shared memory before it writes them.
MAX_RECORD_PACK_BYTES = 128
# Elements per pack if inputs are misaligned: single loads touch as many cache lines.
LOOSE_ITEMS = 4


@cache
def _pointers(outputs: int, inputs: int) -> Parameters:
    return Parameters("TransformPointers", output=POINTER[outputs], input=POINTER[inputs])


@cache
def flat_operands(outputs: int, inputs: int) -> Parameters:
    return Parameters("FlatOperands", pointers=_pointers(outputs, inputs), num_items=I64)


@cache
def row_operands(outputs: int, inputs: int, is_even: bool) -> Parameters:
    """Return RowOperands<outputs, inputs, Rows>; is_even: rows have one dimension."""
    count = outputs + inputs
    return Parameters(
        "RowOperands",
        pointers=_pointers(outputs, inputs), num_packs=I64, packs_per_row=DIVISOR,
        steps=I64[count], rows=layout_of(count, is_even),
    )  # fmt: skip


@cache
def transposed_operands(outputs: int, inputs: int, is_even: bool) -> Parameters:
    """Return TurnedOperands<outputs, inputs, Batch>; is_even: the batch has one dimension."""
    count = outputs + inputs
    return Parameters(
        "TurnedOperands",
        pointers=_pointers(outputs, inputs), num_rows=I64, num_columns=I64, tiles_down=DIVISOR,
        tiles_across=DIVISOR, row_strides=I64[count], column_strides=I64[count],
        batch=layout_of(count, is_even),
    )  # fmt: skip


class Applied(NamedTuple):
    """An operator with the dtypes of its arguments and its result: numbers or records."""

    op: Operator
    arguments: tuple[records.Argument, ...]
    result: np.dtype[Any]
    reads: tuple[np.dtype[Any], ...] = ()  # with index inputs, if there are any

    @property
    def inputs(self) -> tuple[np.dtype[Any], ...]:
        return self.reads or records.slots(self.arguments)

    @property
    def outputs(self) -> tuple[np.dtype[Any], ...]:
        return records.field_dtypes(self.result)


def pack_items(operands: Sequence[Element], alignment: int) -> int:
    """Return how many elements of every operand one aligned pack holds."""
    sizes = [field.itemsize for operand in operands for field in records.memory_fields(operand)]
    limit = max(1, min(VECTOR_BYTES // min(sizes), MAX_PACK_BYTES // max(sizes)))
    for operand in operands:
        if isinstance(operand, records.Interleaved):
            # One vector, if records fill it; else limited by a block's shared memory.
            fills = VECTOR_BYTES % operand.size == 0
            room = (VECTOR_BYTES if fills else MAX_RECORD_PACK_BYTES) // operand.size
            limit = min(limit, 1 << max(1, room).bit_length() - 1)
    while limit > 1 and not is_aligned(operands, limit, alignment):
        limit //= 2
    return limit


def loads_in_flight(inputs: Sequence[np.dtype[Any]], items: int) -> int:
    """Return how many packs of each input a thread loads before it stores."""
    sizes = [dtype.itemsize for dtype in inputs if not records.is_position(dtype)]
    bytes_per_load = items * sum(sizes or [8])
    loads = max(1, BYTES_IN_FLIGHT // bytes_per_load)
    return min(8, 1 << int(math.log2(loads)))


class OperandMasks(NamedTuple):
    """Bit masks of operands: contiguous in a row, or constant in a row."""

    dense: int
    repeated: int


# A tile of transposed inputs has SQUARES squares along each side. SQUARE_ITEMS: elements along the
# side of a square, by the bytes of the widest operand that is transposed or written.
# TRANSPOSED_BYTES: shared memory for tiles.
SQUARES, SQUARE_ITEMS = 32, {1: 4, 2: 4, 4: 2, 8: 1, 16: 1}
TRANSPOSED_BYTES, SQUARES_IN_FLIGHT = 48 << 10, 2


def tile_bytes(items: int, sizes: Sequence[int]) -> int:
    return (SQUARES * items) ** 2 * sum(sizes)


def flat_spec(
    applied: Applied, items: int, loads: int, operands: Sequence[Element] | None = None,
    loose: int = 0,
) -> Spec:  # fmt: skip
    """Return the kernel for contiguous operands; `operands` are given if some are interleaved.

    `loose` is a bit mask of inputs that are loaded number by number.
    """
    outputs, *inputs = operands or (applied.result, *applied.inputs)
    counts = len(records.field_dtypes(outputs)), len(inputs)
    policy = _policy("TransformPolicy", BLOCK_THREADS, loads, items, *([loose] if loose else []))
    params = flat_operands(*counts)
    return _spec("kernel.cuh", "flat", [policy], params, applied, (outputs, *inputs))


def rows_spec(applied: Applied, items: int, loads: int, kinds: OperandMasks, is_even: bool) -> Spec:
    """Return the kernel for operands in rows; is_even: rows have one dimension."""
    counts = len(applied.outputs), len(applied.inputs)
    policy = _policy("TransformPolicy", BLOCK_THREADS, loads, items)
    shape = [policy, _policy("RowKinds", *kinds), f"gpualgo::{layout_type(is_even)}"]
    return _spec("rows.cuh", "rows", shape, row_operands(*counts, is_even), applied)


def transposed_spec(applied: Applied, items: int, turned: int, packed: int, is_even: bool) -> Spec:
    """Return the kernel for transposed inputs, given as bit mask `turned`.

    `packed` is a bit mask of the other inputs that are loaded in packs; is_even: the batch has one
    dimension.
    """
    counts = len(applied.outputs), len(applied.inputs)
    policy = _policy("TurnedPolicy", BLOCK_THREADS, items, SQUARES_IN_FLIGHT)
    kinds = _policy("TurnedKinds", turned, packed)
    shape = [policy, kinds, f"gpualgo::{layout_type(is_even)}"]
    return _spec("turned.cuh", "turned", shape, transposed_operands(*counts, is_even), applied)


def _policy(name: str, *values: int) -> str:
    return f"gpualgo::{name}<{', '.join(map(str, values))}>"


def _spec(
    header: str, name: str, shape: Sequence[str], params: Parameters, applied: Applied,
    operands: Sequence[Element] = (),
) -> Spec:  # fmt: skip
    op, arguments, result, _ = applied
    types = ", ".join(map(records.cpp_name, operands or (result, *applied.inputs)))
    expression = (
        f"gpualgo::transform_{name}_kernel<{', '.join(shape)}, "
        f"{functor(op, applied.inputs, result)}, {types}>"
    )
    header = f"transform/{header}"
    if build.is_functor(op, arguments, result):
        return Spec(header, expression, params)
    return Spec(header, expression, params, op, arguments, result)
