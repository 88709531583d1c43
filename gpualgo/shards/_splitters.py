"""Where sorted runs on several devices are cut, exactly: by a few rounds of few keys each.

A round asks each device once, for keys at places that the host knows. Samples of what is still
open tell between which places each run is cut; what is left after that is looked at whole.
Elements are ordered by key, equal ones by their run and their place in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._base import splitting
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo.shards._arguments import Argument, on_each
from gpualgo.shards._devices import all_on_host

FEW = 1 << 13  # elements of which the host looks at each
SAMPLES = 1 << 12  # of all runs together, for a rank

Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""Where each run is cut at least and at most."""
Span = tuple[int, int, int]
"""Places in a run: from, to, and how far apart."""


class Runs:
    """Sorted runs, one on each device."""

    def __init__(self, keys: Argument, ways: Any, bits: tuple[int, int | None]) -> None:
        self.keys, self.ways, self.bits = keys, ways, bits
        self.lengths = keys.first.lengths

    def order(self, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return the stable order of keys of the host."""
        if self.bits != (0, None):
            parts = [_bits(parts[0], *self.bits)]
        with default_device.fixed(CPU, "splitters are found on the host"):
            found: np.ndarray[Any, Any] = ga.argsort(self.keys.packed(parts), descending=self.ways)
        return found

    def at(self, spans: Sequence[Sequence[Span]]) -> list[list[list[np.ndarray[Any, Any]]]]:
        """Return keys of each run: for each of its spans an array for each number of a key.

        What a device has of them comes in one copy, and all devices' copies are under way at once.
        """
        counts = [[len(range(*span)) for span in own] for own in spans]
        seats = [seat for seat in self.keys.seats if sum(counts[seat])]
        found = on_each(
            self.keys.places, seats,
            lambda seat: [_taken(x, seat, spans[seat], counts[seat]) for x in self.keys.arrays],
        )  # fmt: skip
        flat = iter(all_on_host([part for parts in found for part in parts]))
        result = []
        for seat in self.keys.seats:
            none = (np.empty(0, x.dtype) for x in self.keys.arrays)
            whole = [next(flat) if seat in seats else next(none) for _ in self.keys.arrays]
            borders = list(accumulate(counts[seat]))[:-1]
            result.append(list(map(list, zip(*(np.split(x, borders) for x in whole), strict=True))))
        return result


def _taken(x: Any, seat: int, spans: Sequence[Span], counts: Sequence[int]) -> Any:
    """Return what a shard of a sharded array has in spans, one after another, on its device."""
    shard, place = x.shards[seat], x.places[seat]
    if len(spans) == 1:
        begin, end, step = spans[0]
        return shard[begin:end:step]
    target = place.empty((sum(counts),), x.dtype, x.library)
    at = 0
    for (begin, end, step), count in zip(spans, counts, strict=True):
        if count:
            ga.copy(shard[begin:end:step], out=target[at : at + count])
        at += count
    return target


def cuts(runs: Runs, ranks: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return where each run is cut: a row for each rank, which do not fall."""
    count = len(runs.lengths)
    ends: list[Ends] = [((0,) * count, tuple(runs.lengths))] * len(ranks)
    while any(_open(own) > max(FEW, 8 * count) for own in ends):
        ends = _round(runs, ranks, ends)
    return _last(runs, ranks, ends)


def _open(ends: Ends) -> int:
    """Return how many elements may be on either side of a cut."""
    return sum(ends[1]) - sum(ends[0])


def _round(runs: Runs, ranks: Sequence[int], ends: list[Ends]) -> list[Ends]:
    """Return ends that samples have brought nearer to each other."""
    few = max(FEW, 8 * len(runs.lengths))
    wide = list(dict.fromkeys(own for own in ends if _open(own) > few))
    widths = {own: -(-_open(own) // max(SAMPLES, 16 * len(runs.lengths))) for own in wide}

    def sample(own: Ends, seat: int) -> Span:
        width = widths[own]
        return own[0][seat] + width - 1, own[1][seat], width

    orders = dict(zip(wide, _orders(runs, wide, sample), strict=True))
    found = []
    for rank, own in zip(ranks, ends, strict=True):
        if own in orders:
            low, high = own
            lengths = [b - a for a, b in zip(low, high, strict=True)]
            missing = rank - sum(low)
            near, far = splitting.narrowed(lengths, missing, widths[own], orders[own])
            own = _moved(low, near), _moved(low, far)
        found.append(own)
    return found


def _moved(low: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(low, more, strict=True))


def _last(runs: Runs, ranks: Sequence[int], ends: list[Ends]) -> np.ndarray[Any, Any]:
    """Return cuts by a look at all that is still open."""
    all_ends = list(dict.fromkeys(ends))
    found = _orders(runs, all_ends, lambda own, seat: (own[0][seat], own[1][seat], 1))
    orders = dict(zip(all_ends, found, strict=True))
    rows = []
    for rank, (low, high) in zip(ranks, ends, strict=True):
        lengths = [b - a for a, b in zip(low, high, strict=True)]
        more = splitting.cut_in_order(lengths, rank - sum(low), orders[low, high])
        rows.append(_moved(low, more))
    return np.array(rows, np.int64).reshape(len(ranks), len(runs.lengths))


def _orders(
    runs: Runs, several: Sequence[Ends], span: Callable[[Ends, int], Span]
) -> list[np.ndarray[Any, Any]]:
    """Return the stable order of the keys in some spans, run after run, for each of several."""
    found = runs.at([[span(own, seat) for own in several] for seat in runs.keys.seats])
    numbers = range(len(runs.keys.arrays))
    return [
        runs.order([np.concatenate([own[i][number] for own in found]) for number in numbers])
        for i in range(len(several))
    ]


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return some bits of integers as unsigned ones, the sign bit turned over."""
    width = 8 * keys.dtype.itemsize
    words = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        words = words ^ words.dtype.type(1 << (width - 1))
    mask = (1 << ((width if end is None else end) - begin)) - 1
    return (words >> words.dtype.type(begin)) & words.dtype.type(mask)
