"""Sorts: a sorted run on each device, exact cuts, slices sent to their owners, and merges."""

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
from gpualgo.shards._merging import chunk_ends, chunked_exchange, exchanged, merge_into, room_at
from gpualgo.shards._moving import Piece, cut, joined
from gpualgo.shards._reading import can_read, local_stream, peer_view, reading, stream_at
from gpualgo.shards._shards import ShardedArray


class Order(NamedTuple):
    """A sort order."""

    descending: Any
    bits: tuple[Any, Any]

    @property
    def is_whole(self) -> bool:
        """True if all bits are compared."""
        return self.bits == (0, None)

    @property
    def options(self) -> dict[str, Any]:
        """The order as keyword arguments of a sort."""
        options = {"descending": self.descending}
        return (
            options
            if self.is_whole
            else {**options, "begin_bit": self.bits[0], "end_bit": self.bits[1]}
        )


def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: Any = 0,
    end_bit: Any = None, axis: Any = -1,
) -> Any:  # fmt: skip
    """Return stably sorted keys, and values moved with them: ``keys[p]``, p = ``argsort(keys)``.

    Parameters and result are those of `gpualgo.radix_sort`, with arrays that are sharded alike; the
    result has the same bits, and is sharded like keys. An array of several rows must be sorted
    along an axis that is not sharded.

    Notes
    -----
    Each device sorts its shard, then gets the keys of its part of the result from all others, and
    merges them pairwise while further ones are copied. Merging reads and writes each element log2 P
    times for P devices; with `begin_bit` or `end_bit` the part is sorted again instead. The bounds
    of the parts are found in one kernel, for which the host waits; if GPUs cannot read each other's
    memory, by the host, in four rounds for 2^31 keys. Each device needs memory for three times what
    it sorts.
    """
    return _sort("radix_sort", keys, values, Order(descending, (begin_bit, end_bit)), axis)


def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: Any = -1
) -> Any:
    """Return keys stably sorted by value, and values moved with them; as `radix_sort`."""
    if less is not None:
        refuse("sort", "less= is given, and sharded keys are sorted by value", "leave less out")
    return _sort("sort", keys, values, Order(descending, (0, None)), axis)


def line_of(keys: Any, where: str, name: str, axis: Any) -> tuple[Argument, int]:
    """Parse keys and return the axis to sort along; None flattens the keys."""
    key_arg = taken(keys, where, name)
    sort_axis = checks.axis_of(checks.plain_axis(axis, where), key_arg.first.ndim, where)
    return (key_arg.flat(where), 0) if sort_axis is None else (key_arg, sort_axis)


def one_row(keys: Argument, line: int, where: str) -> None:
    """Raise ValueError unless there is a single row along the sharded axis."""
    if keys.first.ndim > 1:
        refuse(
            where, f"the rows along axis {line} are sharded, in shape {keys.first.shape}",
            "pass gpualgo.distribute(x, axis=…) with another axis",
        )  # fmt: skip


def _sort(func_name: str, keys: Any, values: Any, order: Order, axis: Any) -> Any:
    """Sort keys; with values return a pair."""
    k_arg, sort_axis = line_of(keys, func_name, "keys", axis)
    v_arg = None
    if values is not None:
        unflattened = taken(keys, func_name, "keys").first
        v_arg = taken(values, func_name, "values", unflattened)
        v_arg = v_arg if k_arg.first.ndim == unflattened.ndim else v_arg.flat(func_name)
    first, call = k_arg.first, ga.sort if func_name == "sort" else ga.radix_sort

    def options(i: int) -> dict[str, Any]:
        v = None if v_arg is None else v_arg.on(i)
        return {"values": v, "axis": sort_axis, **order.options}

    asked(call, k_arg.places[0], k_arg.on(0), **options(0))
    if sort_axis != first.axis:
        rows = on_each(first.places, k_arg.seats, lambda i: call(k_arg.on(i), **options(i)))
        pairs = [row if v_arg is not None else (row, None) for row in rows]
        results = [built([pair[0] for pair in pairs], first.places, first.axis)]
        if v_arg is not None:
            results.append(built([pair[1] for pair in pairs], first.places, first.axis))
        return results[0] if v_arg is None else tuple(results)
    one_row(k_arg, sort_axis, func_name)
    pieces = long_row(k_arg, v_arg, order)
    sorted_keys = built([k_arg.packed(v) for v, _ in pieces], first.places, 0)
    if v_arg is None:
        return sorted_keys
    return sorted_keys, built([v_arg.packed(v) for _, v in pieces], first.places, 0)


