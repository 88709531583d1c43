"""Multiway selection in sorted runs: how many elements of each run are among the least `rank`.

Elements are ordered by key, equal keys by run and then by index: the order of a stable sort of all
concatenated runs. The runs are accessed through callbacks that return keys and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Read: TypeAlias = Callable[[int, int], Any]
"""(run, index) -> the key at that index, comparable with `<`."""
Count: TypeAlias = Callable[[int, Any, bool, int, int], int]
"""(run, key, has_equal, low, high) -> how many elements of the run are less than the key (or equal,
if `has_equal`), where the result is known to lie between `low` and `high`."""


class _Pivot(NamedTuple):
    run: int
    place: int
    key: Any


def cuts(
    lengths: Sequence[int], ranks: Sequence[int], read: Read, count: Count | None = None
) -> list[list[int]]:
    """Return for each rank how many elements of each run are among the `rank` least ones.

    `ranks` must not decrease. The default `count` bisects with `read`; distributed runs pass their
    own. A rank takes about log(n) rounds of a read and a count in each run.
    """
    count = _bisecting(read) if count is None else count
    results: list[list[int]] = []
    low = [0] * len(lengths)
    for rank in ranks:
        if not sum(low) <= rank <= sum(lengths):
            raise ValueError(
                f"ranks must not decrease and lie between 0 and {sum(lengths)}, got {rank}; "
                "sort them"
            )
        low = _cut(low, list(lengths), rank, read, count)
        results.append(low)
    return results


def _cut(low: list[int], high: list[int], rank: int, read: Read, count: Count) -> list[int]:
    """Return the cut of a rank, which lies between the cuts `low` and `high`.

    Elements below `low` are among the least, elements from `high` on are not. Each round decides
    about half of the elements between them, as the pivot is a weighted median.
    """
    low = list(low)
    while low != high:
        missing = rank - sum(low)
        if missing in (0, sum(high) - sum(low)):
            return low if missing == 0 else high
        pivot = _median(low, high, read)
        before = [
            count(run, pivot.key, run < pivot.run, start, end)
            if start < end and run != pivot.run  # its equal keys may be before `start`
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
    """Return the median of the middle elements of the remaining ranges, weighted by their sizes."""
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
    """Return a `Count` that bisects each run with `read`."""

    def count(run: int, key: Any, has_equal: bool, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            middle_key = read(run, middle)
            if middle_key < key or (has_equal and not key < middle_key):
                low = middle + 1
            else:
                high = middle
        return low

    return count


def narrowed(
    lengths: Sequence[int], rank: int, width: int, order: np.ndarray[Any, Any]
) -> tuple[list[int], list[int]]:
    """Return lower and upper bounds of the cut of each run for a rank, from samples.

    The samples are the last of every `width` elements of each run; `order` is the stable argsort of
    all samples, run after run. If c samples are at or before a sample, then c · width elements are
    at or before it, and fewer than `width` more in each run.
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
    """Return the cut of a rank, given the stable argsort of all elements, run after run."""
    runs = np.repeat(np.arange(len(lengths)), lengths)[order[:rank]]
    counts: list[int] = np.bincount(runs, minlength=len(lengths)).tolist()
    return counts
