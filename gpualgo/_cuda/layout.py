"""Shapes and strides as kernels read them (parts/layout.cuh)."""

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
    """Return what finds offsets: in any dimensions, or (is_even) in one."""
    return "EvenLayout" if is_even else "Layout"


def layout_of(operands: int, is_even: bool) -> Parameters:
    """Return Layout<operands> or (is_even) EvenLayout<operands>, whose value is dimensions."""
    return even_layout(operands) if is_even else layout(operands)


DIVISOR = Parameters("Divisor", divisor, value=I64, magic=U64, shift=I64)


@cache
def layout(operands: int) -> Parameters:
    """Return Layout<operands>, whose value is dimensions with so many strides each."""

    def numbers(dims: Dims) -> list[int]:
        if len(dims) > MAX_DIMS:
            raise ValueError(
                f"an array that keeps {len(dims)} separate dimensions once neighbours are joined "
                f"needs more than the {MAX_DIMS} that kernels hold; make it contiguous first"
            )
        padded = [*dims, *([(1, (0,) * operands)] * (MAX_DIMS - len(dims)))]
        found = [len(dims)]
        for extent, _ in padded:
            found += divisor(extent)
        for operand in range(operands):
            found += [strides[operand] for _, strides in padded]
        return found

    return Parameters(
        "Layout", numbers,
        num_dims=I64, extents=DIVISOR[MAX_DIMS], strides=I64[MAX_DIMS][operands],
    )  # fmt: skip


MAX_NESTED = (1 << 31) - 1  # of the inner dimension


def is_nested(dims: Dims) -> bool:
    """Return whether a NestedLayout takes these dimensions."""
    return len(dims) == 2 and dims[1][0] <= MAX_NESTED


@cache
def nested_layout(operands: int) -> Parameters:
    """Return NestedLayout<operands>, whose value is two dimensions, as of Layout."""

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
    """Return EvenLayout<operands>, whose value is at most one dimension, as of Layout."""

    def numbers(dims: Dims) -> tuple[int, ...]:
        return dims[0][1] if dims else (0,) * operands

    return Parameters("EvenLayout", numbers, strides=I64[operands])