def long_row(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Sort a row along the sharded axis; return each device's part of it.

    Chunk by chunk: the slices of the next chunk arrive while one is merged.
    """
    runs = sorted_runs(keys, values, order)
    if len(runs) == 1:
        return runs
    if not order.is_whole:
        borders = cut_runs(keys, runs, order, list(accumulate(keys.first.lengths))[:-1])
        pieces = exchanged(keys, runs, borders)
        return on_each(
            keys.places, keys.seats,
            lambda i: _sorted_again(pieces[i], keys, values, order, keys.places[i]),
        )  # fmt: skip
    ends, starts = chunk_ends(keys, values), keys.first.starts
    # Allocate before the host waits for the cuts: the GPUs are idle after that wait.
    outputs = on_each(keys.places, keys.seats, lambda i: room_at(keys, values, i))
    has_copies = len({device.number for device in keys.places}) > 1
    receive_buffers = (
        on_each(keys.places, keys.seats, lambda i: room_at(keys, values, i)) if has_copies else []
    )
    borders = cut_runs(keys, runs, order, ends[:-1])
    chunks = len(ends) // len(runs)
    with chunked_exchange(keys, runs, borders, receive_buffers) as (pieces, wait):
        for chunk in range(chunks):
            wait(chunk)

            def merge_chunk(i: int, chunk: int = chunk) -> None:
                row = i * chunks + chunk
                low = ends[row - 1] - starts[i] if chunk else 0
                key_outs, value_outs = outputs[i]
                high = ends[row] - starts[i]
                target = [[cut(x, 0, low, high) for x in part] for part in (key_outs, value_outs)]
                merge_into((target[0], target[1]), pieces[row], keys, values, order.descending)

            on_each(keys.places, keys.seats, merge_chunk)
    return outputs


def _sorted_again(
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Place
) -> Piece:
    """Join slices and sort them: merges cannot compare selected bits."""
    key_arrays, value_arrays = joined(pieces, place, keys.first.library)
    if values is None:
        return leaves_of(ga.radix_sort(keys.packed(key_arrays), **order.options))[0], []
    pair = ga.radix_sort(keys.packed(key_arrays), values.packed(value_arrays), **order.options)
    return leaves_of(pair[0])[0], leaves_of(pair[1])[0]


def sorted_runs(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Sort each shard."""
    arrays = keys.arrays if values is None else (*keys.arrays, *values.arrays)

    def call(i: int) -> Piece:
        shards = [x.shards[i] for x in arrays]
        with local_stream(keys.places[i], shards, keys.first.library) as stream:
            if values is None:
                result = ga.radix_sort(keys.on(i), **order.options, stream=stream)
                return leaves_of(result)[0], []
            result = ga.radix_sort(keys.on(i), values.on(i), **order.options, stream=stream)
            return leaves_of(result[0])[0], leaves_of(result[1])[0]

    return on_each(keys.places, keys.seats, call)


def cut_runs(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int]
) -> np.ndarray[Any, Any]:
    """Return where runs are cut: a row for each rank, between rows for both ends.

    A kernel of the first device computes the cuts if it can read all runs; otherwise the host does.
    """
    ends = np.array([run_keys[0].shape[0] for run_keys, _ in runs], np.int64)
    arrays = [x for run_keys, _ in runs for x in run_keys]
    views = [[view_of(x, "a run") for x in run_keys] for run_keys, _ in runs]
    first = keys.places[:1]
    if order.is_whole and can_cut(views, len(ranks)) and can_read(first, arrays):
        with reading(first, arrays, keys.first.library), first[0].running():
            cuts = _cut_by_kernel(keys, runs, order, ranks)
    else:
        cuts = _splitters.cuts(_as_runs(keys, runs, order), ranks)
    return np.concatenate([np.zeros((1, len(runs)), np.int64), cuts, ends[None]])


def _cut_by_kernel(
    keys: Argument, runs: list[Piece], order: Order, ranks: list[int]
) -> np.ndarray[Any, Any]:
    device, library = keys.places[0], keys.first.library
    views = [keys.packed([peer_view(x, device, library) for x in run_keys]) for run_keys, _ in runs]
    result = device.empty((len(ranks), len(runs)), np.dtype(np.int64), library)
    target, stream = peer_view(result, device, library), stream_at(device, library)
    run_cuts(views, ranks, order.descending, out=target, stream=stream)
    return on_host(result)


def _as_runs(keys: Argument, runs: list[Piece], order: Order) -> _splitters.Runs:
    arrays = [
        ShardedArray([run_keys[field] for run_keys, _ in runs], keys.places, 0)
        for field in range(len(keys.arrays))
    ]
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    return _splitters.Runs(keys._replace(arrays=tuple(arrays)), order.descending, bits)
