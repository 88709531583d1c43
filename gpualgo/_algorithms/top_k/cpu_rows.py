"""Selection by rank from short rows, by NumPy's partition; cores share the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.top_k.cpu_keys import Keys
from gpualgo._base import threads

Array: TypeAlias = np.ndarray[Any, Any]

_BLOCK = 1 << 15  # elements of rows processed together, which stay in L2
_SORTED_SHARE = 2  # if k is more than this part of a row, the whole row is sorted


def first_among(keys: Array, k: int) -> Array:
    """Return the ascending positions of the first k keys."""
    if k == len(keys):
        return np.arange(k)
    bound = np.partition(keys, k - 1)[k - 1]
    return _first_positions(keys, bound, k)


def of_rank(keys: Array, rank: int) -> int:
    """Return the position of the key of a rank."""
    return int(_position_of_rank(keys, np.partition(keys, rank)[rank], rank))


def _first_positions(keys: Array, bound: Any, k: int) -> Array:
    """Return the positions of the first k keys, of which `bound` is the last."""
    earlier, equal = _compared(keys, bound)
    remaining = k - np.count_nonzero(earlier)
    earlier[np.flatnonzero(equal)[:remaining]] = True
    return np.flatnonzero(earlier)


def _position_of_rank(keys: Array, bound: Any, rank: int) -> Any:
    earlier, equal = _compared(keys, bound)
    return np.flatnonzero(equal)[rank - np.count_nonzero(earlier)]


def _compared(keys: Array, bound: Any) -> tuple[Array, Array]:
    """Return which keys come before a bound, and which equal it."""
    if bound != bound:
        is_number = keys == keys
        return is_number, ~is_number
    return keys < bound, keys == bound


def first(rows: Array, k: int, keys: Keys, values: Array, indices: Array) -> None:
    """Write the first k elements of each row, and their positions."""
    length = rows.shape[-1]
    flat = rows.reshape(-1, length)
    chosen = np.empty((len(flat), k), np.int64)

    def choose(begin: int, end: int) -> None:
        block = keys.of(flat[begin:end])
        if k * _SORTED_SHARE > length:
            chosen[begin:end] = np.argsort(block, axis=1, kind="stable")[:, :k]
            return
        bounds = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
        is_kept = block <= bounds
        if keys.are_floats:
            is_kept |= bounds != bounds
        # Rows where more keys than needed equal the last one.
        for row in np.flatnonzero(np.count_nonzero(is_kept, axis=1) > k):
            is_kept[row] = False
            is_kept[row, _first_positions(block[row], bounds[row, 0], k)] = True
        positions = np.nonzero(is_kept)[1].reshape(-1, k)
        order = np.argsort(np.take_along_axis(block, positions, 1), axis=1, kind="stable")
        chosen[begin:end] = np.take_along_axis(positions, order, 1)

    _run(choose, len(flat), length, rows.nbytes)
    indices[...] = chosen.reshape(indices.shape)
    values[...] = np.take_along_axis(flat, chosen, 1).reshape(values.shape)


def of_ranks(rows: Array, ranks: Sequence[int], keys: Keys, out: Array) -> None:
    """Write the elements of the given ranks of each row; out's first axis is ranks."""
    length = rows.shape[-1]
    flat = rows.reshape(-1, length)
    result = np.empty((len(ranks), len(flat)), rows.dtype)

    def choose(begin: int, end: int) -> None:
        block = keys.of(flat[begin:end])
        partitioned, start = block.copy("K"), 0
        for rank in sorted(set(ranks)):  # one by one: NumPy has no SIMD partition for several
            partitioned[:, start:].partition(rank - start, axis=1)
            start = rank + 1
        for i, rank in enumerate(ranks):
            bounds = partitioned[:, rank]
            result[i, begin:end] = bounds
            if keys.are_floats:  # equal floats may have other bits
                for row in np.flatnonzero((bounds == 0) | (bounds != bounds)):
                    position = _position_of_rank(block[row], bounds[row], rank)
                    result[i, begin + row] = flat[begin + row, position]

    if ranks:
        _run(choose, len(flat), length, rows.nbytes)
    out[...] = result.reshape(out.shape)


def _run(choose: Callable[[int, int], None], num_rows: int, length: int, num_bytes: int) -> None:
    """Call choose(begin, end) for blocks of rows, on threads."""
    block_rows = max(1, _BLOCK // length)
    tasks = -(-num_rows // block_rows)

    def body(first_task: int, last_task: int) -> None:
        for task in range(first_task, last_task):
            choose(task * block_rows, min((task + 1) * block_rows, num_rows))

    threads.run(body, tasks, num_bytes)
