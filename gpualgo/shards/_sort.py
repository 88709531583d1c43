"""Sorts, and reductions by keys that are sorted: each device merges its part of all runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.cuda import Runs as MergedRuns
from gpualgo._algorithms.merge_sort.cuda import can_merge
from gpualgo._algorithms.merge_sort.problem import descending_of
from gpualgo._algorithms.radix_sort.problem import sort_and_order
from gpualgo._arrays.view import View, view_of
from gpualgo._base import threads
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._arguments import Argument, fields_of, infer_result, parse_argument, refuse
from gpualgo.shards._devices import (
    Device,
    Piece,
    can_read,
    cut,
    joined,
    local_stream,
    reading,
    to_devices,
)
from gpualgo.shards._elementwise import call_with_counts

# --- Exact cuts of sorted runs on several devices, in a few rounds that read few keys each.
#
# A round asks each device once, for keys at indices that the host chooses. Samples of the
# open ranges narrow them; once they are small, all of their keys are read. Elements are
# ordered by key, equal keys by run and index.

FEW = 1 << 13  # open elements that the host reads completely
SAMPLES = 1 << 12  # per rank, over all runs

Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""The lower and upper bounds of the cut in each run."""
Span = tuple[int, int, int]
"""Indices into a run: start, stop, step."""


