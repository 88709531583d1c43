"""Selection by rank on CPU cores: NumPy's partition of the part of a row that a sample bounds.

As on a GPU (top_k/sample.cuh), two elements of a sample are bounds, by key and position. Cores
filter chunks of the row for the elements between the bounds, among which are the wanted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort.cpu import Order, routine_of, sort_rows
from gpualgo._algorithms.radix_sort.cpu_numpy import is_by_numpy
from gpualgo._algorithms.top_k import FirstElements, RankedElements, tuning
from gpualgo._base import dtypes, threads
from gpualgo._cpu.plan import Plan, Routine, of_numpy
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]

LONG_ROW = 1 << 16  # long enough for sampling
# The same for an element of a rank, where NumPy's partition has SIMD: 2^20 int32 0.6 ms, by a
# sample 3.2 ms; 2^22 float64 8.4 and 8.1 ms; 2^20 uint8, without SIMD, 6.6 and 1.6 ms.
LONG_FOR_RANK = 1 << 22
_CHUNK = 1 << 16  # elements per chunk, which stay in L2
_SAMPLE_BITS = 15  # of an element of a rank; one core reads the sample
_FEW_SORTED = 1 << 13  # up to this many are sorted by NumPy, without compilation


@planners.for_cpu.register(FirstElements)
def _(problem: FirstElements, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    axis, k, length = problem.axis, problem.k, problem.row_items
    keys = Keys(problem.dtype, problem.descending)
    is_long, is_sorted = length >= LONG_ROW, k > length // tuning.LARGEST_SHARE

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        rows = _rows(arrays[0], axis)
        values, indices = results if axis is None else [np.moveaxis(a, axis, -1) for a in results]
        if not is_long:
            first_of_rows(rows, k, keys, values, indices)
            return
        for index in np.ndindex(*rows.shape[:-1]):
            row = rows[index]
            if is_sorted:
                order = np.empty(length, np.int64)
                _argsort(row, order, keys)
                chosen = order[:k]
            else:
                chosen = _first_of_long(row, k, keys)
            values[index] = row[chosen]
            indices[index] = chosen

    if is_long and is_sorted:
        return Plan(run, [routine_of(arrays[0].size, length, arrays[0].nbytes)])
    return Plan(run, _partition(arrays[0], length, is_long))


@planners.for_cpu.register(RankedElements)
def _(problem: RankedElements, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    axis, ranks, length = problem.axis, problem.ranks, problem.row_items
    keys = Keys(problem.dtype, False)
    has_simd = is_by_numpy(keys.dtype, length)
    is_long = length >= (LONG_FOR_RANK if has_simd else LONG_ROW)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        rows, (out,) = _rows(arrays[0], axis), results
        if out.ndim < rows.ndim:  # one rank
            out = out[np.newaxis]
        if not is_long:
            ranks_of_rows(rows, ranks, keys, out)
            return
        for index in np.ndindex(*rows.shape[:-1]):
            for i, rank in enumerate(ranks):
                out[(i, *index)] = rows[index][_position(rows[index], rank, keys)]

    return Plan(run, _partition(arrays[0], length, is_long))


def _rows(array: Array, axis: int | None) -> Array:
    """Return an array with its rows along the last axis; flattening may copy."""
    return array.reshape(-1) if axis is None else np.moveaxis(array, axis, -1)


def _partition(x: Array, length: int, is_long: bool) -> list[Routine]:
    num_rows = x.size // max(1, length)
    tasks = num_rows * -(-length // _CHUNK) if is_long else num_rows
    return [of_numpy("partition", x.size, tasks, x.nbytes)]


class Keys:
    """Keys of a dtype's elements for NumPy's comparisons: ascending in their order, NaN last."""

    def __init__(self, dtype: np.dtype[Any], descending: bool) -> None:
        self.descending = descending
        self.are_floats = dtypes.kind(dtype) == "f"
        # NumPy compares narrow floats one by one.
        self.dtype = np.dtype(np.float32) if self.are_floats and dtype.itemsize == 2 else dtype

    def of(self, x: Array) -> Array:
        """Return the keys of elements; the elements themselves if possible."""
        x = x.astype(self.dtype, copy=False)
        if not self.descending:
            return x
        result: Array = np.negative(x) if self.are_floats else np.invert(x)
        return result

    def up_to(self, keys: Array, bound: Any) -> Array:
        result: Array = np.ones(keys.shape, np.bool_) if bound != bound else keys <= bound
        return result


# --- Selection by rank from short rows, by NumPy's partition; cores share the rows.

_BLOCK = 1 << 15  # elements of rows processed together, which stay in L2
_SORTED_SHARE = 2  # if k is more than this part of a row, the whole row is sorted
_SORTED_ROW = 16  # elements of rows that are sorted for any k: half the time of a partition


def _first_positions(keys: Array, bound: Any, k: int) -> Array:
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


def first_of_rows(rows: Array, k: int, keys: Keys, values: Array, indices: Array) -> None:
    """Write the first k elements of each row, and their positions."""
    length = rows.shape[-1]
    flat = rows.reshape(-1, length)
    chosen = np.empty((len(flat), k), np.int64)

    def choose(begin: int, end: int) -> None:
        block = keys.of(flat[begin:end])
        if k * _SORTED_SHARE > length or length <= _SORTED_ROW:
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


def ranks_of_rows(rows: Array, ranks: Sequence[int], keys: Keys, out: Array) -> None:
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


# --- Selection from a long row.


class _Bound(NamedTuple):
    """An element: its key, and its position, which orders equal keys."""

    key: Any
    position: int


class _Candidates(NamedTuple):
    """The elements between two bounds by position, and the number of elements before them."""

    keys: Array
    positions: Array
    num_before: int


def _argsort(row: Array, out: Array, keys: Keys) -> None:
    sort_rows([row], [out], Order(row.dtype, keys.descending), is_order=True)


def _first_of_long(row: Array, k: int, keys: Keys) -> Array:
    kept = _filtered(row, keys, tuning.sample_of(len(row), k - 1, False))
    if len(kept.positions) < k:  # the sample was not representative
        kept = _unfiltered(row, keys)
    chosen = _first_positions(kept.keys, np.partition(kept.keys, k - 1)[k - 1], k)
    positions = kept.positions[chosen]
    if k <= _FEW_SORTED:
        order = np.argsort(kept.keys[chosen], kind="stable")
    else:
        order = np.empty(k, np.int64)
        _argsort(row[positions], order, keys)
    result: Array = positions[order]
    return result


def _position(row: Array, rank: int, keys: Keys) -> int:
    kept = _filtered(row, keys, tuning.sample_of(len(row), rank, True, _SAMPLE_BITS))
    if not 0 <= rank - kept.num_before < len(kept.positions):
        kept = _unfiltered(row, keys)
    rank -= kept.num_before
    bound = np.partition(kept.keys, rank)[rank]
    return int(kept.positions[_position_of_rank(kept.keys, bound, rank)])


def _unfiltered(row: Array, keys: Keys) -> _Candidates:
    return _Candidates(keys.of(row), np.arange(len(row)), 0)


def _filtered(row: Array, keys: Keys, sample: tuning.Sample) -> _Candidates:
    first, last = _bounds(row, keys, sample)
    length = len(row)
    tasks = -(-length // _CHUNK)
    chunks: list[tuple[Array, Array]] = [(row[:0], row[:0])] * tasks
    before = np.zeros(tasks, np.int64)

    def filter_tasks(begin: int, end: int) -> None:
        for task in range(begin, end):
            start, stop = task * _CHUNK, min((task + 1) * _CHUNK, length)
            chunk = keys.of(row[start:stop])
            is_kept = None if last is None else _up_to(chunk, start, last, True, keys)
            if first is not None:
                earlier = _up_to(chunk, start, first, False, keys)
                before[task] = np.count_nonzero(earlier)
                is_kept = ~earlier if is_kept is None else is_kept > earlier
            offsets = np.arange(len(chunk)) if is_kept is None else np.flatnonzero(is_kept)
            chunks[task] = chunk[offsets], offsets + start

    threads.run(filter_tasks, tasks, row.nbytes)
    parts = [np.concatenate(part) for part in zip(*chunks, strict=True)]
    return _Candidates(parts[0], parts[1], int(before.sum()))


def _up_to(chunk: Array, start: int, bound: _Bound, is_closed: bool, keys: Keys) -> Array:
    """Return which keys of a chunk come before a bound, or (is_closed) are the bound itself."""
    num_closed = bound.position - start + is_closed  # positions where equal keys count
    if num_closed >= len(chunk):
        return keys.up_to(chunk, bound.key)
    is_before, _ = _compared(chunk, bound.key)
    if num_closed > 0:
        is_before[:num_closed] = keys.up_to(chunk[:num_closed], bound.key)
    return is_before


def _bounds(row: Array, keys: Keys, sample: tuning.Sample) -> tuple[_Bound | None, _Bound | None]:
    """Return the bounds that a sample of a row gives; None for no bound."""
    size, length = 1 << sample.bits, len(row)
    stretches = np.arange(size, dtype=np.uint64)
    offsets = (_hashed(stretches) >> np.uint64(32)) * np.uint64(length & 0xFFFFFFFF)
    offsets = (
        (offsets >> np.uint64(32)) if length < 1 << 32 else _hashed(stretches) % np.uint64(length)
    )
    sampled = ((stretches * np.uint64(length) + offsets) >> np.uint64(sample.bits)).astype(np.int64)
    sample_keys = keys.of(row[sampled])
    order = np.argsort(sample_keys, kind="stable")  # positions rise

    def bound(rank: int) -> _Bound | None:
        if not 0 <= rank < size:
            return None
        index = order[rank]
        return _Bound(sample_keys[index], int(sampled[index]))

    return bound(sample.first), bound(sample.last)


def _hashed(x: Array) -> Array:
    """Hash numbers as top_k/sample.cuh does."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed
