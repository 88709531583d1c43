"""Elementwise calls, selections, sorts and reductions by key, whose results are sharded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.cuda import Runs as MergedRuns
from gpualgo._algorithms.merge_sort.cuda import can_merge
from gpualgo._algorithms.merge_sort.problem import descending_of
from gpualgo._algorithms.radix_sort.cuts import Table, sample_width
from gpualgo._algorithms.radix_sort.problem import sort_and_order
from gpualgo._algorithms.runs import RunLengthEncoded
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._arrays.view import View, view_of
from gpualgo._distributed import MERGES, Order, check_index_dtype, fields_of, joints
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _arguments, _devices
from gpualgo.shards._arguments import Argument, Dtypes, infer_result, parse_argument, refuse
from gpualgo.shards._devices import cut
from gpualgo.shards._folds import exclusive_scan
from gpualgo.shards._shards import ShardedArray

# --- `transform`: one call per shard.


def transform(op: Any, *arrays: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`; arguments are numbers, and arrays of one
    shape that are sharded alike. The result is sharded like them. Nothing is copied between
    devices, and the host does not wait.
    """
    arguments, first = list(arrays), None
    for k, x in enumerate(arrays):
        if not is_scalar(x):
            arguments[k] = parse_argument(x, "transform", f"argument {k}", first and first.first)
            first = first or arguments[k]
    assert first is not None  # the caller dispatches here only for sharded arguments

    def call(i: int) -> Any:
        local_args = [x.on(i) if isinstance(x, Argument) else x for x in arguments]
        return ga.transform(op, *local_args, dtype=dtype)

    return first.mapped(call)


# --- `adjacent_difference`: each shard alone, then its first element with the one before it.


def adjacent_difference(x: Any, op: Any = operator.sub, *, axis: Any = -1) -> Any:
    """Return elements combined with the one before: ``y[0] = x[0]``, ``y[i] = op(x[i], x[i-1])``.

    Parameters are those of `gpualgo.adjacent_difference`; the result is sharded like x. Along the
    sharded axis the last element of each shard, or row, is copied to the next device. The host does
    not wait.
    """
    where = "adjacent_difference"
    x_arg, line = parse_argument(x, where).line(checks.integer(axis, "axis", where))
    results = x_arg.run(lambda i: ga.adjacent_difference(x_arg.on(i), op, axis=line))
    if line != x_arg.first.axis:
        return x_arg.built(results, x_arg.first.axis)
    moves = []
    for before, i in pairwise(x_arg.full):
        n = x_arg.first.lengths[before]
        moves += [(x_arg.places[i], cut(x.shards[before], line, n - 1, n)) for x in x_arg.arrays]
    moved = iter(_devices.to_devices(moves, x_arg.first.library))

    def first(i: int) -> None:
        last = x_arg.packed([next(moved) for _ in x_arg.arrays])
        own = x_arg.packed([cut(x.shards[i], line, 0, 1) for x in x_arg.arrays])
        outs = [cut(out, line, 0, 1) for out in fields_of(results[i])[0]]
        ga.transform(op, own, last, out=x_arg.packed(outs))

    x_arg.run(first, x_arg.full[1:])
    return x_arg.built(results, line)


# --- `select`: filters each shard and redistributes the result evenly.


