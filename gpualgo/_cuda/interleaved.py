"""Records whose numbers lie together in memory: loaded whole, where that can be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element, Interleaved
from gpualgo._cuda.templates import VECTOR_BYTES

MOST_BYTES = 64  # of one: what the distances in a plan's key tell (`alignment_of`)


def interleaved(
    source: Element, pointers: Sequence[int], strides: Iterable[Sequence[int]], step: int
) -> Interleaved | None:
    """Return how numbers at these pointers lie together in records `step` apart; None if not so.

    `strides`: of each dimension, every leaf's. At least half of a record's bytes are its numbers'.
    """
    if not isinstance(source, np.dtype) or source.names is None:
        return None
    sizes = [leaf.itemsize for leaf in records.memory_leaves(source)]
    if len(sizes) < len(pointers) or any(len(set(one)) > 1 for one in strides):
        return None
    start = min(pointers)
    offsets = tuple(pointer - start for pointer in pointers)
    end = max(offset + size for offset, size in zip(offsets, sizes, strict=True))
    if end != step or step > min(MOST_BYTES, 2 * sum(sizes)):
        return None
    return Interleaved(source, step, offsets)


def fitting(leaf: Element, unit: int) -> int:
    """Return how many neighbours one access may cover at multiples of `unit` bytes."""
    if not isinstance(leaf, Interleaved):
        return unit // records.step_of(leaf)
    most = 0
    while most < VECTOR_BYTES and unit % math.gcd(VECTOR_BYTES, max(1, 2 * most) * leaf.size) == 0:
        most = max(1, 2 * most)
    return most
