"""Keys without values sorted by NumPy: one thread per row, or runs of a long row, then merged."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_fast_path, cpu_int16_sort
from gpualgo._algorithms.radix_sort import cpu_merge_parameters as mk
from gpualgo._algorithms.radix_sort import cpu_strategy as ways
from gpualgo._algorithms.radix_sort.cpu_entries import kernel
from gpualgo._algorithms.radix_sort.cpu_int16_sort import Int16RowSort
from gpualgo._algorithms.radix_sort.cpu_orders import Order
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import row_function, status_function
from gpualgo._cpu.kernels import Kernel
from gpualgo._cpu.launch import Launch
from gpualgo._pipeline.routines import Routine, compiled, of_numpy

_TURN_KEYS = 1 << 15  # of a piece that is reversed
_PIECES_PER_THREAD = 4
_BLOCK_BYTES = 1 << 22  # of rows with gaps that are copied at once

Array = np.ndarray[Any, Any]


def is_sorted_by_numpy(keys: Array, axis: int, order: Order) -> bool:
    """Return whether NumPy sorts these keys, which have no values: all bits count."""
    length = keys.shape[axis]
    return order.is_whole and ways.is_by_numpy(keys.dtype, length, keys.size // max(1, length))


def is_dense(keys: Array, out: Array, axis: int) -> bool:
    """Return whether `sort` reads keys and writes out without copies."""
    flags, out_flags = keys.flags, out.flags
    is_aligned = flags.aligned and out_flags.aligned
    return axis == keys.ndim - 1 and is_aligned and flags.c_contiguous and out_flags.c_contiguous


def is_ordered_by_numpy(keys: Array, descending: bool) -> bool:
    """Return whether NumPy orders these keys: a short ascending row."""
    if descending or keys.ndim != 1 or len(keys) > ways.max_ordered_keys(keys.dtype):
        return False
    return keys.flags.c_contiguous and keys.flags.aligned


def routines(keys: Array, axis: int) -> list[Routine]:
    """Return the routines of `sort`: rows by NumPy, or runs of a long row, which are merged."""
    length = keys.shape[axis]
    num_rows, runs = (
        keys.size // max(1, length),
        ways.num_runs(length * keys.itemsize, threads.num_threads()),
    )
    if num_rows > 1 and (runs == 1 or num_rows >= threads.num_threads()):
        return [of_numpy("sort", keys.size, num_rows, 8 * keys.nbytes)]
    steps = [of_numpy("sort", keys.size, num_rows * runs, 8 * keys.nbytes)]
    if runs > 1:
        steps.append(compiled("radix_sort", keys.size, -(-length // runs), 8 * keys.nbytes))
    return steps


def sort(keys: Array, out: Array, descending: bool) -> None:
    """Write keys, sorted along the last axis, to out, which may be the same array.

    Both are C-contiguous. Zeros and NaNs keep their input order, as all equal keys do.
    """
    *outer, length = keys.shape
    num_rows = prod(outer)
    is_short = length * keys.itemsize < ways.SHARED_BYTES
    if num_rows > 1 and (is_short or num_rows >= threads.num_threads()):
        sort_rows = cpu_int16_sort.sort_rows if ways.is_sorted_as_int16(keys.dtype) else _sort_rows
        sort_rows(keys.reshape(num_rows, length), out.reshape(num_rows, length), descending)
    elif num_rows == 1:
        row_sort(length, keys.dtype, descending)(keys.reshape(-1), out.reshape(-1))
    else:
        for row, target in zip(keys.reshape(-1, length), out.reshape(-1, length), strict=True):
            row_sort(length, keys.dtype, descending)(row, target)


def sort_copies(keys: Array, out: Array, axis: int, descending: bool) -> None:
    """Sort along any axis, with any strides: copies blocks of rows, sorts them, and writes them."""
    rows, targets = np.moveaxis(keys, axis, -1), np.moveaxis(out, axis, -1)
    longest = int(np.argmax(rows.shape[:-1] or (0,)))
    if rows.ndim == 1:
        rows, targets = rows[None], targets[None]
    rows, targets = np.moveaxis(rows, longest, 0), np.moveaxis(targets, longest, 0)
    step = max(1, _BLOCK_BYTES * len(rows) // max(1, keys.nbytes))
    for i in range(0, len(rows), step):
        part = rows[i : i + step]
        block, result = (np.empty(part.shape, keys.dtype) for _ in range(2))
        copy_rows(block, part, 4 * part.nbytes)
        sort(block, result, descending)
        copy_rows(targets[i : i + step], result, 4 * part.nbytes)


def copy_rows(target: Array, source: Array, work: int) -> None:
    """Copy rows, or the elements of a row, on all cores."""

    def part(first: int, last: int) -> None:
        np.copyto(target[first:last], source[first:last])

    threads.run(part, len(target), work)


def _sort_rows(keys: Array, out: Array, descending: bool) -> None:
    """Sort rows, one thread per row."""
    length = keys.shape[1]
    source, mend_rows = _source(keys, out), None
    if keys.dtype.kind == "f":
        mend_rows = kernel("mend_rows", keys.itemsize, int(descending))

    def body(first: int, last: int) -> None:
        rows, targets = source[first:last], out[first:last]
        if source is not out:
            np.copyto(targets, rows)
        targets.sort()
        if mend_rows is not None:
            mend_rows(address(rows), address(targets), length, last - first)
        elif descending:
            targets[...] = targets[:, ::-1]

    threads.run(body, len(keys), 8 * keys.nbytes)


def _source(keys: Array, out: Array) -> Array:
    """Return a copy of keys if sorting overwrites them: zeros and NaNs are restored from it."""
    if address(keys) != address(out):
        return keys
    return _copied(keys) if keys.dtype.kind == "f" else out


def _copied(keys: Array) -> Array:
    copy = np.empty(keys.shape, keys.dtype)
    work = 64 * keys.nbytes if keys.nbytes >= ways.SHARED_BYTES else 0
    copy_rows(copy.reshape(-1), keys.reshape(-1), work)
    return copy


class _Finish:
    """Post-processing of NumPy's sort of a row: restores zeros and NaNs, reverses if descending."""

    def __init__(self, length: int, dtype: np.dtype[Any], descending: bool) -> None:
        self.length = length
        self.mend: Kernel | None = None  # kept alive: it is called by address
        self.run_mend: Callable[[int, int, int, int], int] | None = None
        self.mend_short: Callable[[Array, Array], int] | None = None  # for short ascending rows
        self.turn: Launch | None = None
        if dtype.kind == "f":
            self.mend = kernel("mend", dtype.itemsize)
            self.run_mend = status_function(self.mend)
            if length < ways.CHECK_SORTED_KEYS and not descending:
                self.mend_short = row_function(self.mend)
        if descending:
            pieces, work = max(1, length // _TURN_KEYS), length * dtype.itemsize
            table, options = _table(length, pieces=pieces), (dtype.itemsize,)
            self.turn = _launch("turn", options, table, (mk.SORTED, mk.LENGTH), pieces, work)

    def __call__(self, keys: Array, out: Array) -> None:
        length = self.length
        if self.mend_short is not None:
            self.mend_short(keys, out)
        elif self.run_mend is not None and self.turn is None:
            self.run_mend(address(keys), address(out), length, 0)
        elif self.run_mend is not None:
            numbers = np.empty(1, np.int64)
            self.run_mend(address(keys), address(out), length, address(numbers))
            length = int(numbers[0])  # NaNs stay last
        if self.turn is not None:
            self.turn((address(out), length))


class _RowSort:
    """Sort of one row of a fixed length."""

    def __init__(self, length: int, dtype: np.dtype[Any], descending: bool) -> None:
        self.length, self.descending = length, descending
        self.settle = _Finish(length, dtype, descending)
        self.kernels = () if self.settle.mend is None else (self.settle.mend,)
        self.is_settled = dtype.kind != "f" and not descending
        self.ordered: Kernel | None = None
        if length >= ways.CHECK_SORTED_KEYS:
            self.ordered = kernel("ordered", dtype.kind, dtype.itemsize)

    def __call__(self, keys: Array, out: Array) -> None:
        """Write keys, sorted, to out, which may be the same row."""
        if self._is_ordered(keys):
            if address(keys) != address(out):
                np.copyto(out, keys)
        else:
            self._sort(_source(keys, out), out)

    def fresh(self, keys: Array, out: Array) -> None:
        """Write keys, sorted, to another row."""
        if self.ordered is not None:
            self(keys, out)
            return
        out[...] = keys  # faster than np.copyto
        out.sort()
        if not self.is_settled:
            self.settle(keys, out)

    def _sort(self, source: Array, out: Array) -> None:
        runs = 1
        if out.nbytes >= ways.SHARED_BYTES:
            runs = ways.num_runs(out.nbytes, threads.num_threads())
        if runs > 1:
            _sort_runs(source, out, runs)
        else:
            if source is not out:
                np.copyto(out, source)
            out.sort()
        if not self.is_settled:
            self.settle(source, out)

    def _is_ordered(self, keys: Array) -> bool:
        if self.ordered is None:
            return False
        answer = np.empty(1, np.int64)
        self.ordered(address(keys), address(answer), self.length, self.descending)
        return bool(answer[0])


@lru_cache(256)
def row_sort(length: int, dtype: np.dtype[Any], descending: bool) -> _RowSort | Int16RowSort:
    """Return the sort of one row of `length` keys."""
    if ways.is_sorted_as_int16(dtype):
        return Int16RowSort(dtype, descending)
    return _RowSort(length, dtype, descending)


def sorted_row(keys: Array) -> Array | None:
    """Return a contiguous row sorted in ascending order; None if the digit sort is faster."""
    length, dtype = len(keys), keys.dtype
    if not ways.is_by_numpy(dtype, length, 1):
        return None
    out = np.empty(length, dtype)
    row_sort(length, dtype, False).fresh(keys, out)
    return out


def sorted_into(keys: Array, out: Any) -> Array | None:
    """Sort a row into `out`, which may be that row; None if the fast path does not apply."""
    sorter = cpu_fast_path.find_short_sort(out, *cpu_fast_path.DEFAULTS)
    if not sorter or len(out) != len(keys) or out.dtype != keys.dtype or not out.flags.writeable:
        return None
    result: Array = out
    if out is not keys and -keys.nbytes < address(out) - address(keys) < keys.nbytes:
        return None
    if type(sorter) is tuple:
        if out is not keys:
            return cpu_fast_path.sort_coded(keys, result, sorter)
        result[...] = cpu_fast_path.sort_coded(keys, np.empty(len(keys), keys.dtype), sorter)
        return result
    if out is not keys:
        out[...] = keys
    elif sorter is not True:
        keys = keys.copy()
    result.sort()
    if sorter is not True:
        sorter(keys, result)
    return result


def _sort_runs(source: Array, out: Array, runs: int) -> None:
    """Sort a row in runs, one thread per run, and merge them on all cores."""
    length, rounds = len(out), runs.bit_length() - 1
    buffers = [out, np.empty(length, out.dtype)]
    current = rounds % 2
    begins = [length * run // runs for run in range(runs + 1)]
    is_copied = address(source) != address(buffers[current])

    def body(first: int, last: int) -> None:
        for run in range(first, last):
            part = slice(begins[run], begins[run + 1])
            target = buffers[current][part]
            if is_copied:
                np.copyto(target, source[part])
            target.sort()

    threads.run(body, runs, 64 * out.nbytes)
    while runs > 1:
        merge(buffers[current], buffers[1 - current], runs)
        current, runs = 1 - current, runs // 2


def merge(source: Array, target: Array, runs: int) -> None:
    """Merge neighbouring runs, whose lengths are nearly equal."""
    pairs = runs // 2
    pieces = max(1, _PIECES_PER_THREAD * threads.num_threads() // pairs)
    options, table = (source.dtype.kind, source.itemsize), _table(len(source), runs, pieces)
    work, slots = 64 * source.nbytes, (mk.SOURCE, mk.SORTED)
    launch = _launch("merge", options, table, slots, pairs * pieces, work)
    launch((address(source), address(target)))


def _table(length: int, runs: int = 0, pieces: int = 1) -> Array:
    return np.array((0, 0, length, runs, pieces), np.int64)


def _launch(
    name: str, options: tuple[int | str, ...], table: Array, slots: tuple[int, ...], tasks: int,
    work: int,
) -> Launch:  # fmt: skip
    return Launch(kernel(name, *options), table, slots, mk.SCRATCH_BYTES, tasks, work)
