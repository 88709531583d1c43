"""Numbers of several arrays that lie in turn, as a structured array's fields do.

Which array's numbers lie between which others' is known from addresses. Code that knows the
distances goes through such arrays once for all of them, and by vectors where the CPU can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.kernels import get_entry
from gpualgo._cpu.layout import Dims, Room

Dtype: TypeAlias = np.dtype[Any]
Strides: TypeAlias = tuple[int, ...]

MOST_OFFSETS = 16  # ways in which arrays lie that a problem keeps what it launches of
MAX_STEP = 64  # bytes from one element to the next: a cache line
_WORTH_BYTES = 1 << 17  # below that a function of its own, which is compiled, saves microseconds

Offsets: TypeAlias = tuple[tuple[int, int] | None, ...]
"""Of each array in a group the group's first array, and how far behind it this one begins."""


class Field(NamedTuple):
    """Where a number lies in an element, how large it is, and where such numbers go apart."""

    offset: int
    size: int
    place: int


class Group(NamedTuple):
    """Arrays whose numbers lie in turn, `step` bytes from one element to the next."""

    step: int
    members: tuple[int, ...]
    fields: tuple[Field, ...]

    @property
    def is_all(self) -> bool:
        """Whether no bytes lie between that are of none of the arrays."""
        ordered = sorted(self.fields)
        ends = [field.offset + field.size for field in ordered]
        follow = all(end == field.offset for end, field in zip(ends, ordered[1:], strict=False))
        return follow and ends[-1] - ordered[0].offset == abs(self.step)


def may_be(strides: Sequence[Strides], dtypes: Sequence[Dtype], size: int) -> bool:
    """Return whether some of such arrays may lie in turn, which depends on their addresses."""
    return bool(strides) and any(
        _step_of(by, dtype, size) and by in strides[k + 1 :]
        for k, (by, dtype) in enumerate(zip(strides, dtypes, strict=True))
    )


def offsets_of(
    starts: Sequence[int], strides: Sequence[Strides], dtypes: Sequence[Dtype], size: int
) -> Offsets | None:
    """Return which of some arrays of `size` elements lie in turn; None: none do.

    Strides are of each array, in the same dimensions.
    """
    found: list[tuple[int, int] | None] = [None] * len(starts)
    for first, (at, by, dtype) in enumerate(zip(starts, strides, dtypes, strict=True)):
        step = _step_of(by, dtype, size)
        if not step or found[first] is not None:
            continue
        group = [
            k for k in range(first, len(starts))
            if strides[k] == by and -step < starts[k] - at < step and found[k] is None
            and not records.is_position(dtypes[k])
        ]  # fmt: skip
        low = min(starts[k] for k in group)
        group = [k for k in group if starts[k] + dtypes[k].itemsize - low <= step]
        if len(group) > 1 and group[0] == first:
            for k in group:
                found[k] = first, starts[k] - at
    return tuple(found) if any(found) else None


def _step_of(strides: Strides, dtype: Dtype, size: int) -> int:
    """Return from how far apart elements lie to be split; 0 if these are not."""
    step = min(map(abs, strides), default=0)
    is_worth = dtype.itemsize < step <= MAX_STEP and size * step >= _WORTH_BYTES
    return step if is_worth and not records.is_position(dtype) else 0


def groups_of(
    offsets: Offsets | None, steps: Sequence[int], numbers: Sequence[Dtype], places: Sequence[int]
) -> list[Group]:
    """Return the groups, where elements are `steps` apart in the dimension that is gone along.

    `places`: where numbers of each array go apart.
    """
    behind: dict[int, dict[int, int]] = {}
    for k, pair in enumerate(offsets or ()):
        if pair is not None:
            behind.setdefault(pair[0], {})[k] = pair[1]
    return [
        Group(steps[first], tuple(group), tuple([
            Field(offset, numbers[k].itemsize, places[k] - places[first])
            for k, offset in group.items()
        ]))
        for first, group in behind.items() if abs(steps[first]) <= MAX_STEP
    ]  # fmt: skip


def together(
    offsets: Offsets | None, inner: Dims, numbers: Sequence[Dtype], capacity: int, room: Room
) -> dict[int, tuple[int, int]]:
    """Return who packs up to `capacity` numbers of each array of a group, and where: see `leaf`.

    `inner`: the dimension that is gone along, if there is any.
    """
    if offsets is None or not inner:
        return {}
    places = [
        room.take(capacity * number.itemsize) if pair else 0
        for pair, number in zip(offsets, numbers, strict=True)
    ]
    found = {}
    for group in groups_of(offsets, inner[0][1:], numbers, places):
        for k in group.members:
            found[k] = 0, places[k]
        found[group.members[0]] = splitter(group), places[group.members[0]]
    return found


def splitter(group: Group) -> int:
    """Return the address of what a packer does, for all arrays of a group at once."""
    return _entry("splitter", group)


def joiner(group: Group) -> int:
    """Return the address of what brings numbers that lie apart to where they lie in turn.

    The group `is_all` of its elements: bytes between would be written, too.
    """
    return _entry("joiner", group)


def _entry(kind: str, group: Group) -> int:
    def write() -> Callable[..., None]:
        from gpualgo._cpu.interleaved_kernel import interleaved_kernel

        return interleaved_kernel(group.step, group.fields, kind == "joiner")

    return get_entry((kind, group.step, *map(tuple, group.fields)), write)
