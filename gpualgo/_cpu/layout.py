"""Strided arrays as runs of elements: merged dimensions, packed ranges, interleaved numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.kernels import get_entry, named
from gpualgo._cpu.memory import address as address
from gpualgo._cpu.plan import Field

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
    return get_entry(*named("_cpu.packing", "pack_kernel", itemsize))


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


# --- Arrays whose numbers are interleaved in memory, as the fields of a structured array are.
#
# The arrays' addresses show how they are interleaved. Code compiled for these distances reads all
# such arrays in one pass, with vector instructions where the CPU has them.

Dtype: TypeAlias = np.dtype[Any]
Strides: TypeAlias = tuple[int, ...]

MOST_OFFSETS = 16  # sets of offsets for which a problem caches its launches
MAX_STEP = 64  # bytes from one element to the next: a cache line
_WORTH_BYTES = 1 << 17  # below, a specialised function saves only microseconds

Offsets: TypeAlias = tuple[tuple[int, int] | None, ...]
"""For each array in a group: the group's first array, and the distance from it in bytes."""


class Group(NamedTuple):
    """Arrays whose numbers are interleaved, `step` bytes from one element to the next."""

    step: int
    members: tuple[int, ...]
    fields: tuple[Field, ...]

    @property
    def is_all(self) -> bool:
        """Whether the arrays' numbers cover all bytes of an element."""
        ordered = sorted(self.fields)
        ends = [field.offset + field.size for field in ordered]
        follow = all(end == field.offset for end, field in zip(ends, ordered[1:], strict=False))
        return follow and ends[-1] - ordered[0].offset == abs(self.step)


def may_be_interleaved(strides: Sequence[Strides], dtypes: Sequence[Dtype], size: int) -> bool:
    """Return whether arrays with such strides may be interleaved, depending on their addresses."""
    return bool(strides) and any(
        _step_of(stride, dtype, size) and stride in strides[k + 1 :]
        for k, (stride, dtype) in enumerate(zip(strides, dtypes, strict=True))
    )


def offsets_of(
    starts: Sequence[int], strides: Sequence[Strides], dtypes: Sequence[Dtype], size: int
) -> Offsets | None:
    """Return which of some arrays of `size` elements are interleaved; None if none are.

    All arrays' strides are over the same dimensions.
    """
    offsets: list[tuple[int, int] | None] = [None] * len(starts)
    for first, (start, stride, dtype) in enumerate(zip(starts, strides, dtypes, strict=True)):
        step = _step_of(stride, dtype, size)
        if not step or offsets[first] is not None:
            continue
        group = [
            k for k in range(first, len(starts))
            if strides[k] == stride and -step < starts[k] - start < step and offsets[k] is None
            and not records.is_position(dtypes[k])
        ]  # fmt: skip
        lowest = min(starts[k] for k in group)
        group = [k for k in group if starts[k] + dtypes[k].itemsize - lowest <= step]
        if len(group) > 1 and group[0] == first:
            for k in group:
                offsets[k] = first, starts[k] - start
    return tuple(offsets) if any(offsets) else None


def _step_of(strides: Strides, dtype: Dtype, size: int) -> int:
    """Return the distance of elements worth splitting in bytes; 0 if these are not."""
    step = min(map(abs, strides), default=0)
    is_worth = dtype.itemsize < step <= MAX_STEP and size * step >= _WORTH_BYTES
    return step if is_worth and not records.is_position(dtype) else 0


def groups_of(
    offsets: Offsets | None, steps: Sequence[int], numbers: Sequence[Dtype], places: Sequence[int]
) -> list[Group]:
    """Return the groups of interleaved arrays.

    `steps`: each array's stride in the dimension that is read along. `places`: the offset of each
    array's separate copy.
    """
    distances: dict[int, dict[int, int]] = {}
    for k, entry in enumerate(offsets or ()):
        if entry is not None:
            distances.setdefault(entry[0], {})[k] = entry[1]
    return [
        Group(steps[first], tuple(group), tuple([
            Field(offset, numbers[k].itemsize, places[k] - places[first])
            for k, offset in group.items()
        ]))
        for first, group in distances.items() if abs(steps[first]) <= MAX_STEP
    ]  # fmt: skip


def group_packers(
    offsets: Offsets | None, inner: Dims, numbers: Sequence[Dtype], capacity: int,
    room: ScratchLayout,
) -> dict[int, tuple[int, int]]:  # fmt: skip
    """Return each grouped array's packer and the offset of its copy in scratch memory; see `leaf`.

    `inner`: the dimension that is read along, if any. `capacity`: the most elements of a copy.
    """
    if offsets is None or not inner:
        return {}
    copies = [
        room.take(capacity * number.itemsize) if pair else 0
        for pair, number in zip(offsets, numbers, strict=True)
    ]
    packers = {}
    for group in groups_of(offsets, inner[0][1:], numbers, copies):
        for k in group.members:
            packers[k] = 0, copies[k]
        packers[group.members[0]] = splitter(group), copies[group.members[0]]
    return packers


def splitter(group: Group) -> int:
    """Return the address of a function like `layout.packer`'s that packs all arrays of a group."""
    return _mover(group, False)


def joiner(group: Group) -> int:
    """Return the address of a function that interleaves separate copies of numbers again.

    The group must be `is_all`: the function would overwrite bytes between its numbers.
    """
    return _mover(group, True)


def _mover(group: Group, is_joined: bool) -> int:
    options = group.step, group.fields, is_joined
    return get_entry(*named("_cpu.packing", "interleaved_kernel", *options))
