"""Exact cuts of sorted runs on several devices, in a few rounds that read few keys each.

A round asks each device once, for keys at indices that the host chooses. Samples of the open ranges
narrow them; once they are small, all of their keys are read. Elements are ordered by key, equal
keys by run and index.
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

FEW = 1 << 13  # open elements that the host reads completely
SAMPLES = 1 << 12  # per rank, over all runs

Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""The lower and upper bounds of the cut in each run."""
Span = tuple[int, int, int]
"""Indices into a run: start, stop, step."""


class Runs:
    """Sorted runs, one on each device."""

    def __init__(self, keys: Argument, ways: Any, bits: tuple[int, int | None]) -> None:
        self.keys, self.ways, self.bits = keys, ways, bits
        self.lengths = keys.first.lengths

    def order(self, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return the indices that sort host keys stably."""
        if self.bits != (0, None):
            parts = [_bits(parts[0], *self.bits)]
        with default_device.fixed(CPU, "splitters are found on the host"):
            order: np.ndarray[Any, Any] = ga.argsort(self.keys.packed(parts), descending=self.ways)
        return order

    def at(self, spans: Sequence[Sequence[Span]]) -> list[list[list[np.ndarray[Any, Any]]]]:
        """Return keys of each run on the host: for each span, an array for each field.

        Each device's keys come in one copy; the copies of all devices overlap.
        """
        counts = [[len(range(*span)) for span in run_spans] for run_spans in spans]
        seats = [i for i in self.keys.seats if sum(counts[i])]
        fetched = on_each(
            self.keys.places, seats,
            lambda i: [_gather(x, i, spans[i], counts[i]) for x in self.keys.arrays],
        )  # fmt: skip
        arrays = iter(all_on_host([part for parts in fetched for part in parts]))
        result = []
        for i in self.keys.seats:
            empty = (np.empty(0, x.dtype) for x in self.keys.arrays)
            parts_ = [next(arrays) if i in seats else next(empty) for _ in self.keys.arrays]
            borders = list(accumulate(counts[i]))[:-1]
            result.append(
                list(map(list, zip(*(np.split(x, borders) for x in parts_), strict=True)))
            )
        return result


def _gather(x: Any, i: int, spans: Sequence[Span], counts: Sequence[int]) -> Any:
    """Return the elements of a shard in spans, concatenated on its device."""
    shard, device = x.shards[i], x.places[i]
    if len(spans) == 1:
        begin, end, step = spans[0]
        return shard[begin:end:step]
    target = device.empty((sum(counts),), x.dtype, x.library)
    offset = 0
    for (begin, end, step), count in zip(spans, counts, strict=True):
        if count:
            ga.copy(shard[begin:end:step], out=target[offset : offset + count])
        offset += count
    return target


def cuts(runs: Runs, ranks: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return where each run is cut: a row for each rank; ranks ascend."""
    count = len(runs.lengths)
    bounds: list[Ends] = [((0,) * count, tuple(runs.lengths))] * len(ranks)
    while any(_num_open(pair) > max(FEW, 8 * count) for pair in bounds):
        bounds = _narrowed(runs, ranks, bounds)
    return _final_cuts(runs, ranks, bounds)


def _num_open(bounds: Ends) -> int:
    """Return the number of elements between the bounds of a cut."""
    return sum(bounds[1]) - sum(bounds[0])


def _narrowed(runs: Runs, ranks: Sequence[int], bounds: list[Ends]) -> list[Ends]:
    """Narrow the bounds with samples."""
    threshold = max(FEW, 8 * len(runs.lengths))
    wide = list(dict.fromkeys(pair for pair in bounds if _num_open(pair) > threshold))
    widths = {pair: -(-_num_open(pair) // max(SAMPLES, 16 * len(runs.lengths))) for pair in wide}

    def sample(pair: Ends, i: int) -> Span:
        width = widths[pair]
        return pair[0][i] + width - 1, pair[1][i], width

    orders = dict(zip(wide, _orders(runs, wide, sample), strict=True))
    results = []
    for rank, pair in zip(ranks, bounds, strict=True):
        if pair in orders:
            low, high = pair
            lengths = [b - a for a, b in zip(low, high, strict=True)]
            missing = rank - sum(low)
            near, far = splitting.narrowed(lengths, missing, widths[pair], orders[pair])
            pair = _shifted(low, near), _shifted(low, far)
        results.append(pair)
    return results


def _shifted(low: Sequence[int], offsets: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(low, offsets, strict=True))


def _final_cuts(runs: Runs, ranks: Sequence[int], bounds: list[Ends]) -> np.ndarray[Any, Any]:
    """Return the cuts, from all elements between the bounds."""
    distinct = list(dict.fromkeys(bounds))
    order_list = _orders(runs, distinct, lambda pair, i: (pair[0][i], pair[1][i], 1))
    orders = dict(zip(distinct, order_list, strict=True))
    rows = []
    for rank, (low, high) in zip(ranks, bounds, strict=True):
        lengths = [b - a for a, b in zip(low, high, strict=True)]
        offsets = splitting.cut_in_order(lengths, rank - sum(low), orders[low, high])
        rows.append(_shifted(low, offsets))
    return np.array(rows, np.int64).reshape(len(ranks), len(runs.lengths))


def _orders(
    runs: Runs, bounds: Sequence[Ends], span: Callable[[Ends, int], Span]
) -> list[np.ndarray[Any, Any]]:
    """For each of several bounds, return the stable order of the keys in its spans."""
    run_keys = runs.at([[span(pair, run) for pair in bounds] for run in runs.keys.seats])
    fields = range(len(runs.keys.arrays))
    return [
        runs.order([np.concatenate([keys[i][field] for keys in run_keys]) for field in fields])
        for i in range(len(bounds))
    ]


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return the given bits as unsigned integers that sort like the keys (sign bit flipped)."""
    width = 8 * keys.dtype.itemsize
    unsigned = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        unsigned = unsigned ^ unsigned.dtype.type(1 << (width - 1))
    mask = (1 << ((width if end is None else end) - begin)) - 1
    return (unsigned >> unsigned.dtype.type(begin)) & unsigned.dtype.type(mask)
