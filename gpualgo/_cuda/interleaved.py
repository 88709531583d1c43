"""Records whose numbers lie together in memory: loaded whole, where that can be."""

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
    """Return how numbers at these pointers lie together in records `step` apart; None if not so.

    `strides`: of each dimension, every leaf's. At least half of a record's bytes are its numbers'.
    """
    if not isinstance(source, np.dtype) or source.names is None:
        return None
    sizes = [leaf.itemsize for leaf in records.memory_leaves(source)]
    if len(sizes) < len(pointers) or any(len(set(one)) > 1 for one in strides):
        return None
    found = records.in_one_piece(pointers, sizes)
    if found is None or found[1] != step:
        return None
    return Interleaved(source, step, found[0])


def fitting(leaf: Element, unit: int) -> int:
    """Return how many neighbours one access may cover at multiples of `unit` bytes."""
    if not isinstance(leaf, Interleaved):
        return unit // records.step_of(leaf)
    most = 0
    while most < VECTOR_BYTES and unit % math.gcd(VECTOR_BYTES, max(1, 2 * most) * leaf.size) == 0:
        most = max(1, 2 * most)
    return most
