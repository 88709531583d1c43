"""Strided arrays as runs of elements: merged dimensions, packed ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._base import records, strides
from gpualgo._cpu.kernels import get_entry, named
from gpualgo._cpu.memory import address as address

Dims = Sequence[tuple[int, ...]]
"""Dimensions, outermost first: (length, stride of each array in bytes, ...)."""

_MAX_STEP = 24  # bytes from one element to the next up to which vectors are faster
_WORTH_BYTES = 1 << 17  # of an array; below, a function for its step saves only microseconds


def merge(dims: Dims) -> list[tuple[int, ...]]:
    """Return what `strides.merge` does, for dimensions of this form."""
    merged = strides.merge([(length, tuple(steps)) for length, *steps in dims])
    return [(length, *steps) for length, steps in merged]


def is_dense(dims: Dims, which: int, itemsize: int) -> bool:
    """Return whether the elements of array number `which` are contiguous."""
    for dim in reversed(dims):
        if dim[1 + which] != itemsize:
            return False
        itemsize *= dim[0]
    return True


def table(*lists: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the concatenated lists as the table of integers that kernels read."""
    return np.array([number for numbers in lists for number in numbers], np.int64)


def packer(itemsize: int, step: int, size: int) -> int:
    """Return the address of a function that copies between a strided array and a dense buffer.

    ``f(dense, strided, start, count, ndim, lengths, strides, packing)`` copies elements start,
    start + 1, ... in C order. Kernels of all dtypes and operators call it by address, so they
    contain no code for layouts. It is compiled once for each element size and, for arrays of many
    elements, for a small `step` from one element to the next in the innermost dimension.
    """
    is_worth = itemsize < step <= _MAX_STEP and step * size >= _WORTH_BYTES
    return get_entry(*named("_cpu.packing", "pack_kernel", itemsize, step if is_worth else 0))


def counter() -> int:
    """Return the address of a packer for index inputs: it writes indices to the buffer."""
    return get_entry(*named("_cpu.packing", "count_kernel", records.ORIGIN))


def converter(source: np.dtype[Any], target: np.dtype[Any]) -> int:
    """Return the address of ``f(converted, numbers, count)``; 0 if no conversion is needed."""
    if source == target:
        return 0
    return get_entry(*named("_cpu.direct_kernels", "convert_kernel", source, target))


class ScratchLayout:
    def __init__(self) -> None:
        self.size = 0

    def take(self, num_bytes: int) -> int:
        start = self.size
        self.size += -(-num_bytes // 64) * 64
        return start


def field_arguments(
    source: np.dtype[Any], target: np.dtype[Any], dims: Dims, which: int, size: int, count: int,
    room: ScratchLayout, *, is_copied: bool = False,
) -> tuple[int, ...]:  # fmt: skip
    """Return what a kernel needs to read the numbers of array `which` by up to `count` at once.

    `dims`: the dimensions that are read along; `size`: the number of elements in all. Dense numbers
    are read in place unless `is_copied`. The first entry is the slot of the address.
    """
    itemsize, convert = source.itemsize, converter(source, target)
    if records.is_position(source):
        packed = False, counter(), room.take(count * itemsize)
    elif not is_copied and is_dense(dims, which, itemsize):
        packed = True, 0, 0
    else:
        step = dims[-1][1 + which] if dims else 0
        packed = False, packer(itemsize, step, size), room.take(count * itemsize)
    converted = (convert, room.take(count * target.itemsize)) if convert else (0, 0)
    return 0, itemsize, *packed, *converted
