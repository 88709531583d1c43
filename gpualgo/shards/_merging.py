"""Send slices of sorted runs to the devices that own their range, and merge them there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.parameters import MAX_RANKS
from gpualgo.shards._arguments import Argument, leaves_of
from gpualgo.shards._devices import copying, to_devices
from gpualgo.shards._moving import Piece, cut

# A device receives chunks of CHUNK_BYTES x devices x arrays bytes, at most MAX_CHUNKS of them. The
# host queues the merges of a chunk faster than it is copied; with half the size, argsort of 2^28
# float32 on each of two GPUs takes 15.6 ms instead of 12.6 ms.
CHUNK_BYTES, MAX_CHUNKS = 1 << 26, 8

Pieces = list[list[Piece]]
"""For each chunk of each device, its slices in the order of the runs."""


def chunk_ends(keys: Argument, values: Argument | None) -> list[int]:
    """Return where the chunks of each device end in the sorted row; all have equally many."""
    first, count = keys.first, len(keys.places)
    arrays = [x for argument in (keys, values) if argument is not None for x in argument.arrays]
    item = sum(x.dtype.itemsize for x in arrays)
    arriving_bytes = item * max(first.lengths) * (count - 1) // count
    num_wanted = -(-arriving_bytes // (CHUNK_BYTES * count * len(arrays)))
    chunks = max(1, min(num_wanted, MAX_CHUNKS, (MAX_RANKS + 1) // count))
    return [
        start + length * (chunk + 1) // chunks
        for start, length in zip(first.starts, first.lengths, strict=True)
        for chunk in range(chunks)
    ]


def room_at(keys: Argument, values: Argument | None, seat: int) -> Piece:
    """Allocate a device's part of the sorted row."""

    def allocate(argument: Argument) -> list[Any]:
        device, length = argument.places[seat], (argument.first.lengths[seat],)
        return [device.empty(length, x.dtype, x.library) for x in argument.arrays]

    return allocate(keys), [] if values is None else allocate(values)


def pieces_of(keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]) -> Pieces:
    """Return the slices of each run between borders, still on the run's device."""

    def piece(row: int, source: int) -> Piece:
        begin, end = (int(border) for border in borders[row : row + 2, source])
        key_slices, value_slices = ([cut(x, 0, begin, end) for x in part] for part in runs[source])
        return key_slices, value_slices

    return [[piece(row, source) for source in keys.seats] for row in range(len(borders) - 1)]


def exchanged(keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]) -> Pieces:
    """As `pieces_of`, one chunk per device, with the slices copied to the chunk's device.

    Each device reads from the next ones first, so that they do not all read from the same one.
    """
    num_runs, pieces = len(runs), pieces_of(keys, runs, borders)
    pairs = [(i, (i + step) % num_runs) for step in range(num_runs) for i in keys.seats]
    moves = [
        (keys.places[i], x) for i, k in pairs for part in pieces[i][k]
        for x in part
    ]  # fmt: skip
    moved = iter(to_devices(moves, keys.first.library, are_ours=True))
    for i, k in pairs:
        keys_, values_ = pieces[i][k]
        pieces[i][k] = [next(moved) for _ in keys_], [next(moved) for _ in values_]
    return pieces


@contextmanager
def chunked_exchange(
    keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any], rooms: list[Piece]
) -> Iterator[tuple[Pieces, Callable[[int], None]]]:
    """Yield slices as they will be on their devices, and a function to call before a chunk is read.

    As in `exchanged`; `rooms` are the targets: unused arrays of the length of each device's part.
    The runs must live until the context ends.
    """
    count, devices = len(runs), keys.places
    chunks, pieces = (len(borders) - 1) // count, pieces_of(keys, runs, borders)
    groups: list[list[tuple[Any, Any]]] = [[] for _ in range(chunks)]
    used = [0] * count
    for step in range(1, count):
        for i, device in enumerate(devices):
            k = (i + step) % count
            if devices[k].number == device.number:
                continue
            rows = range(i * chunks, (i + 1) * chunks)
            shift = used[i] - int(borders[rows.start, k])
            used[i] = shift + int(borders[rows.stop, k])
            for chunk, row in enumerate(rows):
                low, high = (shift + int(border) for border in borders[row : row + 2, k])
                own_keys, values_ = ([cut(x, 0, low, high) for x in part] for part in rooms[i])
                remote = pieces[row][k]
                groups[chunk] += zip([*own_keys, *values_], [*remote[0], *remote[1]], strict=True)
                pieces[row][k] = own_keys, values_
    with copying(groups) as wait:
        yield pieces, wait


def merge_into(
    target: Piece, pieces: list[Piece], keys: Argument, values: Argument | None, ways: Any
) -> None:
    """Merge slices on one device, in the order of their runs, into arrays there."""
    pieces = [piece for piece in pieces if piece[0][0].shape[0]]
    while len(pieces) > 2:
        pairs = [
            _merged_pair(pieces[i], pieces[i + 1], keys, values, ways)
            for i in range(0, len(pieces) - 1, 2)
        ]
        pieces = pairs + pieces[2 * len(pairs) :]
    if len(pieces) == 2:
        _merged_pair(pieces[0], pieces[1], keys, values, ways, target)
    elif pieces:
        ((key_arrays, value_arrays),) = pieces
        for x, into in zip([*key_arrays, *value_arrays], [*target[0], *target[1]], strict=True):
            ga.copy(x, out=into)


def _merged_pair(
    a: Piece, b: Piece, keys: Argument, values: Argument | None, ways: Any,
    target: Piece | None = None,
) -> Piece:  # fmt: skip
    """Merge two slices, into the target if given; on ties, elements of a come first."""
    first, second = keys.packed(a[0]), keys.packed(b[0])
    out = None if target is None else keys.packed(target[0])
    if values is None:
        return leaves_of(ga.merge(first, second, descending=ways, out=out))[0], []
    values_ = {"a_values": values.packed(a[1]), "b_values": values.packed(b[1])}
    out_pair = None if target is None else (out, values.packed(target[1]))
    merged = ga.merge(first, second, **values_, descending=ways, out=out_pair)
    return leaves_of(merged[0])[0], leaves_of(merged[1])[0]
