"""Shapes and strides made canonical, and packed as the kernels read them (parts/layout.cuh)."""

from __future__ import annotations

import struct

from gpualgo._base.extents import MAX_DIMS, Dims


def divisor(value: int) -> tuple[int, int, int]:
    """Return (value, magic, shift) of layout.cuh's Divisor, exact for dividends below 2^63."""
    if value == 1:
        return 1, 0, 0
    bits = (value - 1).bit_length()
    return value, (1 << (63 + bits)) // value + 1, bits - 1


DIVISOR = "qQq"


def pack_layout(dims: Dims, operands: int) -> bytes:
    """Return a Layout<operands> as bytes."""
    if len(dims) > MAX_DIMS:
        raise ValueError(
            f"an array that keeps {len(dims)} separate dimensions once neighbours are joined "
            f"needs more than the {MAX_DIMS} that kernels hold; make it contiguous first"
        )
    padded = [*dims, *([(1, (0,) * operands)] * (MAX_DIMS - len(dims)))]
    parts = [struct.pack("<q", len(dims))]
    parts += [struct.pack("<" + DIVISOR, *divisor(extent)) for extent, _ in padded]
    for operand in range(operands):
        parts.append(struct.pack(f"<{MAX_DIMS}q", *(strides[operand] for _, strides in padded)))
    return b"".join(parts)