def select(x: Any, predicate: Any, *, balance: Any = True) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters are those of `gpualgo.select`, with arrays that are sharded alike; arrays of several
    dimensions must be sharded along the first. The result is one-dimensional. Its shards have equal
    lengths; with ``balance=False`` elements stay on their devices.

    Notes
    -----
    Each device reads its shard once and writes to an array as long as the shard. The host waits
    once for the number of elements of all devices; then elements are copied to the devices of their
    shards, which takes about as long as the selection.
    """
    balance = checks.flag_argument(balance, "balance", "select")
    x_arg, arguments = _arguments.parse_predicate("select", x, predicate, is_flat=True)
    *dtypes, _ = infer_result(ga.select, x_arg.places[0], *arguments(0))
    kept = call_with_counts(ga.select, x_arg, arguments, tuple(dtypes), x_arg.packed)
    if not balance:
        return x_arg.built([x_arg.packed(parts) for parts in kept])
    first = x_arg.first
    lengths = _devices.shares(sum(parts[0].shape[0] for parts in kept), len(x_arg.places))
    outputs = [
        _devices.spread(pieces, 0, first.places, lengths, 0, first.library)
        for pieces in zip(*kept, strict=True)
    ]
    return x_arg.packed([ShardedArray(shards, first.places, 0) for shards in outputs])


# --- `run_length_encode`: of each shard; runs that go on in the next shard are joined.


def run_length_encode(x: Any, *, eq: Any = None) -> Any:
    """Return the first element of each run of equal elements, and the lengths of the runs.

    Parameters and result are those of `gpualgo.run_length_encode`, with sharded arrays for arrays;
    those of several dimensions must be sharded along the first. A run is in the shard where it
    begins.

    Notes
    -----
    Each device reads its shard once. The host waits for the number of runs in each, and for whether
    the first run of each shard continues the one before.
    """
    where = "run_length_encode"
    x_arg = parse_argument(x, where).flat()
    first, pack = x_arg.first, x_arg.packed
    *dtypes, _ = infer_result(ga.run_length_encode, x_arg.places[0], x_arg.on(0), eq=eq)
    parts = call_with_counts(
        ga.run_length_encode, x_arg, lambda i: (x_arg.on(i),), tuple(dtypes),
        lambda parts: (pack(parts[:-1]), parts[-1]), eq=eq,
    )  # fmt: skip

    def is_same_run(before: int, i: int) -> bool:
        """Return whether the first element of a shard is in the last run of one before it."""
        n = first.lengths[before]
        ends = [[cut(x.shards[before], 0, n - 1, n), cut(x.shards[i], 0, 0, 1)]
                for x in x_arg.arrays]  # fmt: skip
        both = [_devices.one_after_another(each, x_arg.places[i], first.library) for each in ends]
        (found,) = x_arg.run(lambda _: ga.run_length_encode(pack(both), eq=eq), [i])
        return bool(found.lengths.shape[0] == 1)

    heads = _devices.all_on_host([cut(lengths, 0, 0, 1) for *_, lengths in parts])
    edges = [(part[-1].shape[0], i, int(heads[i].sum()), i) for i, part in enumerate(parts)]
    found = joints(edges, is_same_run, operator.add)

    def own_runs(i: int) -> RunLengthEncoded:
        start, more, _ = found[i]
        *values, lengths = (cut(part, 0, start, part.shape[0]) for part in parts[i])
        count = lengths.shape[0]
        if more and count:
            last = cut(lengths, 0, count - 1, count)
            ga.transform(operator.add, last, more, out=last)
        return RunLengthEncoded(pack(values), lengths)

    return x_arg.built(x_arg.run(own_runs))


def call_with_counts(
    function: Any, source: Argument, arguments: Callable[[int], tuple[Any, ...]], dtypes: Dtypes,
    packed: Callable[[list[Any]], Any], **options: Any,
) -> list[list[Any]]:  # fmt: skip
    """Return the arrays that a call gives for each shard, where lengths depend on the data.

    All calls are queued, with outputs of maximal length, before the host waits.
    """
    first = source.first

    def queued(i: int) -> list[Any]:
        device, length = first.places[i], first.lengths[i]
        outs = [device.empty((length,), dtype, first.library) for dtype in dtypes]
        count = device.empty((), np.dtype(np.int64), first.library)
        # Arguments have been read once the count is known.
        with _devices.local_stream(device, (), first.library) as stream:
            out_args = {"out": packed(outs), "out_count": count, "stream": stream}
            function(*arguments(i), **out_args, **options)
        return [*outs, count]

    outputs = source.run(queued)
    counts = _devices.all_on_host([count for *_, count in outputs])
    return [
        [cut(out, 0, 0, int(count)) for out in outs]
        for (*outs, _), count in zip(outputs, counts, strict=True)
    ]


# --- Exact cuts of sorted runs on several devices: the host reads samples, then a few keys.

SAMPLES = 1 << 12  # of each run of distinct keys

Span = tuple[int, int, int]
"""Indices into a run: start, stop, step."""


def keys_at(
    keys: Argument, spans: Sequence[Sequence[Span]]
) -> list[list[list[np.ndarray[Any, Any]]]]:
    """Return keys of each run on the host: for each span, an array for each field.

    Each device's keys come in one copy; the copies of all devices overlap.
    """

    def gathered(i: int) -> list[Any]:
        place, library = keys.places[i], keys.first.library
        slices = [[x.shards[i][slice(*span)] for span in spans[i]] for x in keys.arrays]
        return [_devices.one_after_another(parts, place, library) for parts in slices]

    fetched = keys.run(gathered)
    arrays = iter(_devices.all_on_host([part for parts in fetched for part in parts]))
    result = []
    for run_spans in spans:
        borders = list(accumulate(len(range(*span)) for span in run_spans))[:-1]
        split = (np.split(next(arrays), borders) for _ in keys.arrays)
        result.append([list(parts) for parts in zip(*split, strict=True)])
    return result


def exact_cuts(keys: Argument, order: Order) -> Table:
    """Return where the slices of each run begin: a row for each device, and one for the end."""
    lengths = keys.first.lengths
    ranks, width = list(accumulate(lengths))[:-1], sample_width(lengths)
    samples = keys_at(keys, [[(width - 1, length, width)] for length in lengths])
    with default_device.Fixed(CPU, "splitters are found on the host"):
        spans = order.brackets([parts for (parts,) in samples], lengths, ranks, width)
        pairs = np.stack([*spans, np.ones_like(spans[0])], 2).tolist()  # of each rank, in each run
        windows = keys_at(keys, list(zip(*pairs, strict=True)))
        return order.borders(windows, spans, lengths, ranks)


# --- Send slices of sorted runs to the devices that own their range.

Run = list[Any]
"""The arrays of sorted keys and of what is moved with them, all on one device."""


def exchanged(keys: Argument, runs: list[Run], borders: Table) -> list[Run]:
    """Return for each device its slices of all runs, one after the other."""
    places, fields = keys.places, range(len(runs[0]))
    parts = [
        [cut(run[f], 0, *map(int, borders[i : i + 2, k])) for k, run in enumerate(runs)]
        for f in fields for i in keys.seats
    ]  # fmt: skip
    arrays = _devices.concatenated(parts, places * len(fields), keys.first.library, are_ours=True)
    return [arrays[i :: len(places)] for i in keys.seats]


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
    Each device sorts its shard; then it merges its part of the result from the sorted shards of
    all, which it reads in place, once. The host does not wait. If GPUs cannot read each other's
    memory, and with `begin_bit` or `end_bit`, the host finds the bounds of the parts, in two
    rounds; slices are copied and sorted again. Each device needs memory for three
    times what it sorts.
    """
    return _sort("radix_sort", keys, values, axis, (descending, begin_bit, end_bit))


