"""Sorts: a run on each device, exact cuts, pieces straight to where they belong, and merges."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.shards import _splitters
from gpualgo.shards._arguments import (
    Argument,
    asked,
    built,
    leaves_of,
    on_each,
    refuse,
    taken,
)
from gpualgo.shards._devices import Place, moved_all
from gpualgo.shards._moving import Piece, cut, joined
from gpualgo.shards._shards import ShardedArray

Made = Callable[[int, list[Any]], list[Any]]
"""From values of the run of one device to those of the result, which may be lazy."""


class Order(NamedTuple):
    """What a sort goes by."""

    descending: Any
    bits: tuple[Any, Any]

    @property
    def is_whole(self) -> bool:
        """Whether the whole of a key decides."""
        return self.bits == (0, None)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a sort."""
        found = {"descending": self.descending}
        return (
            found
            if self.is_whole
            else {**found, "begin_bit": self.bits[0], "end_bit": self.bits[1]}
        )


def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: Any = 0,
    end_bit: Any = None, axis: Any = -1,
) -> Any:  # fmt: skip
    """Sort keys stably, and values along: ``result[i] = keys[p[i]]``, p = ``argsort(keys)``.

    Parameters and result are those of `gpualgo.radix_sort`, with sharded arrays that are cut alike
    for arrays; the result is the same to the last bit, and is cut as keys are. An array of several
    rows is sorted along an axis that is not cut.

    Notes
    -----
    Each device sorts its shard. Samples, and then keys, of all tell where each sorted run has to be
    cut: four rounds for 2^31 keys, each waited for. Pieces go to the devices that they belong to,
    and are merged there pair by pair: an element is read and written log2 P times more. With bits
    they are sorted once more instead. Each device needs room for what it sorts three times.
    """
    return _sort("radix_sort", keys, values, Order(descending, (begin_bit, end_bit)), axis)


def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: Any = -1
) -> Any:
    """Sort keys stably by value, and values along; as `radix_sort`."""
    if less is not None:
        refuse("sort", "less= is given, and sharded keys are sorted by value", "leave less out")
    return _sort("sort", keys, values, Order(descending, (0, None)), axis)


def line_of(keys: Any, where: str, name: str, axis: Any) -> tuple[Argument, int]:
    """Return keys and the axis to sort along; flattened if it is None."""
    found = taken(keys, where, name)
    line = checks.axis_of(checks.plain_axis(axis, where), found.first.ndim, where)
    return (found.flat(where), 0) if line is None else (found, line)


def one_row(keys: Argument, line: int, where: str) -> None:
    """Raise ValueError unless there is one row along the axis that is cut."""
    if keys.first.ndim > 1:
        refuse(
            where, f"the rows along axis {line} are cut, in shape {keys.first.shape}",
            "pass gpualgo.distribute(x, axis=…) with another axis",
        )  # fmt: skip


def _sort(where: str, keys: Any, values: Any, order: Order, axis: Any) -> Any:
    """Return sorted keys, with values a pair."""
    source, line = line_of(keys, where, "keys", axis)
    moved = None
    if values is not None:
        given = taken(keys, where, "keys").first
        moved = taken(values, where, "values", given)
        moved = moved if source.first.ndim == given.ndim else moved.flat(where)
    first, call = source.first, ga.sort if where == "sort" else ga.radix_sort

    def options(seat: int) -> dict[str, Any]:
        own = None if moved is None else moved.on(seat)
        return {"values": own, "axis": line, **order.options}

    asked(call, source.places[0], source.on(0), **options(0))
    if line != first.axis:
        rows = on_each(
            first.places, source.seats, lambda seat: call(source.on(seat), **options(seat))
        )
        apart = [row if moved is not None else (row, None) for row in rows]
        found = [built([one[0] for one in apart], first.places, first.axis)]
        if moved is not None:
            found.append(built([one[1] for one in apart], first.places, first.axis))
        return found[0] if moved is None else tuple(found)
    one_row(source, line, where)
    pieces = long_row(source, moved, order)
    made = built([source.packed(own) for own, _ in pieces], first.places, 0)
    if moved is None:
        return made
    return made, built([moved.packed(own) for _, own in pieces], first.places, 0)


