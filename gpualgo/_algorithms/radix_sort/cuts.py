"""Exact cuts of sorted runs, from the order of samples and of a few elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Table = np.ndarray[Any, Any]
"""A row for each rank, with a number for each run."""
Spans = tuple[Table, Table]
"""Lower and upper bounds of the cut of each run: a row for each rank."""


def sample_width(lengths: Sequence[int]) -> int:
    """Return the width of samples for which these are about as many as the keys between bounds."""
    return max(1, int(math.sqrt(sum(lengths) / 2) / len(lengths)))


def narrowed(
    lengths: Sequence[int], ranks: Sequence[int], width: int, order: np.ndarray[Any, Any]
) -> Spans:
    """Return bounds of how many elements of each run are among the least ones, from samples.

    The samples are the last of every `width` elements of each run; `order` is the stable argsort of
    all samples, run after run. If c samples are at or before a sample, then c · width elements are
    at or before it, and fewer than `width` more in each run. So bounds are equal if `width` is 1.
    """
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    runs = np.split(places, np.cumsum([length // width for length in lengths])[:-1])

    def cuts(counts: np.ndarray[Any, Any]) -> Table:
        return width * np.stack([np.searchsorted(run, counts) for run in runs], 1)

    wanted = np.asarray(ranks)
    low = cuts(np.maximum(0, (wanted - len(runs) * (width - 1)) // width))
    if width == 1:
        return low, low
    above = -(-wanted // width)
    high = np.minimum(cuts(above) + (width - 1), lengths)
    return low, np.where(above[:, None] > len(order), lengths, high)


def borders(
    lengths: Sequence[int], ranks: Sequence[int], spans: Spans, orders: Iterable[Any]
) -> Table:
    """Return where slices of each run begin: a row for each result piece, and one for the end.

    `orders` has for each rank the stable argsort of the elements between the bounds of its cuts.
    """
    rows: list[Any] = [np.zeros(len(lengths), np.int64)]
    for rank, low, high, order in zip(ranks, *spans, orders, strict=True):
        (row,), _ = narrowed(high - low, [rank - low.sum()], 1, order)
        rows.append(low + row)
    return np.stack([*rows, np.array(lengths)])


def cuts_of(
    ends: Sequence[tuple[int, int]], order: Callable[[Sequence[slice]], Table]
) -> list[list[int]]:
    """Return the borders of pieces as long as the runs, which begin and end at `ends` of an array.

    `order` returns the stable argsort of the elements in some slices of the array, one after the
    other.
    """
    starts, lengths = np.array([start for start, _ in ends]), [end - start for start, end in ends]
    ranks, width = [end for _, end in ends[:-1]], sample_width(lengths)
    samples = order([slice(start + width - 1, end, width) for start, end in ends])
    spans = narrowed(lengths, ranks, width, samples)
    windows = zip(*(starts + bounds for bounds in spans), strict=True)
    table = borders(lengths, ranks, spans, (order([*map(slice, *each)]) for each in windows))
    return (starts + table).tolist()  # type: ignore[no-any-return]