def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: Any = -1
) -> Any:
    """Return keys stably sorted by value, and values moved with them; as `radix_sort`."""
    if less is not None:
        refuse("sort", "less= is given, and sharded keys are sorted by value", "leave less out")
    return _sort("sort", keys, values, axis, (descending,))


def _sort(func_name: str, keys: Any, values: Any, axis: Any, options_of_order: Any) -> Any:
    """Sort keys; with values return a pair."""
    whole, v_arg = parse_argument(keys, func_name, "keys"), None
    k_arg, sort_axis = whole.line(axis)
    if values is not None:
        v_arg = parse_argument(values, func_name, "values", whole.first)
        v_arg = v_arg if k_arg.first.ndim == whole.first.ndim else v_arg.flat()
    order = Order(k_arg.form, *options_of_order)
    first, call = k_arg.first, ga.sort if func_name == "sort" else ga.radix_sort

    def options(i: int) -> dict[str, Any]:
        v = None if v_arg is None else v_arg.on(i)
        return {"values": v, "axis": sort_axis, **order.options}

    infer_result(call, k_arg.places[0], k_arg.on(0), **options(0))
    if sort_axis != first.axis:
        return k_arg.mapped(lambda i: call(k_arg.on(i), **options(i)))
    k_arg.require_one_row(sort_axis)
    count = len(k_arg.arrays)

    def packed(run: Run) -> Any:
        sorted_keys = k_arg.packed(run[:count])
        return sorted_keys if v_arg is None else (sorted_keys, v_arg.packed(run[count:]))

    return k_arg.built([packed(run) for run in long_row(k_arg, v_arg, order)])


