"""Ranks: keys as Python integers in the order of a sort, to compare a few keys on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpualgo._algorithms.radix_sort.words import Dtype
from gpualgo._base import dtypes


def rank_of(dtype: Dtype, descending: bool, bits: tuple[int, int]) -> Callable[[int], int]:
    """Return a function from a key's bits to its rank; only `bits` are compared."""
    first, end = bits
    width = 8 * dtype.itemsize
    mask = (1 << end - first) - 1
    sign, full = 1 << width - 1, (1 << width) - 1
    if dtypes.kind(dtype) != "f":
        flip = (sign if dtypes.kind(dtype) == "i" else 0) ^ (full if descending else 0)
        return lambda key: (key ^ flip) >> first & mask
    opposite = sign if descending else 0
    infinity = int(np.array(np.inf).astype(dtype).view(f"u{dtype.itemsize}"))

    def rank(key: int) -> int:
        size = key & ~sign
        if size > infinity:  # NaN comes last, whatever its sign
            return full
        if size == 0:  # zeros are equal
            return sign
        key ^= opposite
        return full ^ key if key & sign else key | sign

    return rank


def ranks_of(
    keys: Sequence[Dtype], ways: Sequence[bool], bits: tuple[int, int] | None
) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """Return the same for keys of several numbers; all bits are compared if `bits` is None."""
    ranks = [
        rank_of(dtype, is_descending, bits or (0, 8 * dtype.itemsize))
        for dtype, is_descending in zip(keys, ways, strict=True)
    ]
    return lambda numbers: tuple(rank(n) for rank, n in zip(ranks, numbers, strict=True))
