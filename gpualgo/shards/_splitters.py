"""Where sorted runs on several devices are cut, exactly: by a few rounds of few keys each.

A round asks each device once, for keys at places that the host knows. Samples of what is still
open tell between which places each run is cut; what is left after that is looked at whole.
Elements are ordered by key, equal ones by their run and their place in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
Ordered = Callable[[Sequence[Any]], Any]
"""The stable order of keys of the host, an array for each number of a key."""


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

    def at(self, places: Sequence[np.ndarray[Any, Any]]) -> list[list[np.ndarray[Any, Any]]]:
        """Return the keys of each run at some places: for each run an array for each number."""
        seats = [seat for seat in self.keys.seats if len(places[seat])]
        found = on_each(
            self.keys.places, seats,
            lambda seat: [at_places(x, seat, places[seat]) for x in self.keys.arrays],
        )  # fmt: skip
        flat = iter(all_on_host([part for parts in found for part in parts]))
        of_none = [np.empty(0, x.dtype) for x in self.keys.arrays]
        return [
            [next(flat) for _ in of_none] if seat in seats else of_none for seat in self.keys.seats
        ]


def at_places(x: Any, seat: int, places: np.ndarray[Any, Any]) -> Any:
    """Return what a shard of a sharded array has at some places, on its device."""
    shard, place = x.shards[seat], x.places[seat]
    if place.number == CPU:
        return shard[places]
    where = place.moved(places, x.library)
    return ga.copy(ga.lazy.take(shard, where))


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

    def places(own: Ends, seat: int) -> np.ndarray[Any, Any]:
        width = widths[own]
        return np.arange(own[0][seat] + width - 1, own[1][seat], width)

    orders = dict(zip(wide, _orders(runs, wide, places), strict=True))
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
    found = _orders(runs, all_ends, lambda own, seat: np.arange(own[0][seat], own[1][seat]))
    orders = dict(zip(all_ends, found, strict=True))
    rows = []
    for rank, (low, high) in zip(ranks, ends, strict=True):
        lengths = [b - a for a, b in zip(low, high, strict=True)]
        more = splitting.cut_in_order(lengths, rank - sum(low), orders[low, high])
        rows.append(_moved(low, more))
    return np.array(rows, np.int64).reshape(len(ranks), len(runs.lengths))


def _orders(
    runs: Runs, several: Sequence[Ends], places: Callable[[Ends, int], np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Return the stable order of the keys at some places, run after run, for each of several."""
    seats = runs.keys.seats
    wanted = [[places(own, seat) for own in several] for seat in seats]
    empty = [np.empty(0, np.int64)]
    found = runs.at([np.concatenate(own or empty).astype(np.int64) for own in wanted])
    apart = []  # for each run, for each number, the keys of each of several
    for parts, own in zip(found, wanted, strict=True):
        borders = np.cumsum([len(one) for one in own])[:-1]
        apart.append([np.split(part, borders) for part in parts])
    return [
        runs.order([
            np.concatenate([apart[seat][part][number] for seat in seats])
            for part in range(len(runs.keys.arrays))
        ])
        for number in range(len(several))
    ]  # fmt: skip


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return some bits of integers as unsigned ones, the sign bit turned over."""
    width = 8 * keys.dtype.itemsize
    words = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        words = words ^ words.dtype.type(1 << (width - 1))
    mask = (1 << ((width if end is None else end) - begin)) - 1
    return (words >> words.dtype.type(begin)) & words.dtype.type(mask)