def long_row(
    keys: Argument, values: Argument | None, order: Order, index_dtype: Any = None
) -> list[Run]:
    """Sort a row along the sharded axis; return each device's part of it.

    `index_dtype`: instead of values the positions of the keys are wanted, and no keys.
    """
    has_indices, count = index_dtype is not None, len(keys.arrays)
    runs = sorted_runs(keys, values, order, has_indices)
    views = [[view_of(x, "a run") for x in run] for run in runs]
    arrays = [x for run in runs for x in run]
    is_read = len(runs) > 1 and order.has_all_bits and can_merge(views, count)
    if is_read and _devices.can_read(keys.places, arrays):
        with _devices.reading(keys.places, arrays, keys.first.library):
            return _merged(keys, order, views, index_dtype)
    if has_indices:
        starts, local = keys.first.starts, runs

        def with_global_indices(i: int) -> Run:
            start = index_dtype.type(starts[i])
            indices = ga.transform(operator.add, local[i][count], start, dtype=index_dtype)
            return [*local[i][:count], indices]

        runs = keys.run(with_global_indices)
    if len(runs) > 1:
        sorted_keys = keys.with_shards([run[:count] for run in runs])
        pieces = exchanged(keys, runs, exact_cuts(sorted_keys, order))
        runs = keys.run(lambda i: _sorted_again(pieces[i], keys, values, order))
    return [run[count:] for run in runs] if has_indices else runs


def _merged(keys: Argument, order: Order, views: list[list[View]], index_dtype: Any) -> list[Run]:
    """Merge each device's part from the runs of all, which its kernel reads."""
    starts, lengths, library = keys.first.starts, keys.first.lengths, keys.first.library
    count, index_bytes = len(keys.arrays), 0 if index_dtype is None else index_dtype.itemsize
    dtypes = [view.dtype for view in views[0]]
    directions = descending_of(order.descending, keys.form, None, "radix_sort")
    sizes = tuple(dtype.itemsize for dtype in dtypes[count:])
    merged = MergedRuns(tuple(dtypes[:count]), sizes, directions, lengths, index_bytes)
    if index_bytes:
        dtypes = [index_dtype]
    sources = [view.ptr for fields in views for view in fields]

    def merge(i: int) -> Run:
        device, begin, length = keys.places[i], starts[i], lengths[i]
        outs = [device.empty((length,), dtype, library) for dtype in dtypes]
        if length:
            addresses = [*sources, *(view_of(x, "a part").ptr for x in outs)]
            stream = _devices.stream_at(device, library)
            merged.merge(begin, begin + length, device.number, stream, addresses)
        return outs

    return keys.run(merge)


def _sorted_again(run: Run, keys: Argument, values: Argument | None, order: Order) -> Run:
    """Sort joined slices."""
    key_arrays, moved = run[: len(keys.arrays)], run[len(keys.arrays) :]
    packed: Any = [keys.packed(key_arrays)]
    if moved:
        packed.append(moved[0] if values is None else values.packed(moved))
    return fields_of(ga.radix_sort(*packed, **order.options))[0]


