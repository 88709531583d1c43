"""Exact cuts of sorted runs: where each has to be cut so that all first parts are the least.

Elements are ordered by key, equal ones by the number of their run and then by their place in it:
the order of a stable sort of all runs, one after another. Where the runs lie does not matter: they
are asked for keys and for counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Read: TypeAlias = Callable[[int, int], Any]
"""A run and a place in it: its key there, as something that `<` compares."""
Count: TypeAlias = Callable[[int, Any, bool, int, int], int]
"""A run, a key, whether equal keys count, and two places: how many elements of the run are less, if
that is known to be between the two."""


class _Pivot(NamedTuple):
    run: int
    place: int
    key: Any


def cuts(
    lengths: Sequence[int], ranks: Sequence[int], read: Read, count: Count | None = None
) -> list[list[int]]:
    """Return for each rank how many elements of each run are among so many least ones.

    `ranks` do not fall. `count` finds by bisection if none is given; who has runs elsewhere counts
    there. A rank takes some log(n) rounds of one key and a count in each run.
    """
    count = _bisecting(read) if count is None else count
    found: list[list[int]] = []
    low = [0] * len(lengths)
    for rank in ranks:
        if not sum(low) <= rank <= sum(lengths):
            raise ValueError(
                f"ranks must not fall and lie between 0 and {sum(lengths)}, got {rank}; sort them"
            )
        low = _cut(low, list(lengths), rank, read, count)
        found.append(low)
    return found


def _cut(low: list[int], high: list[int], rank: int, read: Read, count: Count) -> list[int]:
    """Return the cut of a rank, which lies between two others.

    What lies below `low` is known to be among the least, what lies from `high` on not to be. Each
    round decides about a pivot at least; about half of what is left, as the pivot is a median.
    """
    low = list(low)
    while low != high:
        missing = rank - sum(low)
        if missing in (0, sum(high) - sum(low)):
            return low if missing == 0 else high
        pivot = _median(low, high, read)
        before = [
            count(run, pivot.key, run < pivot.run, start, end)
            if start < end and run != pivot.run  # whose own equal keys may lie before `start`
            else start
            for run, (start, end) in enumerate(zip(low, high, strict=True))
        ]
        before[pivot.run] = pivot.place
        if sum(before) < rank:
            low, low[pivot.run] = before, pivot.place + 1
        else:
            high = before
    return low


def _median(low: list[int], high: list[int], read: Read) -> _Pivot:
    """Return the median of the middles of what is left of runs, weighted by how much that is."""
    middles = [
        _Pivot(run, (start + end) // 2, read(run, (start + end) // 2))
        for run, (start, end) in enumerate(zip(low, high, strict=True))
        if start < end
    ]
    middles.sort(key=lambda pivot: (pivot.key, pivot.run))
    half = sum(high) - sum(low)
    for pivot in middles:
        half -= 2 * (high[pivot.run] - low[pivot.run])
        if half <= 0:
            return pivot
    return middles[-1]


def _bisecting(read: Read) -> Count:
    """Return the count of a run's elements by looking at some of them."""

    def count(run: int, key: Any, has_equal: bool, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            there = read(run, middle)
            if there < key or (has_equal and not key < there):
                low = middle + 1
            else:
                high = middle
        return low

    return count


def narrowed(
    lengths: Sequence[int], rank: int, width: int, order: np.ndarray[Any, Any]
) -> tuple[list[int], list[int]]:
    """Return where each run is cut for a rank at least and at most, as samples tell.

    Of each run the last of every `width` elements is a sample; `order` is the stable order of all
    samples, run after run. Up to a sample with which c are at it or before there are c · width
    elements, and fewer than width more in each run.
    """
    counts = [length // width for length in lengths]
    runs = np.repeat(np.arange(len(lengths)), counts)[order]
    below = max(0, (rank - len(lengths) * (width - 1)) // width)
    low = np.bincount(runs[:below], minlength=len(lengths)) * width
    above = -(-rank // width)
    if above > len(runs):
        return low.tolist(), list(lengths)
    high = np.bincount(runs[:above], minlength=len(lengths)) * width + (width - 1)
    return low.tolist(), np.minimum(high, lengths).tolist()


def cut_in_order(lengths: Sequence[int], rank: int, order: np.ndarray[Any, Any]) -> list[int]:
    """Return how many elements of each run are among the least ones: `order` is that of all."""
    runs = np.repeat(np.arange(len(lengths)), lengths)[order[:rank]]
    found: list[int] = np.bincount(runs, minlength=len(lengths)).tolist()
    return found
