"""Shapes and byte strides, by arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence


def dense_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the byte strides of an array in C order without gaps."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return the first byte and the one past the last, relative to the first element."""
    low = high = 0
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return 0, 0
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high + itemsize


def without_axes(strides: tuple[int, ...], axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return the strides of a result of `ndim` axes, of which those reduced may be kept."""
    if len(strides) == ndim:
        return strides
    return tuple(stride for i, stride in enumerate(strides) if i not in axes)


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