class Runs:
    """Sorted runs, one on each device."""

    def __init__(self, keys: Argument, directions: Any, bits: tuple[int, int | None]) -> None:
        self.keys, self.directions, self.bits = keys, directions, bits
        self.lengths = keys.first.lengths

    def order(self, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return the indices that sort host keys stably."""
        if self.bits != (0, None):
            parts = [_bits(parts[0], *self.bits)]
        with default_device.fixed(CPU, "splitters are found on the host"):
            order: np.ndarray[Any, Any] = ga.argsort(
                self.keys.packed(parts), descending=self.directions
            )
        return order

    def at(self, spans: Sequence[Sequence[Span]]) -> list[list[list[np.ndarray[Any, Any]]]]:
        """Return keys of each run on the host: for each span, an array for each field.

        Each device's keys come in one copy; the copies of all devices overlap.
        """
        counts = [[len(range(*span)) for span in run_spans] for run_spans in spans]
        seats = [i for i in self.keys.seats if sum(counts[i])]
        fetched = self.keys.run(
            lambda i: [_gather(x, i, spans[i], counts[i]) for x in self.keys.arrays], seats
        )
        arrays = iter(_devices.all_on_host([part for parts in fetched for part in parts]))
        result = []
        for i in self.keys.seats:
            empty = (np.empty(0, x.dtype) for x in self.keys.arrays)
            parts_ = [next(arrays) if i in seats else next(empty) for _ in self.keys.arrays]
            borders = list(accumulate(counts[i]))[:-1]
            split = (np.split(x, borders) for x in parts_)
            result.append([list(parts) for parts in zip(*split, strict=True)])
        return result


def _gather(x: Any, i: int, spans: Sequence[Span], counts: Sequence[int]) -> Any:
    """Return the elements of a shard in spans, concatenated on its device."""
    shard, device = x.shards[i], x.places[i]
    if len(spans) == 1:
        begin, end, step = spans[0]
        return shard[begin:end:step]
    target = device.empty((sum(counts),), x.dtype, x.library)
    offset = 0
    for (begin, end, step), count in zip(spans, counts, strict=True):
        if count:
            ga.copy(shard[begin:end:step], out=target[offset : offset + count])
        offset += count
    return target


def exact_cuts(runs: Runs, ranks: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return where each run is cut: a row for each rank; ranks ascend."""
    count = len(runs.lengths)
    bounds: list[Ends] = [((0,) * count, tuple(runs.lengths))] * len(ranks)
    while any(_num_open(pair) > max(FEW, 8 * count) for pair in bounds):
        bounds = _narrowed(runs, ranks, bounds)
    return _final_cuts(runs, ranks, bounds)


def _num_open(bounds: Ends) -> int:
    """Return the number of elements between the bounds of a cut."""
    return sum(bounds[1]) - sum(bounds[0])


def _narrowed(runs: Runs, ranks: Sequence[int], bounds: list[Ends]) -> list[Ends]:
    """Narrow the bounds with samples."""
    threshold = max(FEW, 8 * len(runs.lengths))
    wide = list(dict.fromkeys(pair for pair in bounds if _num_open(pair) > threshold))
    widths = {pair: -(-_num_open(pair) // max(SAMPLES, 16 * len(runs.lengths))) for pair in wide}

    def sample(pair: Ends, i: int) -> Span:
        width = widths[pair]
        return pair[0][i] + width - 1, pair[1][i], width

    orders = dict(zip(wide, _orders(runs, wide, sample), strict=True))
    results = []
    for rank, pair in zip(ranks, bounds, strict=True):
        if pair in orders:
            low, high = pair
            lengths = [b - a for a, b in zip(low, high, strict=True)]
            missing = rank - sum(low)
            near, far = threads.narrowed(lengths, missing, widths[pair], orders[pair])
            pair = _shifted(low, near), _shifted(low, far)
        results.append(pair)
    return results


def _shifted(low: Sequence[int], offsets: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(low, offsets, strict=True))


def _final_cuts(runs: Runs, ranks: Sequence[int], bounds: list[Ends]) -> np.ndarray[Any, Any]:
    """Return the cuts, from all elements between the bounds."""
    distinct = list(dict.fromkeys(bounds))
    order_list = _orders(runs, distinct, lambda pair, i: (pair[0][i], pair[1][i], 1))
    orders = dict(zip(distinct, order_list, strict=True))
    rows = []
    for rank, (low, high) in zip(ranks, bounds, strict=True):
        lengths = [b - a for a, b in zip(low, high, strict=True)]
        offsets = threads.cut_in_order(lengths, rank - sum(low), orders[low, high])
        rows.append(_shifted(low, offsets))
    return np.array(rows, np.int64).reshape(len(ranks), len(runs.lengths))


def _orders(
    runs: Runs, bounds: Sequence[Ends], span: Callable[[Ends, int], Span]
) -> list[np.ndarray[Any, Any]]:
    """For each of several bounds, return the stable order of the keys in its spans."""
    run_keys = runs.at([[span(pair, run) for pair in bounds] for run in runs.keys.seats])
    fields = range(len(runs.keys.arrays))
    return [
        runs.order([np.concatenate([keys[i][field] for keys in run_keys]) for field in fields])
        for i in range(len(bounds))
    ]


def _bits(keys: Any, begin: int, end: int | None) -> Any:
    """Return the given bits as unsigned integers that sort like the keys (sign bit flipped)."""
    width = 8 * keys.dtype.itemsize
    unsigned = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "i":
        unsigned = unsigned ^ unsigned.dtype.type(1 << (width - 1))
    mask = (1 << ((width if end is None else end) - begin)) - 1
    return (unsigned >> unsigned.dtype.type(begin)) & unsigned.dtype.type(mask)


# --- Send slices of sorted runs to the devices that own their range.

Pieces = list[list[Piece]]
"""For each device, its slices in the order of the runs."""


def exchanged(keys: Argument, runs: list[Piece], borders: np.ndarray[Any, Any]) -> Pieces:
    """Return the slices of each run between borders, copied to the device that owns them.

    Each device reads from the next ones first, so that they do not all read from the same one.
    """
    num_runs = len(runs)

    def piece(row: int, source: int) -> Piece:
        begin, end = (int(border) for border in borders[row : row + 2, source])
        key_slices, value_slices = ([cut(x, 0, begin, end) for x in part] for part in runs[source])
        return key_slices, value_slices

    pieces = [[piece(row, source) for source in keys.seats] for row in keys.seats]
    pairs = [(i, (i + step) % num_runs) for step in range(num_runs) for i in keys.seats]
    moves = [(keys.places[i], x) for i, k in pairs for part in pieces[i][k] for x in part]
    moved = iter(to_devices(moves, keys.first.library, are_ours=True))
    for i, k in pairs:
        keys_, values_ = pieces[i][k]
        pieces[i][k] = [next(moved) for _ in keys_], [next(moved) for _ in values_]
    return pieces


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
        bits = {} if self.is_whole else {"begin_bit": self.bits[0], "end_bit": self.bits[1]}
        return {"descending": self.descending, **bits}


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
    memory, and with `begin_bit` or `end_bit`, the host finds the bounds of the parts, in four
    rounds for 2^31 keys; slices are copied and sorted again. Each device needs memory for three
    times what it sorts.
    """
    return _sort("radix_sort", keys, values, Order(descending, (begin_bit, end_bit)), axis)


def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: Any = -1
) -> Any:
    """Return keys stably sorted by value, and values moved with them; as `radix_sort`."""
    if less is not None:
        refuse("sort", "less= is given, and sharded keys are sorted by value", "leave less out")
    return _sort("sort", keys, values, Order(descending, (0, None)), axis)


def _sort(func_name: str, keys: Any, values: Any, order: Order, axis: Any) -> Any:
    """Sort keys; with values return a pair."""
    whole, v_arg = parse_argument(keys, func_name, "keys"), None
    k_arg, sort_axis = whole.line(axis, func_name)
    if values is not None:
        v_arg = parse_argument(values, func_name, "values", whole.first)
        v_arg = v_arg if k_arg.first.ndim == whole.first.ndim else v_arg.flat(func_name)
    first, call = k_arg.first, ga.sort if func_name == "sort" else ga.radix_sort

    def options(i: int) -> dict[str, Any]:
        v = None if v_arg is None else v_arg.on(i)
        return {"values": v, "axis": sort_axis, **order.options}

    infer_result(call, k_arg.places[0], k_arg.on(0), **options(0))
    if sort_axis != first.axis:
        rows = k_arg.run(lambda i: call(k_arg.on(i), **options(i)))
        if v_arg is None:
            return k_arg.built(rows, first.axis)
        return tuple(k_arg.built(each, first.axis) for each in zip(*rows, strict=True))
    k_arg.require_one_row(sort_axis, func_name)
    pieces = long_row(k_arg, v_arg, order)
    sorted_keys = k_arg.built([k_arg.packed(v) for v, _ in pieces])
    if v_arg is None:
        return sorted_keys
    return sorted_keys, k_arg.built([v_arg.packed(v) for _, v in pieces])


def long_row(
    keys: Argument, values: Argument | None, order: Order, index_dtype: Any = None
) -> list[Piece]:
    """Sort a row along the sharded axis; return each device's part of it.

    `index_dtype`: instead of values the positions of the keys are wanted, and no keys.
    """
    has_indices = index_dtype is not None
    runs = sorted_runs(keys, values, order, has_indices)
    arrays = [x for run_keys, moved in runs for x in (*run_keys, *moved)]
    views = [[view_of(x, "a run") for x in (*run_keys, *moved)] for run_keys, moved in runs]
    is_read = len(runs) > 1 and order.is_whole and can_merge(views, len(keys.arrays))
    if is_read and can_read(keys.places, arrays):
        with reading(keys.places, arrays, keys.first.library):
            return _merged(keys, order, views, index_dtype)
    if has_indices:
        starts, local = keys.first.starts, runs
        runs = keys.run(
            lambda i: (local[i][0], [_global_indices(local[i][1][0], starts[i], index_dtype)])
        )
    if len(runs) > 1:
        ranks = list(accumulate(keys.first.lengths))[:-1]
        cuts = exact_cuts(_as_runs(keys, runs, order), ranks)
        none, all_of = np.zeros((1, len(runs)), np.int64), np.array([keys.first.lengths], np.int64)
        pieces = exchanged(keys, runs, np.concatenate([none, cuts, all_of]))
        runs = keys.run(lambda i: _sorted_again(pieces[i], keys, values, order, keys.places[i]))
    return runs


def _merged(keys: Argument, order: Order, views: list[list[View]], index_dtype: Any) -> list[Piece]:
    """Merge each device's part from the runs of all, which its kernel reads."""
    starts, lengths, library = keys.first.starts, keys.first.lengths, keys.first.library
    count, index_bytes = len(keys.arrays), 0 if index_dtype is None else index_dtype.itemsize
    dtypes = [view.dtype for view in views[0]]
    directions = descending_of(order.descending, keys.form, None, "radix_sort")
    sizes = tuple(dtype.itemsize for dtype in dtypes[count:])
    merged = MergedRuns(tuple(dtypes[:count]), sizes, directions, lengths, index_bytes)
    if index_bytes:
        dtypes, count = [index_dtype], 0
    sources = [view.ptr for fields in views for view in fields]

    def merge(i: int) -> Piece:
        device, begin, length = keys.places[i], starts[i], lengths[i]
        outs = [device.empty((length,), dtype, library) for dtype in dtypes]
        if length:
            addresses = [*sources, *(view_of(x, "a part").ptr for x in outs)]
            stream = _devices.stream_at(device, library)
            merged.merge(begin, begin + length, device.number, stream, addresses)
        return outs[:count], outs[count:]

    return keys.run(merge)


def _sorted_again(
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Device
) -> Piece:
    """Join slices and sort them."""
    key_arrays, value_arrays = _devices.joined(pieces, place, keys.first.library)
    moved = value_arrays[0] if values is None and value_arrays else None
    moved = moved if values is None else values.packed(value_arrays)
    return _pair_of(ga.radix_sort(keys.packed(key_arrays), moved, **order.options), moved)


def _pair_of(result: Any, moved: Any) -> Piece:
    if moved is None:
        return fields_of(result)[0], []
    return fields_of(result[0])[0], fields_of(result[1])[0]


def sorted_runs(
    keys: Argument, values: Argument | None, order: Order, has_indices: bool
) -> list[Piece]:
    """Sort each shard, with the values or with the keys' positions in their shard."""
    arrays = keys.arrays if values is None else (*keys.arrays, *values.arrays)
    lengths = keys.first.lengths
    positions = np.dtype(np.uint32 if max(lengths) <= 1 << 32 else np.uint64)

    def call(i: int) -> Piece:
        shards, place = [x.shards[i] for x in arrays], keys.places[i]
        with local_stream(place, shards, keys.first.library) as stream:
            if has_indices and keys.form is None and place.number != CPU:
                pair = sort_and_order(shards[0], order.descending, positions, stream)
                return [pair[0]], [pair[1]]
            moved = None if values is None else values.on(i)
            if has_indices:
                name: Any = "cpu" if place.number == CPU else place.name
                moved = ga.lazy.arange(lengths[i], dtype=positions, device=name)
            result = ga.radix_sort(keys.on(i), moved, **order.options, stream=stream)
            return _pair_of(result, moved)

    return keys.run(call)


def _global_indices(positions: Any, start: int, dtype: Any) -> Any:
    """Return positions in a shard as positions in the whole row."""
    return ga.transform(operator.add, positions, np.int64(start), dtype=dtype)


def _as_runs(keys: Argument, runs: list[Piece], order: Order) -> Runs:
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    return Runs(keys.of([run_keys for run_keys, _ in runs]), order.descending, bits)


# --- Argsort of sharded keys: a sort by key, with indices of which each merge makes global ones.


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort sharded keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with sharded arrays for arrays; along the
    sharded axis the result holds indices into the whole array. Cost and memory are those of
    `radix_sort` with indices as values.
    """
    func_name, order = "argsort", Order(descending, (0, None))
    key_arg, sort_axis = parse_argument(keys, func_name, "keys").line(axis, func_name)
    first = key_arg.first
    options = {"descending": descending, "axis": sort_axis, "dtype": dtype}
    (dtype_,), _ = infer_result(ga.argsort, key_arg.places[0], key_arg.on(0), **options)
    length = first.shape[sort_axis]
    if length > int(np.iinfo(dtype_).max) + 1:
        raise ValueError(
            f"argsort: dtype {dtype_} is too narrow for indices below {length}; pass a wider dtype="
        )
    if sort_axis != first.axis:
        return key_arg.built(
            key_arg.run(lambda i: ga.argsort(key_arg.on(i), **options)), first.axis
        )
    key_arg.require_one_row(sort_axis, func_name)
    pieces = long_row(key_arg, None, order, dtype_)
    return key_arg.built([indices for _, (indices,) in pieces])


# --- `reduce_by_key`: reduces each shard by key, then exchanges ranges of keys and reduces again.

_BY_KEY = "reduce_by_key"


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
    number of keys and for the bounds of the ranges, as in `radix_sort`.
    """
    if checks.flag_argument(consecutive, "consecutive", _BY_KEY) or eq is not None:
        refuse(
            _BY_KEY, "consecutive= or eq= is given, but runs may continue across shards",
            "leave it out",
        )  # fmt: skip
    k_arg = parse_argument(keys, _BY_KEY, "keys")
    x_arg = parse_argument(x, _BY_KEY, "x", k_arg.first)
    k_arg, x_arg = k_arg.flat(_BY_KEY), x_arg.flat(_BY_KEY)
    device, first = x_arg.places[0], k_arg.first
    options = {"dtype": dtype, "consecutive": True}  # only checked here; the call sorts first
    (*dtypes, _), _ = infer_result(
        ga.reduce_by_key, device, k_arg.on(0), x_arg.on(0), init, op, **options
    )
    count = len(k_arg.arrays)
    acc = x_arg.packed(tuple(dtypes[count:]))
    parts = call_with_counts(
        ga.reduce_by_key, k_arg, lambda i: (k_arg.on(i), x_arg.on(i), None, op), tuple(dtypes),
        lambda parts: (k_arg.packed(parts[:count]), x_arg.packed(parts[count:])), dtype=acc,
    )  # fmt: skip
    runs: list[Piece] = [(part[:count], part[count:]) for part in parts]
    slices = _by_ranges(k_arg, runs)

    def merged(i: int) -> Any:
        part = joined(slices[i], k_arg.places[i], first.library)
        return ga.reduce_by_key(k_arg.packed(part[0]), x_arg.packed(part[1]), init, op, dtype=acc)

    return k_arg.built(k_arg.run(merged))


def _by_ranges(keys: Argument, runs: list[Piece]) -> list[list[Piece]]:
    """Return for each device the slices of all runs whose keys are in its range."""
    distinct = Runs(keys.of([keys_ for keys_, _ in runs]), False, (0, None))
    lengths = np.array(distinct.lengths, np.int64)
    ranks = np.cumsum(_devices.shares(int(lengths.sum()), len(runs)))[:-1].tolist()
    borders = _behind_equal_keys(distinct, exact_cuts(distinct, ranks))
    ends = [np.zeros((1, len(runs)), np.int64), borders, lengths[None]]
    return exchanged(keys, runs, np.concatenate(ends))


def _behind_equal_keys(runs: Runs, borders: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Move cuts behind all keys that are equal to the last key before them.

    A run has each key at most once, so the equal key is the one at the cut, if any.
    """
    count = len(runs.lengths)
    lengths = np.array(runs.lengths)
    cuts_of_runs = borders.T.tolist()
    keys_at_cuts = runs.at([  # the key before each cut, if any; then the key behind each
        [(max(0, c - 1), c, 1) for c in run_cuts] + [(c, min(c + 1, length), 1) for c in run_cuts]
        for run_cuts, length in zip(cuts_of_runs, runs.lengths, strict=True)
    ])  # fmt: skip
    moved = borders.copy()
    for row, border in enumerate(borders):
        before = [i for i in range(count) if border[i] > 0]
        behind = [i for i in range(count) if border[i] < lengths[i]]
        if not before or not behind:
            continue
        keys = [keys_at_cuts[i][row] for i in before]
        keys += [keys_at_cuts[i][len(borders) + row] for i in behind]
        ranks = _ranks(runs, [np.concatenate(parts) for parts in zip(*keys, strict=True)])
        last_rank = ranks[: len(before)].max()
        for i, rank in zip(behind, ranks[len(before) :], strict=True):
            moved[row, i] += rank == last_rank
    return moved


def _ranks(runs: Runs, keys: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return integers that sort like the keys."""
    packed = runs.keys.packed(keys)
    with default_device.fixed(CPU, "splitters are found on the host"):
        ranks: np.ndarray[Any, Any] = ga.searchsorted(ga.radix_sort(packed), packed)
    return ranks
