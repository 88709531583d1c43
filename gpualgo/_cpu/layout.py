"""Strided arrays as runs of elements: merged dimensions, and packing of ranges of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.kernels import get_entry
from gpualgo._cpu.memory import address as address

Dims = Sequence[tuple[int, ...]]
"""Dimensions, outermost first: (length, stride of each array in bytes, ...)."""


def merge(dims: Dims) -> list[tuple[int, ...]]:
    """Drop dimensions of length 1 and merge neighbours that are contiguous in every array."""
    merged: list[tuple[int, ...]] = []
    for dim in dims:
        if dim[0] == 1:
            continue
        length, *strides = dim
        if merged and all(
            outer == inner * length for outer, inner in zip(merged[-1][1:], strides, strict=True)
        ):
            merged[-1] = (merged[-1][0] * length, *strides)
        else:
            merged.append(dim)
    return merged


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


def packer(itemsize: int) -> int:
    """Return the address of a function that copies between a strided array and a dense buffer.

    ``f(dense, strided, start, count, ndim, lengths, strides, packing)`` copies elements start,
    start + 1, ... in C order. It is compiled once for each element size. Kernels of all dtypes and
    operators call it by address, so they contain no code for layouts.
    """

    def write() -> Callable[..., None]:
        from gpualgo._cpu.packing import pack_kernel

        return pack_kernel(itemsize)

    return get_entry(("packer", itemsize), write)


def counter() -> int:
    """Return the address of a packer for index inputs: it writes indices to the buffer."""

    def write() -> Callable[..., None]:
        from gpualgo._cpu.packing import count_kernel

        return count_kernel(records.ORIGIN)

    return get_entry(("counter",), write)


def converter(source: np.dtype[Any], target: np.dtype[Any]) -> int:
    """Return the address of ``f(converted, numbers, count)``; 0 if no conversion is needed."""
    if source == target:
        return 0

    def write() -> Callable[..., None]:
        from gpualgo._cpu.compile_operator import cast
        from gpualgo._cpu.packing import convert_kernel, storage

        return convert_kernel(cast(source, target), storage(source), storage(target))

    return get_entry(("converter", source, target), write)


class ScratchLayout:
    def __init__(self) -> None:
        self.size = 0

    def take(self, num_bytes: int) -> int:
        start = self.size
        self.size += -(-num_bytes // 64) * 64
        return start


def field_arguments(
    start: int, source: np.dtype[Any], target: np.dtype[Any], is_direct: bool, count: int,
    room: ScratchLayout, apart: tuple[int, int] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return what a kernel needs to read one array's numbers by up to `count` at once.

    `apart`: for interleaved numbers, the packer's address and the offset of their copy.
    """
    size, convert = source.itemsize, converter(source, target)
    is_direct = is_direct and not records.is_position(source)
    pack = counter() if records.is_position(source) else 0 if is_direct else packer(size)
    packed = apart or (() if is_direct else (pack, room.take(count * size)))
    converted = (convert, room.take(count * target.itemsize)) if convert else (0, 0)
    return start, size, is_direct, *(packed or (0, 0)), *converted


class Field(NamedTuple):
    """Offset of a number in its element, its size, and the offset of its separate copy."""

    offset: int
    size: int
    place: int