def long_row(
    keys: Argument, values: Argument | None, order: Order, made: Made | None = None
) -> list[Piece]:
    """Return what each device has of the sorted row; `made`: of values as they are stored."""
    runs = sorted_runs(keys, values, order)
    if len(runs) == 1:
        ((own, more),) = runs
        return [(own, more if made is None else list(map(ga.copy, made(0, more))))]
    lengths = keys.first.lengths
    borders = cut_runs(keys, runs, order, list(accumulate(lengths))[:-1])
    arrived = exchanged(keys, runs, borders)
    runs.clear()

    def merged(seat: int) -> Piece:
        pieces = arrived[seat]
        if made is not None:
            pieces = [(own, made(source, more)) for source, (own, more) in enumerate(pieces)]
        own, more = _merged(pieces, keys, values, order, keys.places[seat])
        return own, [ga.copy(x) if isinstance(x, ga.lazy.LazyArray) else x for x in more]

    return on_each(keys.places, keys.seats, merged)


def sorted_runs(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Return each shard sorted."""

    def call(seat: int) -> Piece:
        if values is None:
            return leaves_of(ga.radix_sort(keys.on(seat), **order.options))[0], []
        found = ga.radix_sort(keys.on(seat), values.on(seat), **order.options)
        return leaves_of(found[0])[0], leaves_of(found[1])[0]

    return on_each(keys.places, keys.seats, call)


def cut_runs(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int]
) -> np.ndarray[Any, Any]:
    """Return where runs are cut: a row for each border between devices, with both ends."""
    arrays = [
        ShardedArray([own[number] for own, _ in runs], keys.places, 0)
        for number in range(len(keys.arrays))
    ]
    in_order = keys._replace(arrays=tuple(arrays))
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    found = _splitters.cuts(_splitters.Runs(in_order, order.descending, bits), ranks)
    ends = np.array([own[0].shape[0] for own, _ in runs], np.int64)
    return np.concatenate([np.zeros((1, len(runs)), np.int64), found, ends[None]])


def exchanged(
    keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]
) -> list[list[Piece]]:
    """Return the pieces that belong to each device, of the runs in order.

    Every device takes from those behind it first, so that no other is asked by all at once.
    """
    count = len(runs)
    wanted, moves = [], []
    for step in range(count):
        for seat, place in enumerate(keys.places):
            source = (seat + step) % count
            begin, end = (int(row[source]) for row in borders[seat : seat + 2])
            wanted.append((seat, source))
            moves += [(place, cut(x, 0, begin, end)) for part in runs[source] for x in part]
    moved = iter(moved_all(moves, keys.first.library, are_ours=True))
    arrived: list[list[Any]] = [[None] * count for _ in keys.places]
    for seat, source in wanted:
        own, more = runs[source]
        arrived[seat][source] = [next(moved) for _ in own], [next(moved) for _ in more]
    return arrived


def _merged(
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Place
) -> Piece:
    """Return pieces, of the runs in order, as one."""
    pieces = [piece for piece in pieces if piece[0][0].shape[0]] or pieces[:1]
    if not order.is_whole:
        whole = joined(pieces, place, keys.first.library)
        moved = None if values is None else values.packed(whole[1])
        found = ga.radix_sort(keys.packed(whole[0]), moved, **order.options)
        return (leaves_of(found)[0], []) if moved is None else _apart(found)
    while len(pieces) > 1:
        pairs = [
            _both(pieces[i], pieces[i + 1], keys, values, order)
            for i in range(0, len(pieces) - 1, 2)
        ]
        pieces = pairs + pieces[2 * len(pairs) :]
    return pieces[0]


def _both(a: Piece, b: Piece, keys: Argument, values: Argument | None, order: Order) -> Piece:
    """Return two pieces as one; of equal keys those of the first come first."""
    options = {"descending": order.descending}
    if values is None:
        found = ga.merge(keys.packed(a[0]), keys.packed(b[0]), **options)
        return leaves_of(found)[0], []
    beside = {"a_values": values.packed(a[1]), "b_values": values.packed(b[1])}
    return _apart(ga.merge(keys.packed(a[0]), keys.packed(b[0]), **beside, **options))


def _apart(found: Any) -> Piece:
    return leaves_of(found[0])[0], leaves_of(found[1])[0]
