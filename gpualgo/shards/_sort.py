"""Sorts: a run on each device, exact cuts, pieces straight to where they belong, and merges."""

from __future__ import annotations

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
from gpualgo.shards._devices import Place, on_host
from gpualgo.shards._merging import arriving, chunk_ends, exchanged, merge_into, room_at
from gpualgo.shards._moving import Piece, cut, joined
from gpualgo.shards._reading import as_at, at_home, can_read, reading, stream_at
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
    Each device sorts its shard. Samples of all runs tell where each has to be cut: by a kernel that
    reads them where they lie and is waited for, or by the host in four rounds for 2^31 keys, where
    GPUs cannot read each other's memory. Pieces go to the devices that they belong to and are
    merged there pair by pair, in chunks, of which one arrives while another is merged: an element
    is read and written log2 P times more. With bits they are sorted once more instead. Each device
    needs room for what it sorts three times.
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
    """Return what each device has of the sorted row.

    It is made chunk by chunk: the pieces of the next arrive while those of one are merged.
    """
    runs = sorted_runs(keys, values, order)
    if len(runs) == 1:
        return runs
    if not order.is_whole:
        borders = cut_runs(keys, runs, order, list(accumulate(keys.first.lengths))[:-1])
        pieces = exchanged(keys, runs, borders)
        return on_each(
            keys.places, keys.seats,
            lambda seat: _sorted_again(pieces[seat], keys, values, order, keys.places[seat]),
        )  # fmt: skip
    ends, starts = chunk_ends(keys, values), keys.first.starts
    # Memory is asked for before the host waits for cuts: all GPUs stand still afterwards.
    room = on_each(keys.places, keys.seats, lambda seat: room_at(keys, values, seat))
    is_apart = len({place.number for place in keys.places}) > 1
    beside = (
        on_each(keys.places, keys.seats, lambda seat: room_at(keys, values, seat))
        if is_apart
        else []
    )
    borders = cut_runs(keys, runs, order, ends[:-1])
    chunks = len(ends) // len(runs)
    with arriving(keys, runs, borders, beside) as (pieces, wait):
        for chunk in range(chunks):
            wait(chunk)

            def merged(seat: int, chunk: int = chunk) -> None:
                row = seat * chunks + chunk
                low = ends[row - 1] - starts[seat] if chunk else 0
                own, more = room[seat]
                high = ends[row] - starts[seat]
                target = [[cut(x, 0, low, high) for x in part] for part in (own, more)]
                merge_into((target[0], target[1]), pieces[row], keys, values, order.descending)

            on_each(keys.places, keys.seats, merged)
    return room


def _sorted_again(
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Place
) -> Piece:
    """Return pieces as one, by another sort: merges know no bits."""
    own, more = joined(pieces, place, keys.first.library)
    if values is None:
        return leaves_of(ga.radix_sort(keys.packed(own), **order.options))[0], []
    found = ga.radix_sort(keys.packed(own), values.packed(more), **order.options)
    return leaves_of(found[0])[0], leaves_of(found[1])[0]


def sorted_runs(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Return each shard sorted."""
    arrays = keys.arrays if values is None else (*keys.arrays, *values.arrays)

    def call(seat: int) -> Piece:
        shards = [x.shards[seat] for x in arrays]
        with at_home(keys.places[seat], shards, keys.first.library) as stream:
            if values is None:
                found = ga.radix_sort(keys.on(seat), **order.options, stream=stream)
                return leaves_of(found)[0], []
            found = ga.radix_sort(keys.on(seat), values.on(seat), **order.options, stream=stream)
            return leaves_of(found[0])[0], leaves_of(found[1])[0]

    return on_each(keys.places, keys.seats, call)


def cut_runs(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int]
) -> np.ndarray[Any, Any]:
    """Return where runs are cut: a row for each rank, between both ends.

    By a kernel of the first device where that reads all runs where they lie; else by the host.
    """
    ends = np.array([own[0].shape[0] for own, _ in runs], np.int64)
    arrays = [x for own, _ in runs for x in own]
    views = [[view_of(x, "a run") for x in own] for own, _ in runs]
    first = keys.places[:1]
    if order.is_whole and can_cut(views, len(ranks)) and can_read(first, arrays):
        with reading(first, arrays, keys.first.library), first[0].running():
            found = _cut_there(keys, runs, order, ranks)
    else:
        found = _splitters.cuts(_in_order(keys, runs, order), ranks)
    return np.concatenate([np.zeros((1, len(runs)), np.int64), found, ends[None]])


def _cut_there(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int]
) -> np.ndarray[Any, Any]:
    place, library = keys.places[0], keys.first.library
    seen = [keys.packed([as_at(x, place, library) for x in own]) for own, _ in runs]
    result = place.empty((len(ranks), len(runs)), np.dtype(np.int64), library)
    target, stream = as_at(result, place, library), stream_at(place, library)
    run_cuts(seen, ranks, order.descending, out=target, stream=stream)
    return on_host(result)


def _in_order(keys: Argument, runs: list[Piece], order: Order) -> _splitters.Runs:
    arrays = [
        ShardedArray([own[number] for own, _ in runs], keys.places, 0)
        for number in range(len(keys.arrays))
    ]
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    return _splitters.Runs(keys._replace(arrays=tuple(arrays)), order.descending, bits)
