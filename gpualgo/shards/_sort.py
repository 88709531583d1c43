"""Sorts: a sorted run on each device, exact cuts, slices sent to their owners, and merges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.merge_sort.run_cuts import can_cut, run_cuts
from gpualgo._algorithms.merge_sort.tuning import MAX_RANKS
from gpualgo._arrays.view import view_of
from gpualgo._base import threads
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import (
    Argument,
    build_result,
    fields_of,
    infer_result,
    on_each,
    parse_argument,
    refuse,
)
from gpualgo.shards._devices import Device, all_on_host, copying, on_host, to_devices
from gpualgo.shards._moving import (
    Piece,
    can_read,
    cut,
    joined,
    local_stream,
    peer_view,
    reading,
    stream_at,
)
from gpualgo.shards._shards import ShardedArray

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

    def __init__(self, keys: Argument, ways: Any, bits: tuple[int, int | None]) -> None:
        self.keys, self.ways, self.bits = keys, ways, bits
        self.lengths = keys.first.lengths

    def order(self, parts: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return the indices that sort host keys stably."""
        if self.bits != (0, None):
            parts = [_bits(parts[0], *self.bits)]
        with default_device.fixed(CPU, "splitters are found on the host"):
            order: np.ndarray[Any, Any] = ga.argsort(self.keys.packed(parts), descending=self.ways)
        return order

    def at(self, spans: Sequence[Sequence[Span]]) -> list[list[list[np.ndarray[Any, Any]]]]:
        """Return keys of each run on the host: for each span, an array for each field.

        Each device's keys come in one copy; the copies of all devices overlap.
        """
        counts = [[len(range(*span)) for span in run_spans] for run_spans in spans]
        seats = [i for i in self.keys.seats if sum(counts[i])]
        fetched = on_each(
            self.keys.places, seats,
            lambda i: [_gather(x, i, spans[i], counts[i]) for x in self.keys.arrays],
        )  # fmt: skip
        arrays = iter(all_on_host([part for parts in fetched for part in parts]))
        result = []
        for i in self.keys.seats:
            empty = (np.empty(0, x.dtype) for x in self.keys.arrays)
            parts_ = [next(arrays) if i in seats else next(empty) for _ in self.keys.arrays]
            borders = list(accumulate(counts[i]))[:-1]
            result.append(
                list(map(list, zip(*(np.split(x, borders) for x in parts_), strict=True)))
            )
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


# --- Send slices of sorted runs to the devices that own their range, and merge them there.

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
        return fields_of(ga.merge(first, second, descending=ways, out=out))[0], []
    values_ = {"a_values": values.packed(a[1]), "b_values": values.packed(b[1])}
    out_pair = None if target is None else (out, values.packed(target[1]))
    merged = ga.merge(first, second, **values_, descending=ways, out=out_pair)
    return fields_of(merged[0])[0], fields_of(merged[1])[0]


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
    key_arg = parse_argument(keys, where, name)
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
        unflattened = parse_argument(keys, func_name, "keys").first
        v_arg = parse_argument(values, func_name, "values", unflattened)
        v_arg = v_arg if k_arg.first.ndim == unflattened.ndim else v_arg.flat(func_name)
    first, call = k_arg.first, ga.sort if func_name == "sort" else ga.radix_sort

    def options(i: int) -> dict[str, Any]:
        v = None if v_arg is None else v_arg.on(i)
        return {"values": v, "axis": sort_axis, **order.options}

    infer_result(call, k_arg.places[0], k_arg.on(0), **options(0))
    if sort_axis != first.axis:
        rows = on_each(first.places, k_arg.seats, lambda i: call(k_arg.on(i), **options(i)))
        pairs = [row if v_arg is not None else (row, None) for row in rows]
        results = [build_result([pair[0] for pair in pairs], first.places, first.axis)]
        if v_arg is not None:
            results.append(build_result([pair[1] for pair in pairs], first.places, first.axis))
        return results[0] if v_arg is None else tuple(results)
    one_row(k_arg, sort_axis, func_name)
    pieces = long_row(k_arg, v_arg, order)
    sorted_keys = build_result([k_arg.packed(v) for v, _ in pieces], first.places, 0)
    if v_arg is None:
        return sorted_keys
    return sorted_keys, build_result([v_arg.packed(v) for _, v in pieces], first.places, 0)


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
    pieces: list[Piece], keys: Argument, values: Argument | None, order: Order, place: Device
) -> Piece:
    """Join slices and sort them: merges cannot compare selected bits."""
    key_arrays, value_arrays = joined(pieces, place, keys.first.library)
    if values is None:
        return fields_of(ga.radix_sort(keys.packed(key_arrays), **order.options))[0], []
    pair = ga.radix_sort(keys.packed(key_arrays), values.packed(value_arrays), **order.options)
    return fields_of(pair[0])[0], fields_of(pair[1])[0]


def sorted_runs(keys: Argument, values: Argument | None, order: Order) -> list[Piece]:
    """Sort each shard."""
    arrays = keys.arrays if values is None else (*keys.arrays, *values.arrays)

    def call(i: int) -> Piece:
        shards = [x.shards[i] for x in arrays]
        with local_stream(keys.places[i], shards, keys.first.library) as stream:
            if values is None:
                result = ga.radix_sort(keys.on(i), **order.options, stream=stream)
                return fields_of(result)[0], []
            result = ga.radix_sort(keys.on(i), values.on(i), **order.options, stream=stream)
            return fields_of(result[0])[0], fields_of(result[1])[0]

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
        cuts = exact_cuts(_as_runs(keys, runs, order), ranks)
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


def _as_runs(keys: Argument, runs: list[Piece], order: Order) -> Runs:
    arrays = [
        ShardedArray([run_keys[field] for run_keys, _ in runs], keys.places, 0)
        for field in range(len(keys.arrays))
    ]
    begin, end = order.bits
    bits = (0, None) if order.is_whole else (int(begin), None if end is None else int(end))
    return Runs(keys._replace(arrays=tuple(arrays)), order.descending, bits)
