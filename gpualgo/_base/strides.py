"""Arithmetic on shapes and byte strides, and NumPy's rules for reshaping."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any


def dense_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def order_of(shape: Sequence[int], layouts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the axis order in memory, outermost first, that arrays of one shape have in common.

    Empty if it is C order, or if the arrays differ. Broadcast arrays (stride 0) are ignored.
    """
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    common = axes
    is_first = True
    for strides in layouts:
        if any(strides[axis] == 0 for axis in axes):
            continue
        order = sorted(axes, key=lambda axis: -abs(strides[axis]))
        if not is_first and order != common:
            return ()
        common, is_first = order, False
    if common == axes:
        return ()
    return (*(axis for axis, extent in enumerate(shape) if extent <= 1), *common)


def ordered(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the extents in an order of axes; an empty order is C order."""
    return tuple(shape[axis] for axis in order) if order else tuple(shape)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def ordered_strides(shape: Sequence[int], itemsize: int, order: Sequence[int]) -> tuple[int, ...]:
    """Return the byte strides of an array without gaps with an order of axes in memory."""
    strides = dense_strides(ordered(shape, order), itemsize)
    return tuple(strides[i] for i in inverse(order)) if order else strides


def bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
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
    """Return the strides of a result with `ndim` axes; `strides` may include the reduced axes."""
    if len(strides) == ndim:
        return strides
    return tuple(stride for i, stride in enumerate(strides) if i not in axes)


def squeezed(results: Sequence[Any], axes: Sequence[int], ndim: int) -> list[Any]:
    """Return NumPy arrays as views with `ndim` axes, without the reduced axes if they have them."""
    if len(results[0].shape) == ndim:
        return list(results)
    return [result.squeeze(axes) for result in results]


MAX_DIMS = 12


Dims = list[tuple[int, tuple[int, ...]]]  # (extent, a stride in bytes for each operand)


def merge(dims: Sequence[tuple[int, tuple[int, ...]]]) -> Dims:
    """Drop axes of extent 1 and merge adjacent axes that are contiguous in every operand."""
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


Ints = tuple[int, ...]


def full_shape(shape: Any, size: int) -> Ints:
    """Return the shape for `size` elements, with a -1 in it replaced."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    extents = [operator.index(extent) for extent in given]
    unknown = extents.count(-1)
    known = math.prod(extent for extent in extents if extent != -1)
    if unknown == 1 and known > 0 and size % known == 0:
        extents[extents.index(-1)] = size // known
    elif unknown or min(extents, default=0) < 0 or known != size:
        raise ValueError(
            f"reshape: {size} elements cannot have shape {tuple(extents)}; pass one of as many"
        )
    return tuple(extents)


def reshape(shape: Ints, strides: Ints, new: Ints, itemsize: int) -> Ints:
    if 0 in new:
        return dense_strides(new, itemsize)
    runs = [
        (extent, stride)
        for extent, (stride,) in merge([(n, (s,)) for n, s in zip(shape, strides, strict=True)])
    ]
    remaining, step = 1, itemsize
    result = []
    for extent in reversed(new):
        if remaining == 1 and extent != 1:
            remaining, step = runs.pop()
        if remaining % extent:
            raise ValueError(
                f"reshape: the shape {shape} with strides {strides} cannot be seen as {new} "
                "without a copy; copy the array to contiguous memory first"
            )
        result.append(step)
        remaining //= extent
        step *= extent
    return tuple(reversed(result))
