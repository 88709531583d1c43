"""Shapes and strides in the form that kernels read (parts/layout.cuh)."""

from __future__ import annotations

from functools import cache

from gpualgo._base.extents import MAX_DIMS, Dims
from gpualgo._cuda.parameters import I64, U64, Parameters


def divisor(value: int) -> tuple[int, int, int]:
    """Return (value, magic, shift) of layout.cuh's Divisor, exact for dividends below 2^63."""
    if value == 1:
        return 1, 0, 0
    bits = (value - 1).bit_length()
    return value, (1 << (63 + bits)) // value + 1, bits - 1


def layout_type(is_even: bool) -> str:
    """Return the C++ layout type: EvenLayout for one dimension (`is_even`), else Layout."""
    return "EvenLayout" if is_even else "Layout"


def layout_of(operands: int, is_even: bool) -> Parameters:
    """Return the description of Layout<operands>, or of EvenLayout<operands> with `is_even`."""
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
