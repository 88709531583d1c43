"""Selection by rank from rows that are short, by NumPy's partitions; cores share the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.top_k.cpu_keys import Keys
from gpualgo._base import threads

Array: TypeAlias = np.ndarray[Any, Any]

_BLOCK = 1 << 15  # elements of the rows that are looked at together: they stay in L2
_SORTED_SHARE = 2  # more than this part of a row is sorted as a whole


def first_among(keys: Array, k: int) -> Array:
    """Return where the first k of some keys stand, in rising order of places."""
    if k == len(keys):
        return np.arange(k)
    bound = np.partition(keys, k - 1)[k - 1]
    return _places(keys, bound, k)


def of_rank(keys: Array, rank: int) -> int:
    """Return where the key of a rank stands."""
    return int(_turn(keys, np.partition(keys, rank)[rank], rank))


def _places(keys: Array, bound: Any, k: int) -> Array:
    """Return where the first k keys stand, of which bound is the last."""
    earlier, equal = _compared(keys, bound)
    left = k - np.count_nonzero(earlier)
    earlier[np.flatnonzero(equal)[:left]] = True
    return np.flatnonzero(earlier)


def _turn(keys: Array, bound: Any, rank: int) -> Any:
    earlier, equal = _compared(keys, bound)
    return np.flatnonzero(equal)[rank - np.count_nonzero(earlier)]


def _compared(keys: Array, bound: Any) -> tuple[Array, Array]:
    """Return which keys come before a bound, and which are equal to it."""
    if bound != bound:
        is_number = keys == keys
        return is_number, ~is_number
    return keys < bound, keys == bound


def first(rows: Array, k: int, keys: Keys, values: Array, indices: Array) -> None:
    """Write the first k elements of each row, and their positions."""
    length = rows.shape[-1]
    flat = rows.reshape(-1, length)
    found = np.empty((len(flat), k), np.int64)

    def choose(begin: int, end: int) -> None:
        block = keys.of(flat[begin:end])
        if k * _SORTED_SHARE > length:
            found[begin:end] = np.argsort(block, axis=1, kind="stable")[:, :k]
            return
        bounds = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
        is_kept = block <= bounds
        if keys.are_floats:
            is_kept |= bounds != bounds
        # Rows with more that are equal to the last one than have their turn.
        for row in np.flatnonzero(np.count_nonzero(is_kept, axis=1) > k):
            is_kept[row] = False
            is_kept[row, _places(block[row], bounds[row, 0], k)] = True
        places = np.nonzero(is_kept)[1].reshape(-1, k)
        order = np.argsort(np.take_along_axis(block, places, 1), axis=1, kind="stable")
        found[begin:end] = np.take_along_axis(places, order, 1)

    _share(choose, len(flat), length, rows.nbytes)
    indices[...] = found.reshape(indices.shape)
    values[...] = np.take_along_axis(flat, found, 1).reshape(values.shape)


def of_ranks(rows: Array, ranks: Sequence[int], keys: Keys, out: Array) -> None:
    """Write the elements of some ranks of each row; out has a first axis of ranks."""
    length = rows.shape[-1]
    flat = rows.reshape(-1, length)
    found = np.empty((len(ranks), len(flat)), rows.dtype)

    def choose(begin: int, end: int) -> None:
        block = keys.of(flat[begin:end])
        parted, past = block.copy("K"), 0
        for rank in sorted(set(ranks)):  # one by one, by vectors, which several at once are not
            parted[:, past:].partition(rank - past, axis=1)
            past = rank + 1
        for i, rank in enumerate(ranks):
            bounds = parted[:, rank]
            found[i, begin:end] = bounds
            if keys.are_floats:  # equal ones may have other bits
                for row in np.flatnonzero((bounds == 0) | (bounds != bounds)):
                    at = _turn(block[row], bounds[row], rank)
                    found[i, begin + row] = flat[begin + row, at]

    if ranks:
        _share(choose, len(flat), length, rows.nbytes)
    out[...] = found.reshape(out.shape)


def _share(choose: Callable[[int, int], None], num_rows: int, length: int, num_bytes: int) -> None:
    """Call choose(begin, end) for blocks of rows."""
    each = max(1, _BLOCK // length)
    tasks = -(-num_rows // each)

    def body(first_task: int, last_task: int) -> None:
        for task in range(first_task, last_task):
            choose(task * each, min((task + 1) * each, num_rows))

    threads.run(body, tasks, num_bytes)
