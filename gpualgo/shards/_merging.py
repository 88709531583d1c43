"""Pieces of sorted runs: to the devices that they belong to, and merged there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.parameters import MAX_RANKS
from gpualgo.shards._arguments import Argument, leaves_of
from gpualgo.shards._devices import copying, moved_all
from gpualgo.shards._moving import Piece, cut

# Of what arrives at a device: chunks of so many bytes times devices times arrays, at most so many.
# The host queues the merges of one in less time than its bytes take between GPUs: with half of it
# argsort of 2^28 float32 on each of two GPUs takes 15.6 ms instead of 12.6.
CHUNK_BYTES, MAX_CHUNKS = 1 << 26, 8

Pieces = list[list[Piece]]
"""Of each chunk of each device, its pieces in the order of the runs."""


def chunk_ends(keys: Argument, values: Argument | None) -> list[int]:
    """Return where the chunks of each device end in the sorted row, as many for each."""
    first, count = keys.first, len(keys.places)
    arrays = [x for some in (keys, values) if some is not None for x in some.arrays]
    item = sum(x.dtype.itemsize for x in arrays)
    arriving_bytes = item * max(first.lengths) * (count - 1) // count
    wanted = -(-arriving_bytes // (CHUNK_BYTES * count * len(arrays)))
    chunks = max(1, min(wanted, MAX_CHUNKS, (MAX_RANKS + 1) // count))
    return [
        start + length * (chunk + 1) // chunks
        for start, length in zip(first.starts, first.lengths, strict=True)
        for chunk in range(chunks)
    ]


def room_at(keys: Argument, values: Argument | None, seat: int) -> Piece:
    """Return new arrays for what a device has of the sorted row."""

    def made(argument: Argument) -> list[Any]:
        place, length = argument.places[seat], (argument.first.lengths[seat],)
        return [place.empty(length, x.dtype, x.library) for x in argument.arrays]

    return made(keys), [] if values is None else made(values)


def pieces_of(keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]) -> Pieces:
    """Return what lies between borders, of each run, where it lies."""

    def piece(row: int, source: int) -> Piece:
        begin, end = (int(at) for at in borders[row : row + 2, source])
        own, more = ([cut(x, 0, begin, end) for x in part] for part in runs[source])
        return own, more

    return [[piece(row, source) for source in keys.seats] for row in range(len(borders) - 1)]


def exchanged(keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]) -> Pieces:
    """Return the same, a chunk for each device: there, copied from where they lie elsewhere.

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


@contextmanager
def arriving(
    keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any], rooms: list[Piece]
) -> Iterator[tuple[Pieces, Callable[[int], None]]]:
    """Give pieces as they will be on their devices, and what to call before a chunk's are read.

    Every device takes from those behind it first, as above, into its room: as long as what it has
    of the sorted row, and free by now. Runs are used until this ends.
    """
    count, places = len(runs), keys.places
    chunks, pieces = (len(borders) - 1) // count, pieces_of(keys, runs, borders)
    groups: list[list[tuple[Any, Any]]] = [[] for _ in range(chunks)]
    taken = [0] * count
    for step in range(1, count):
        for seat, place in enumerate(places):
            source = (seat + step) % count
            if places[source].number == place.number:
                continue
            rows = range(seat * chunks, (seat + 1) * chunks)
            shift = taken[seat] - int(borders[rows.start, source])
            taken[seat] = shift + int(borders[rows.stop, source])
            for chunk, row in enumerate(rows):
                low, high = (shift + int(at) for at in borders[row : row + 2, source])
                own, more = ([cut(x, 0, low, high) for x in part] for part in rooms[seat])
                there = pieces[row][source]
                groups[chunk] += zip([*own, *more], [*there[0], *there[1]], strict=True)
                pieces[row][source] = own, more
    with copying(groups) as wait:
        yield pieces, wait


def merge_into(
    target: Piece, pieces: list[Piece], keys: Argument, values: Argument | None, ways: Any
) -> None:
    """Write pieces, of the runs in order and all on one device, into arrays there, merged."""
    pieces = [piece for piece in pieces if piece[0][0].shape[0]]
    while len(pieces) > 2:
        pairs = [
            _both(pieces[i], pieces[i + 1], keys, values, ways)
            for i in range(0, len(pieces) - 1, 2)
        ]
        pieces = pairs + pieces[2 * len(pairs) :]
    if len(pieces) == 2:
        _both(pieces[0], pieces[1], keys, values, ways, target)
    elif pieces:
        ((own, more),) = pieces
        for x, into in zip([*own, *more], [*target[0], *target[1]], strict=True):
            ga.copy(x, out=into)


def _both(
    a: Piece, b: Piece, keys: Argument, values: Argument | None, ways: Any,
    target: Piece | None = None,
) -> Piece:  # fmt: skip
    """Return two pieces as one, in the target; of equal keys those of the first come first."""
    first, second = keys.packed(a[0]), keys.packed(b[0])
    out = None if target is None else keys.packed(target[0])
    if values is None:
        return leaves_of(ga.merge(first, second, descending=ways, out=out))[0], []
    beside = {"a_values": values.packed(a[1]), "b_values": values.packed(b[1])}
    both = None if target is None else (out, values.packed(target[1]))
    found = ga.merge(first, second, **beside, descending=ways, out=both)
    return leaves_of(found[0])[0], leaves_of(found[1])[0]
