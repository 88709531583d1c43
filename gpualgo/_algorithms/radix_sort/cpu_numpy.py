"""Keys without values sorted by NumPy: rows by a thread each, or runs of a long row, then merged."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_merge_parameters as mk
from gpualgo._algorithms.radix_sort import cpu_ways as ways
from gpualgo._algorithms.radix_sort.cpu_entries import entry, invoke
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import scratch

_LOOK = 1 << 15  # keys from which a row may be worth asking whether it is in order
_TURN_KEYS = 1 << 15  # of a piece that is turned round
_PIECES_PER_THREAD = 4

Array = np.ndarray[Any, Any]


def is_ready(keys: Array, out: Array) -> bool:
    """Return whether keys and out lie as NumPy's way takes them: in C order without gaps."""
    flags, out_flags = keys.flags, out.flags
    return flags.c_contiguous and flags.aligned and out_flags.c_contiguous and out_flags.aligned


def sort(keys: Array, out: Array, descending: bool) -> None:
    """Write keys to out, which may be the same array, sorted along the last axis.

    Both lie in C order. Zeros and NaNs come as they came, as all keys that are equal.
    """
    *outer, length = keys.shape
    num_rows = prod(outer)
    if num_rows > 1 and (length < ways.LONG_ROW or num_rows >= threads.num_threads()):
        _sort_rows(keys.reshape(num_rows, length), out.reshape(num_rows, length), descending)
        return
    for row, target in zip(keys.reshape(-1, length), out.reshape(-1, length), strict=True):
        _sort_row(row, target, descending)


def _sort_rows(keys: Array, out: Array, descending: bool) -> None:
    """Sort rows, each by one thread."""
    source = _source(keys, out)

    def body(first: int, last: int) -> None:
        rows, targets = source[first:last], out[first:last]
        if source is not out:
            np.copyto(targets, rows)
        targets.sort()
        _settle(rows, targets, descending)

    threads.run(body, len(keys), 8 * keys.nbytes)


def _source(keys: Array, out: Array) -> Array:
    """Return keys that last until out is sorted: floats' zeros and NaNs are looked up there."""
    if address(keys) != address(out):
        return keys
    return _copied(keys) if keys.dtype.kind == "f" else out


def _copied(keys: Array) -> Array:
    copy = np.empty(keys.shape, keys.dtype)
    flat, source = copy.reshape(-1), keys.reshape(-1)

    def part(first: int, last: int) -> None:
        np.copyto(flat[first:last], source[first:last])

    threads.run(part, flat.size, 64 * flat.nbytes if flat.size >= ways.LONG_ROW else 0)
    return copy


def _settle(keys: Array, sorted_keys: Array, descending: bool) -> None:
    """Put zeros and NaNs as they came, and turn rows round, in this thread."""
    length, size = keys.shape[-1], keys.itemsize
    rows = prod(keys.shape[:-1])
    if keys.dtype.kind == "f":
        table = _table(address(keys), address(sorted_keys), length, turned=descending)
        _call("mend", (size,), table, 0, rows)
    if descending:
        _call("turn", (size,), _table(0, address(sorted_keys), length, pieces=1), 0, rows)


def _sort_row(keys: Array, out: Array, descending: bool) -> None:
    length = len(keys)
    if length >= _LOOK and _is_ordered(keys, descending):
        if address(keys) != address(out):
            np.copyto(out, keys)
        return
    source = _source(keys, out)
    runs = 1
    if length >= ways.LONG_ROW:
        runs = ways.num_runs(length, threads.num_threads())
    if runs == 1:
        if source is not out:
            np.copyto(out, source)
        out.sort()
        _settle(source, out, descending)
        return
    rounds = runs.bit_length() - 1
    places = [out, np.empty(length, out.dtype)]
    here = rounds % 2
    begins = [length * run // runs for run in range(runs + 1)]

    def body(first: int, last: int) -> None:
        for run in range(first, last):
            part = slice(begins[run], begins[run + 1])
            target = places[here][part]
            if address(source) != address(places[here]):
                np.copyto(target, source[part])
            target.sort()

    threads.run(body, runs, 64 * keys.nbytes)
    while runs > 1:
        _merge(places[here], places[1 - here], runs)
        here, runs = 1 - here, runs // 2
    if out.dtype.kind == "f":
        table = _table(address(source), address(out), length, turned=descending)
        _call("mend", (out.itemsize,), table, 0, 1)
    if descending:
        pieces = length // _TURN_KEYS
        table = _table(0, address(out), length, pieces=pieces)
        _run("turn", (out.itemsize,), table, pieces, out.nbytes)


def _merge(source: Array, target: Array, runs: int) -> None:
    """Merge neighbours of so many runs."""
    pairs = runs // 2
    pieces = max(1, _PIECES_PER_THREAD * threads.num_threads() // pairs)
    table = _table(address(source), address(target), len(source), runs, pieces)
    options = source.dtype.kind, source.itemsize
    _run("merge", options, table, pairs * pieces, source.nbytes)


def _is_ordered(keys: Array, descending: bool) -> bool:
    table = _table(address(keys), 0, len(keys), turned=descending)
    _call("ordered", (keys.dtype.kind, keys.itemsize), table, 0, 1)
    return bool(table[mk.SORTED])


def _table(
    source: int, place: int, length: int, runs: int = 0, pieces: int = 0, turned: bool = False
) -> Array:
    table = np.zeros(mk.SIZE, np.int64)
    table[: mk.TURNED + 1] = source, place, length, runs, pieces, turned
    return table


def _call(name: str, options: tuple[int | str, ...], table: Array, first: int, last: int) -> None:
    """Run a kernel in this thread."""
    table[mk.ENTRY] = entry(name, *options)
    invoke()(address(table), 0, first, last)


def _run(
    name: str, options: tuple[int | str, ...], table: Array, tasks: int, num_bytes: int
) -> None:
    """Run a kernel on all cores."""
    table[mk.ENTRY] = entry(name, *options)
    at, kernel = address(table), invoke()

    def body(first: int, last: int) -> None:
        memory = scratch(mk.SCRATCH_BYTES)
        kernel(at, address(memory), first, last)

    threads.run(body, tasks, 64 * num_bytes)
