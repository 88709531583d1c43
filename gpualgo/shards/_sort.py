"""Sorts: a run on each device, exact cuts, pieces straight to where they belong, and merges."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.run_cuts import can_cut, run_cuts
from gpualgo._arrays.view import view_of
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
from gpualgo.shards._devices import Place, moved_all, on_host
from gpualgo.shards._moving import Piece, cut, joined
from gpualgo.shards._reading import as_at, can_read, reading, stream_at
from gpualgo.shards._shards import ShardedArray


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
    Each device sorts its shard. Samples of all runs tell where each has to be cut, by a kernel that
    reads them where they lie and is waited for. Each device then merges the pieces that belong to
    it, pair by pair, the first time from where they lie: an element is read and written log2 P
    times. Where GPUs cannot read each other's memory the host finds the cuts, in four rounds for
    2^31 keys, and pieces are copied before; so they are with bits, and sorted once more instead.
    Each device needs room for what it sorts three times.
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


def long_row(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Return what each device has of the sorted row."""
    runs = sorted_runs(keys, values, order)
    if len(runs) == 1:
        return runs
    arrays = [x for parts in runs for part in parts for x in part]
    is_read = order.is_whole and can_read(keys.places, arrays)
    library = keys.first.library
    with reading(keys.places, arrays, library) if is_read else nullcontext():
        borders = cut_runs(keys, runs, order, list(accumulate(keys.first.lengths))[:-1], is_read)
        arrived = (pieces_of if is_read else exchanged)(keys, runs, borders)
        runs.clear()
        return on_each(
            keys.places, keys.seats,
            lambda seat: _merged(arrived[seat], keys, values, order, keys.places[seat]),
        )  # fmt: skip


def sorted_runs(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Return each shard sorted."""

    def call(seat: int) -> Piece:
        if values is None:
            return leaves_of(ga.radix_sort(keys.on(seat), **order.options))[0], []
        found = ga.radix_sort(keys.on(seat), values.on(seat), **order.options)
        return leaves_of(found[0])[0], leaves_of(found[1])[0]

    return on_each(keys.places, keys.seats, call)


def cut_runs(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int], is_read: bool = False
) -> np.ndarray[Any, Any]:
    """Return where runs are cut: a row for each border between devices, with both ends.

    `is_read`: the first device reads all runs where they lie.
    """
    ends = np.array([own[0].shape[0] for own, _ in runs], np.int64)
    first, library = keys.places[0], keys.first.library
    views = [[view_of(x, "a run") for x in own] for own, _ in runs]
    if is_read and can_cut(views):
        with first.running():
            seen = [keys.packed([as_at(x, first, library) for x in own]) for own, _ in runs]
            result = first.empty((len(ranks), len(runs)), np.dtype(np.int64), library)
            target, stream = as_at(result, first, library), stream_at(first, library)
            run_cuts(seen, ranks, order.descending, out=target, stream=stream)
            found = on_host(result)
    else:
        found = _splitters.cuts(_in_order(keys, runs, order), ranks)
    return np.concatenate([np.zeros((1, len(runs)), np.int64), found, ends[None]])


def _in_order(keys: Argument, runs: list[Piece], order: Order) -> _splitters.Runs:
    arrays = [
        ShardedArray([own[number] for own, _ in runs], keys.places, 0)
        for number in range(len(keys.arrays))
    ]
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    return _splitters.Runs(keys._replace(arrays=tuple(arrays)), order.descending, bits)


def pieces_of(
    keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]
) -> list[list[Piece]]:
    """Return what each device needs of the runs, in their order, where it lies."""

    def piece(seat: int, source: int) -> Piece:
        begin, end = (int(row[source]) for row in borders[seat : seat + 2])
        own, more = ([cut(x, 0, begin, end) for x in part] for part in runs[source])
        return own, more

    return [[piece(seat, source) for source in keys.seats] for seat in keys.seats]


def exchanged(
    keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]
) -> list[list[Piece]]:
    """Return the same, copied to each device where they lie elsewhere.

    Every device takes from those behind it first, so that no other is asked by all at once.
    """
    count, pieces = len(runs), pieces_of(keys, runs, borders)
    wanted = [(seat, (seat + step) % count) for step in range(count) for seat in keys.seats]
    moves = [
        (keys.places[seat], x) for seat, source in wanted for part in pieces[seat][source]
        for x in part
    ]  # fmt: skip
    moved = iter(moved_all(moves, keys.first.library, are_ours=True))
    for seat, source in wanted:
        own, more = pieces[seat][source]
        pieces[seat][source] = [next(moved) for _ in own], [next(moved) for _ in more]
    return pieces


def _merged(
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Place
) -> Piece:
    """Return pieces, of the runs in order and wherever they lie, as one at a place."""
    pieces = [piece for piece in pieces if piece[0][0].shape[0]] or pieces[:1]
    library = keys.first.library
    if not order.is_whole:
        whole = joined(pieces, place, library)
        moved = None if values is None else values.packed(whole[1])
        found = ga.radix_sort(keys.packed(whole[0]), moved, **order.options)
        return (leaves_of(found)[0], []) if moved is None else _apart(found)
    if len(pieces) == 1:
        own, more = (place.moved_each(part, library) for part in pieces[0])
        return own, more
    while len(pieces) > 1:
        pairs = [
            _both(pieces[i], pieces[i + 1], keys, values, order, place)
            for i in range(0, len(pieces) - 1, 2)
        ]
        pieces = pairs + pieces[2 * len(pairs) :]
    return pieces[0]


def _both(
    a: Piece, b: Piece, keys: Argument, values: Argument | None, order: Order, place: Place
) -> Piece:
    """Return two pieces as one at a place; of equal keys those of the first come first."""
    library = keys.first.library
    length = a[0][0].shape[0] + b[0][0].shape[0]
    whole = [
        [place.empty((length,), x.dtype, library) for x in argument.arrays]
        for argument in (keys, values)
        if argument is not None
    ]

    def seen(argument: Argument, parts: list[Any]) -> Any:
        return argument.packed([as_at(x, place, library) for x in parts])

    first, second = seen(keys, a[0]), seen(keys, b[0])
    options: dict[str, Any] = {
        "descending": order.descending, "stream": stream_at(place, library)
    }  # fmt: skip
    if values is None:
        ga.merge(first, second, out=seen(keys, whole[0]), **options)
        return whole[0], []
    beside = {"a_values": seen(values, a[1]), "b_values": seen(values, b[1])}
    out = seen(keys, whole[0]), seen(values, whole[1])
    ga.merge(first, second, out=out, **beside, **options)
    return whole[0], whole[1]


def _apart(found: Any) -> Piece:
    return leaves_of(found[0])[0], leaves_of(found[1])[0]
