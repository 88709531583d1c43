"""Arrays that are fields of the same records in memory: kernels load whole records if possible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element, Interleaved
from gpualgo._cuda.templates import VECTOR_BYTES


def interleaved(
    source: Element, pointers: Sequence[int], strides: Iterable[Sequence[int]], step: int
) -> Interleaved | None:
    """Return the record layout of fields at these pointers; None if they do not share records.

    `strides`: for each dimension the strides of all fields. `step`: size of a record in bytes. The
    fields must cover at least half of the record.
    """
    if not isinstance(source, np.dtype) or source.names is None:
        return None
    sizes = [leaf.itemsize for leaf in records.memory_leaves(source)]
    if len(sizes) < len(pointers) or any(len(set(axis_strides)) > 1 for axis_strides in strides):
        return None
    layout = records.in_one_piece(pointers, sizes)
    if layout is None or layout[1] != step:
        return None
    return Interleaved(source, step, layout[0])


def fitting(leaf: Element, unit: int) -> int:
    """Return how many neighbouring elements one access may load at multiples of `unit` bytes."""
    if not isinstance(leaf, Interleaved):
        return unit // records.step_of(leaf)
    most = 0
    while most < VECTOR_BYTES and unit % math.gcd(VECTOR_BYTES, max(1, 2 * most) * leaf.size) == 0:
        most = max(1, 2 * most)
    return most
