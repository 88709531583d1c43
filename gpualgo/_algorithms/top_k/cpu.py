"""Selection by rank on the CPU's cores: NumPy's partitions of what a sample leaves of a row.

As on a GPU (top_k/sample.cuh): two elements of a sample are bounds, by key and position; what lies
between them is kept, a chunk at a time by whichever core comes, and holds the elements wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import cpu as radix_sort
from gpualgo._algorithms.top_k import cpu_rows, policy
from gpualgo._algorithms.top_k.cpu_keys import Keys
from gpualgo._base import threads
from gpualgo._pipeline.routines import Routine, of_numpy

Array: TypeAlias = np.ndarray[Any, Any]

LONG_ROW = 1 << 16  # worth a sample
_CHUNK = 1 << 16  # elements that are looked at together: they stay in L2
_FEW_SORTED = 1 << 13  # are sorted by NumPy, which need not be compiled


def first(rows: Array, k: int, descending: bool, values: Array, indices: Array) -> None:
    """Write the first k elements of rows along the last axis, and their positions."""
    keys, length = Keys(rows.dtype, descending), rows.shape[-1]
    if length < LONG_ROW:
        cpu_rows.first(rows, k, keys, values, indices)
        return
    for index in np.ndindex(*rows.shape[:-1]):
        row = rows[index]
        if k > length // policy.LARGEST_SHARE:
            order = np.empty(length, np.int64)
            radix_sort.argsort(row, order, 0, descending)
            found = order[:k]
        else:
            found = _first_of_long(row, k, keys)
        values[index] = row[found]
        indices[index] = found


def routines(rows: Array, k: int) -> list[Routine]:
    """Return what `first`, or `of_ranks` (k is 0), would run."""
    length, num_rows = rows.shape[-1], rows.size // max(1, rows.shape[-1])
    if not rows.size:
        return []
    if length >= LONG_ROW and k > length // policy.LARGEST_SHARE:
        return [radix_sort.routine_of(rows.size, length, rows.nbytes)]
    tasks = num_rows if length < LONG_ROW else num_rows * -(-length // _CHUNK)
    return [of_numpy("partition", rows.size, tasks, rows.nbytes)]


def of_ranks(rows: Array, ranks: Sequence[int], out: Array) -> None:
    """Write the elements of some ranks of rows along the last axis; out has a first axis of them.

    All elements of one rank are written at once.
    """
    keys, length = Keys(rows.dtype, False), rows.shape[-1]
    if length < LONG_ROW:
        cpu_rows.of_ranks(rows, ranks, keys, out)
        return
    for index in np.ndindex(*rows.shape[:-1]):
        for i, rank in enumerate(ranks):
            out[(i, *index)] = rows[index][_position(rows[index], rank, keys)]


class _Bound(NamedTuple):
    """An element: the key, and the position that decides where keys are equal."""

    key: Any
    position: int


class _Kept(NamedTuple):
    """What lies between two bounds, in the order of positions, and how much comes before it."""

    keys: Array
    positions: Array
    num_before: int


def _first_of_long(row: Array, k: int, keys: Keys) -> Array:
    """Return the positions of a long row's first k elements, in order."""
    kept = _kept(row, keys, policy.sample_of(len(row), k - 1, False))
    if len(kept.positions) < k:  # the sample has misled
        kept = _everything(row, keys)
    chosen = cpu_rows.first_among(kept.keys, k)
    positions = kept.positions[chosen]
    if k <= _FEW_SORTED:
        order = np.argsort(kept.keys[chosen], kind="stable")
    else:
        order = np.empty(k, np.int64)
        radix_sort.argsort(row[positions], order, 0, keys.descending)
    found: Array = positions[order]
    return found


def _position(row: Array, rank: int, keys: Keys) -> int:
    """Return the position of a long row's element of a rank."""
    kept = _kept(row, keys, policy.sample_of(len(row), rank, True))
    if not 0 <= rank - kept.num_before < len(kept.positions):
        kept = _everything(row, keys)
    return int(kept.positions[cpu_rows.of_rank(kept.keys, rank - kept.num_before)])


def _everything(row: Array, keys: Keys) -> _Kept:
    return _Kept(keys.of(row), np.arange(len(row)), 0)


def _kept(row: Array, keys: Keys, sample: policy.Sample) -> _Kept:
    """Return the elements between the bounds that a sample gives."""
    first, last = _bounds(row, keys, sample)
    length = len(row)
    tasks = -(-length // _CHUNK)
    found: list[tuple[Array, Array]] = [(row[:0], row[:0])] * tasks
    before = np.zeros(tasks, np.int64)

    def look(begin: int, end: int) -> None:
        for task in range(begin, end):
            start, stop = task * _CHUNK, min((task + 1) * _CHUNK, length)
            chunk = keys.of(row[start:stop])
            kept = None if last is None else _up_to(chunk, start, last, True, keys)
            if first is not None:
                earlier = _up_to(chunk, start, first, False, keys)
                before[task] = np.count_nonzero(earlier)
                kept = ~earlier if kept is None else kept > earlier
            places = np.arange(len(chunk)) if kept is None else np.flatnonzero(kept)
            found[task] = chunk[places], places + start

    threads.run(look, tasks, row.nbytes)
    parts = [np.concatenate(part) for part in zip(*found, strict=True)]
    return _Kept(parts[0], parts[1], int(before.sum()))


def _up_to(chunk: Array, start: int, bound: _Bound, is_closed: bool, keys: Keys) -> Array:
    """Return which keys of a chunk come before a bound; is_closed: or are the bound itself."""
    reached = bound.position - start + is_closed  # places whose equal keys count
    if reached >= len(chunk):
        return keys.up_to(chunk, bound.key)
    found = keys.before(chunk, bound.key)
    if reached > 0:
        found[:reached] = keys.up_to(chunk[:reached], bound.key)
    return found


def _bounds(row: Array, keys: Keys, sample: policy.Sample) -> tuple[_Bound | None, _Bound | None]:
    """Return the bounds that a sample of a row gives, None where there is none."""
    size, length = 1 << sample.bits, len(row)
    stretches = np.arange(size, dtype=np.uint64)
    offsets = (_mixed(stretches) >> np.uint64(32)) * np.uint64(length & 0xFFFFFFFF)
    offsets = (
        (offsets >> np.uint64(32)) if length < 1 << 32 else _mixed(stretches) % np.uint64(length)
    )
    places = ((stretches * np.uint64(length) + offsets) >> np.uint64(sample.bits)).astype(np.int64)
    taken = keys.of(row[places])
    order = np.argsort(taken, kind="stable")  # positions rise

    def bound(rank: int) -> _Bound | None:
        if not 0 <= rank < size:
            return None
        at = order[rank]
        return _Bound(taken[at], int(places[at]))

    return bound(sample.first), bound(sample.last)


def _mixed(x: Array) -> Array:
    """Mix the bits of numbers, as top_k/sample.cuh does."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed
