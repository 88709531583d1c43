"""Layout of a CPU reduction: along the reduced elements, or across neighbouring columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cpu.interleaved import Offsets
from gpualgo._cpu.layout import Dims, merge

Strides: TypeAlias = tuple[tuple[int, ...], ...]

_SHORT = 64  # up to this many reduced elements, many outputs are folded together as columns
_WIDE = 16  # minimum number of neighbouring outputs that are folded as columns
_LEAST_INNER = 8  # elements per partial from which a separate first pass pays


class Layout(NamedTuple):
    """Elements that one pass reads: their dtype and dimensions.

    A dimension is (length, stride of each field of x, then of out if the dimension is kept).
    """

    dtype: Element
    kept: tuple[tuple[int, ...], ...]
    reduced: tuple[tuple[int, ...], ...]
    column: bool  # the last kept dimension is folded as columns
    offsets: Offsets | None = None  # of interleaved fields

    @property
    def length(self) -> int:
        """Number of elements folded into one output."""
        return prod(dim[0] for dim in self.reduced)


@lru_cache(256)
def layout_of(
    shape: tuple[int, ...], strides: Strides, out_strides: Strides, axes: tuple[int, ...],
    is_commutative: bool, dtype: Element,
) -> tuple[list[int], Layout]:  # fmt: skip
    """Return the offset to add to each field's address, and the layout from there."""
    count, shifts = len(strides), [0] * len(strides)
    dims = list(zip(shape, *strides, strict=True))
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept = [(*dims[axis], *steps) for axis, *steps in zip(kept_axes, *out_strides, strict=True)]
    reduced = [dims[axis] for axis in axes]
    if is_commutative:
        # Any order is correct: use the memory order.
        for i, (length, *steps) in enumerate(reduced):
            if sum(steps) < 0:
                shifts = [s + (length - 1) * step for s, step in zip(shifts, steps, strict=True)]
                reduced[i] = (length, *(-step for step in steps))
        reduced = sorted(reduced, key=lambda dim: -step_of(dim, count))
    outer, inner = merge(sorted(kept, key=lambda dim: -step_of(dim, count))), merge(reduced)
    column = _column_dim(outer, inner, dtype)
    if column is not None:
        outer.append(outer.pop(column))
    return shifts, Layout(dtype, tuple(outer), tuple(inner), column is not None)


@lru_cache(256)
def inner_axes(
    shape: tuple[int, ...], strides: Strides, dtype: Element, axes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the reduced axes inside the contiguous one, if reducing them first is faster."""
    length = 1
    for i in range(len(axes) - 1, -1, -1):
        n = shape[axes[i]]
        if _is_near([steps[axes[i]] for steps in strides], dtype) and n >= _WIDE:
            return axes[i + 1 :] if length >= _LEAST_INNER else ()
        length *= n
    return ()


def step_of(dim: Sequence[int], count: int) -> int:
    """Return the distance of neighbours in a dimension, summed over an element's fields."""
    return sum(map(abs, dim[1 : 1 + count]))


def _is_near(strides: Sequence[int], dtype: Element) -> bool:
    """Return whether neighbours are contiguous, or as close as an element's fields allow."""
    if not records.is_record(dtype):
        return strides[0] == dtype.itemsize
    # Fields may be interleaved, and some may be broadcast.
    widest = dtype.itemsize
    if isinstance(dtype, records.Computed):
        widest = max(number.itemsize for number in dtype.numbers)
    return all(0 <= stride <= widest for stride in strides) and any(strides)


def _column_dim(kept: Dims, reduced: Dims, dtype: Element) -> int | None:
    """Return the kept dimension to fold as columns, or None to fold along the reduced ones."""
    length, count = prod(dim[0] for dim in reduced), len(records.leaves(dtype))
    if not kept or (length >= _SHORT and _is_near(reduced[-1][1:], dtype)):
        return None
    for i, dim in enumerate(kept):
        if _is_near(dim[1 : 1 + count], dtype) and dim[0] >= _WIDE:
            return i
    longest = max(range(len(kept)), key=lambda i: kept[i][0])
    return longest if length < _SHORT <= kept[longest][0] else None