def sorted_runs(
    keys: Argument, values: Argument | None, order: Order, has_indices: bool
) -> list[Run]:
    """Sort each shard, with the values or with the keys' positions in their shard."""
    arrays = keys.arrays if values is None else (*keys.arrays, *values.arrays)
    lengths = keys.first.lengths
    positions = np.dtype(np.uint32 if max(lengths) <= 1 << 32 else np.uint64)

    def call(i: int) -> Run:
        shards, place = [x.shards[i] for x in arrays], keys.places[i]
        with _devices.local_stream(place, shards, keys.first.library) as stream:
            if has_indices and keys.form is None and place.number != CPU:
                return [*sort_and_order(shards[0], order.descending, positions, stream)]
            moved = None if values is None else values.on(i)
            if has_indices:
                name: Any = "cpu" if place.number == CPU else place.name
                moved = ga.lazy.arange(lengths[i], dtype=positions, device=name)
            return fields_of(ga.radix_sort(keys.on(i), moved, **order.options, stream=stream))[0]

    return keys.run(call)


# --- Argsort of sharded keys: a sort by key, with indices of which each merge makes global ones.


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort sharded keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with sharded arrays for arrays; along the
    sharded axis the result holds indices into the whole array. Cost and memory are those of
    `radix_sort` with indices as values.
    """
    func_name = "argsort"
    key_arg, sort_axis = parse_argument(keys, func_name, "keys").line(axis)
    first = key_arg.first
    options = {"descending": descending, "axis": sort_axis, "dtype": dtype}
    (dtype_,) = infer_result(ga.argsort, key_arg.places[0], key_arg.on(0), **options)
    check_index_dtype(dtype_, first.shape[sort_axis])
    if sort_axis != first.axis:
        return key_arg.mapped(lambda i: ga.argsort(key_arg.on(i), **options))
    key_arg.require_one_row(sort_axis)
    pieces = long_row(key_arg, None, Order(key_arg.form, descending), dtype_)
    return key_arg.built([indices for (indices,) in pieces])


# --- `reduce_by_key`: reduces each shard by key, then exchanges ranges of keys and reduces again.


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, consecutive: Any = False,
    eq: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of each key combined: ``aggregate = init op x[i] op x[j] op …``.

    Parameters and result are those of `gpualgo.reduce_by_key`, with arrays that are sharded alike;
    arrays of several dimensions must be sharded along the first. Keys may be in any order;
    `consecutive` is not supported. The result is sharded: distinct keys ascend from shard to shard,
    and the lengths of shards depend on the data.

    Notes
    -----
    Each device reduces its shard by key. Then each device gets a range of keys, about as many as
    the others, and reduces these by key again, in the order of the shards. The host waits for the
    number of keys, for samples of them, and for the bounds of the ranges.
    """
    where = "reduce_by_key"
    if checks.flag_argument(consecutive, "consecutive", where) or eq is not None:
        refuse(
            where, "consecutive= or eq= is given, but runs may continue across shards",
            "leave it out",
        )  # fmt: skip
    k_arg = parse_argument(keys, where, "keys")
    x_arg = parse_argument(x, where, "x", k_arg.first)
    k_arg, x_arg = k_arg.flat(), x_arg.flat()
    return _by_key(k_arg, x_arg.on, x_arg.packed, init, op, dtype)


