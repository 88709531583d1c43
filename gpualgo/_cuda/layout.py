"""Shapes and strides made canonical, and packed as the kernels read them (layout.cuh)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAX_DIMS = 12

Dims = list[tuple[int, tuple[int, ...]]]  # (extent, a stride in bytes for each operand)


def merge(dims: Sequence[tuple[int, tuple[int, ...]]]) -> Dims:
    """Drop extents of one and join neighbours that every operand walks as one."""
    merged: Dims = []
    for extent, strides in dims:
        if extent == 1:
            continue
        if merged:
            outer_extent, outer_strides = merged[-1]
            if all(o == s * extent for o, s in zip(outer_strides, strides, strict=True)):
                merged[-1] = (outer_extent * extent, strides)
                continue
        merged.append((extent, strides))
    return merged


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
