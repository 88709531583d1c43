"""How a reduction on the CPU goes through its elements: along them, or columns abreast."""

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

_SHORT = 64  # with fewer elements than this to fold, many outputs are folded abreast
_WIDE = 16  # so many outputs side by side in memory are worth folding abreast
_WORTH = 8  # a first pass that leaves less than one partial in so many elements pays


class Layout(NamedTuple):
    """How the elements lie that one pass reads: of this dtype, in these dimensions.

    A dimension is (length, stride of each number of x, of out if it is kept).
    """

    dtype: Element
    kept: tuple[tuple[int, ...], ...]
    reduced: tuple[tuple[int, ...], ...]
    column: bool  # the last kept dimension is folded abreast
    offsets: Offsets | None = None  # of numbers that lie in turn

    @property
    def length(self) -> int:
        """How many elements are folded into one output."""
        return prod(dim[0] for dim in self.reduced)


@lru_cache(256)
def layout_of(
    shape: tuple[int, ...], strides: Strides, out_strides: Strides, axes: tuple[int, ...],
    is_commutative: bool, dtype: Element,
) -> tuple[list[int], Layout]:  # fmt: skip
    """Return by how much each number's address is shifted, and the layout from there."""
    count, shifts = len(strides), [0] * len(strides)
    dims = list(zip(shape, *strides, strict=True))
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept = [(*dims[axis], *steps) for axis, *steps in zip(kept_axes, *out_strides, strict=True)]
    reduced = [dims[axis] for axis in axes]
    if is_commutative:
        # Any order is right: take the one in which memory lies.
        for i, (length, *steps) in enumerate(reduced):
            if sum(steps) < 0:
                shifts = [at + (length - 1) * by for at, by in zip(shifts, steps, strict=True)]
                reduced[i] = (length, *(-by for by in steps))
        reduced = sorted(reduced, key=lambda dim: -step_of(dim, count))
    outer, inner = merge(sorted(kept, key=lambda dim: -step_of(dim, count))), merge(reduced)
    column = _column(outer, inner, dtype)
    if column is not None:
        outer.append(outer.pop(column))
    return shifts, Layout(dtype, tuple(outer), tuple(inner), column is not None)


@lru_cache(256)
def inner_axes(
    shape: tuple[int, ...], strides: Strides, dtype: Element, axes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the reduced axes inside of the contiguous one, along which reading would be slow."""
    length = 1
    for place in range(len(axes) - 1, -1, -1):
        n = shape[axes[place]]
        if _is_near([steps[axes[place]] for steps in strides], dtype) and n >= _WIDE:
            return axes[place + 1 :] if length >= _WORTH else ()
        length *= n
    return ()


def step_of(dim: Sequence[int], count: int) -> int:
    """Return how far apart neighbours lie in a dimension, in all of the element's numbers."""
    return sum(map(abs, dim[1 : 1 + count]))


def _is_near(strides: Sequence[int], dtype: Element) -> bool:
    """Return whether neighbours follow one another, as far as an element's numbers can."""
    if not records.is_record(dtype):
        return strides[0] == dtype.itemsize
    # The numbers of an element may lie side by side, and some be the same for all elements.
    widest = dtype.itemsize
    if isinstance(dtype, records.Computed):
        widest = max(number.itemsize for number in dtype.numbers)
    return all(0 <= stride <= widest for stride in strides) and any(strides)


def _column(kept: Dims, reduced: Dims, dtype: Element) -> int | None:
    """Return the kept dimension to fold abreast, or None to fold along the reduced ones."""
    length, count = prod(dim[0] for dim in reduced), len(records.leaves(dtype))
    if not kept or (length >= _SHORT and _is_near(reduced[-1][1:], dtype)):
        return None
    for i, dim in enumerate(kept):
        if _is_near(dim[1 : 1 + count], dtype) and dim[0] >= _WIDE:
            return i
    longest = max(range(len(kept)), key=lambda i: kept[i][0])
    return longest if length < _SHORT <= kept[longest][0] else None