def unique(
    x: Any, *, consecutive: Any = False, return_index: Any = False, return_inverse: Any = False,
    return_counts: Any = False,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, or the first of each run (`consecutive`).

    Parameters and result are those of `gpualgo.unique`, with sharded arrays for arrays; those of
    several dimensions must be sharded along the first. `return_inverse` is not supported. The
    result is sharded like that of `reduce_by_key`, with `consecutive` of `run_length_encode`, which
    tell the cost.
    """
    where = "unique"
    flags = {"consecutive": consecutive, "return_inverse": return_inverse,
             "return_index": return_index, "return_counts": return_counts}  # fmt: skip
    consecutive, inverse, index, counts = [
        checks.flag_argument(flag, name, where) for name, flag in flags.items()
    ]
    k_arg = parse_argument(x, where).flat()
    if inverse:
        refuse(where, "return_inverse is not supported", "leave it out")
    if consecutive:
        with checks.renamed_errors(where, "run_length_encode"):
            values, lengths = run_length_encode(x)
        more = [exclusive_scan(lengths)] * index + [lengths] * counts
        return (values, *more) if more else values

    def combined_of(i: int) -> Any:
        """Return what is combined of equal elements: their first index, their number, or both."""
        first, number = k_arg.first, ga.lazy.full((k_arg.first.lengths[i],), 1)
        indices = ga.lazy.arange(first.starts[i], first.starts[i] + first.lengths[i])
        return (indices, number) if index and counts else indices if index else number

    pack = tuple if index and counts else operator.itemgetter(0)
    with checks.renamed_errors(where, "reduce_by_key", {"keys": "x", "a key": "x"}):
        found, combined = _by_key(k_arg, combined_of, pack, None, MERGES[index, counts], None)
    if index and counts:
        return found, *combined
    return (found, combined) if index or counts else found


def _by_key(
    k_arg: Argument, values: Callable[[int], Any], pack: Callable[[Any], Any], init: Any, op: Any,
    dtype: Any,
) -> Any:  # fmt: skip
    """Return the distinct keys and what is combined of each shard's values, of parts packed so."""
    options = {"dtype": dtype, "consecutive": True}  # only checked here; the call sorts first
    *dtypes, _ = infer_result(
        ga.reduce_by_key, k_arg.places[0], k_arg.on(0), values(0), init, op, **options
    )
    count = len(k_arg.arrays)
    acc = pack(tuple(dtypes[count:]))
    parts = call_with_counts(
        ga.reduce_by_key, k_arg, lambda i: (k_arg.on(i), values(i), None, op), tuple(dtypes),
        lambda parts: (k_arg.packed(parts[:count]), pack(parts[count:])), dtype=acc,
    )  # fmt: skip
    runs = _by_ranges(k_arg, parts)

    def merged(i: int) -> Any:
        keys, x = k_arg.packed(runs[i][:count]), pack(runs[i][count:])
        return ga.reduce_by_key(keys, x, init, op, dtype=acc)

    return k_arg.built(k_arg.run(merged))


def _by_ranges(keys: Argument, runs: list[Run]) -> list[Run]:
    """Return for each device the slices of all runs whose keys are in its range, joined."""
    order, distinct = Order(keys.form), keys.with_shards([run[: len(keys.arrays)] for run in runs])
    lengths = distinct.first.lengths
    widths = [max(1, length // SAMPLES) for length in lengths]
    spans = [[(width - 1, n, width)] for width, n in zip(widths, lengths, strict=True)]
    samples = [parts for (parts,) in keys_at(distinct, spans)]
    with default_device.Fixed(CPU, "splitters are found on the host"):
        chosen = order.splitters(list(zip(samples, widths, strict=True)), len(runs))
    cuts = np.zeros((len(runs) - 1, len(runs)), np.int64)
    if chosen is not None:

        def cuts_of(i: int) -> Any:
            wanted = _devices.to_devices([(keys.places[i], x) for x in chosen], keys.first.library)
            return ga.searchsorted(distinct.on(i), keys.packed(wanted), side="right")

        cuts = np.stack(_devices.all_on_host(keys.run(cuts_of)), 1)
    ends = [np.zeros((1, len(runs)), np.int64), cuts, np.array([lengths], np.int64)]
    return exchanged(keys, runs, np.concatenate(ends))
