"""Bugs planted in the kernels, one at a time: the tester is tested."""

from __future__ import annotations

from collections.abc import Callable

from emulator.planted import (
    adjacent,
    by_index,
    by_key,
    histogram,
    joint,
    lines,
    merge,
    parts,
    ranks,
    records,
    reduce,
    search,
    segmented_sort,
    segments,
    select,
    small_histogram,
    small_reduce,
    sort,
    sort_rows,
    sort_words,
    tiles,
    top_k,
    wave,
)
from emulator.planted.bug import Bug

_TABLES = (
    reduce, parts, wave, tiles, lines, sort, sort_rows, sort_words, histogram, joint, records,
    merge, select, adjacent, search, segments, segmented_sort, top_k, ranks, by_key,
    by_index, small_histogram, small_reduce,
)  # fmt: skip
BUGS: tuple[Bug, ...] = tuple(bug for table in _TABLES for bug in table.BUGS)


def first_of_each(kind: Callable[[Bug], object]) -> dict[object, Bug]:
    """Return the first bug of each kind, of those that are caught."""
    return {kind(bug): bug for bug in reversed(BUGS) if not bug.missed}


def sample() -> list[Bug]:
    """Return what a sample plants: the first bug of each header, and of each report."""
    headers = first_of_each(lambda bug: bug.header)
    reports = first_of_each(lambda bug: bug.shows[0])
    return list({bug.name: bug for bug in (*headers.values(), *reports.values())}.values())
