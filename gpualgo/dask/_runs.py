"""Tasks of a sort: sorted runs, splitters, exact cuts, merges.

Elements are ordered by key, equal keys by chunk and index, so equal keys, NaN, signed zeros and
empty chunks need no special case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._base import threads
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _order, _results, _scan
from gpualgo.dask._by_key import add_grouped_chunks
from gpualgo.dask._exchange import Run, join_slices
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._order import OrderArgs
from gpualgo.dask._scan import Runs
from gpualgo.dask._values import (
    ChunkSpec,
    Parts,
    Structure,
    checked_chunks,
    concatenate,
    copied,
    index_parts,
    meta_like,
    namespace_of,
    on_host,
    pack,
    result,
    unpack,
)

Splitters = tuple[Parts, Any, Any]
Brackets = tuple[Splitters, Any, Splitters, Any]


def rows(
    chunks: list[Any], source: ChunkSpec, moved: list[Any], moved_source: ChunkSpec | None,
    index: tuple[int, ...], order: OrderArgs, axis: int, dtype: Any,
) -> Any:  # fmt: skip
    """Sort a chunk that holds whole rows, or return the indices that sort it."""
    keys = pack(source[2], checked_chunks(chunks, source, index))
    options = {**_order.options(order), "axis": axis}
    if dtype is not None:
        return ga.argsort(keys, dtype=dtype, **options)
    values = (
        None
        if moved_source is None
        else pack(moved_source[2], checked_chunks(moved, moved_source, index))
    )
    return result(unpack(ga.radix_sort(keys, values, **options)))


def run(
    chunks: list[Any], source: ChunkSpec, moved: list[Any], moved_source: ChunkSpec | None,
    index: tuple[int, ...], order: OrderArgs, place: tuple[int, Any] | None,
) -> Run:  # fmt: skip
    """Sort a chunk along with its values, or with the global indices of its keys."""
    keys = checked_chunks(chunks, source, index)
    pattern: Structure = None
    values: Parts = ()
    if moved_source is not None:
        values, pattern = checked_chunks(moved, moved_source, index), moved_source[2]
    elif place is not None:
        start, dtype = place
        values = (namespace_of(keys[0]).arange(start, start + len(keys[0]), dtype=dtype),)
    return _sorted(keys, values, order, (source[2], pattern), False)


def _sorted(
    keys: Parts,
    values: Parts,
    order: OrderArgs,
    patterns: tuple[Structure, Structure],
    in_place: bool,
) -> Run:
    options, packed_keys = _order.options(order), pack(patterns[0], keys)
    if not values:
        out = {"out": packed_keys} if in_place else {}
        return unpack(ga.radix_sort(packed_keys, **options, **out)), ()
    packed_values = pack(patterns[1], values)
    out = {"out": (packed_keys, packed_values)} if in_place else {}
    sorted_keys, sorted_values = ga.radix_sort(packed_keys, packed_values, **options, **out)
    return unpack(sorted_keys), unpack(sorted_values)


def sample(own: Run, width: int) -> Parts:
    """Return every width-th key of a run."""
    return copied(index_parts(own[0], slice(width - 1, None, width)))


def brackets(
    samples: list[Parts], ranks: tuple[int, ...], width: int, order: OrderArgs
) -> Brackets | None:
    """Return for each rank a splitter at or before it, and one at or behind it.

    If c samples are at or before a sample, at least c · width keys are, and each run adds fewer
    than width more.
    """
    lengths = [len(parts[0]) for parts in samples]
    total = sum(lengths)
    if not total:
        return None
    keys = concatenate(samples)
    runs = np.repeat(np.arange(len(samples)), lengths)
    indices = np.concatenate([np.arange(n) * width + (width - 1) for n in lengths])
    sample_order = _order.sort_indices(keys, order)
    host_order = on_host(sample_order)
    wanted = np.asarray(ranks)
    low = np.maximum((wanted - len(samples) * (width - 1)) // width, 0)
    high = -(-wanted // width)

    def splitters(counts: Any) -> Splitters:
        chosen = np.clip(counts - 1, 0, total - 1)
        selected = host_order[chosen]
        splitter_keys = index_parts(keys, sample_order[namespace_of(sample_order).asarray(chosen)])
        return splitter_keys, runs[selected], indices[selected]

    return splitters(low), low > 0, splitters(high), high <= total


def candidates(
    own: Run, number: int, spans: Brackets | None, order: OrderArgs
) -> tuple[Any, Any, list[Parts]]:
    """Return for each rank bounds of the cut in a run, and the keys between them.

    Without samples these are all keys.
    """
    keys = own[0]
    if spans is None:
        return None, None, [keys]
    low, has_low, high, has_high = spans
    start = np.where(has_low, _order.count_up_to_splitters(number, keys, low, order), 0)
    end = np.where(has_high, _order.count_up_to_splitters(number, keys, high, order), len(keys[0]))
    parts = [copied(index_parts(keys, slice(a, b))) for a, b in zip(start, end, strict=True)]
    return start, end, parts


def cuts(
    found: list[tuple[Any, Any, list[Parts]]], ranks: tuple[int, ...], order: OrderArgs
) -> np.ndarray[Any, Any]:
    """Return where each run is cut: a row for each rank."""
    is_whole = found[0][0] is None
    rows = []
    for number, rank in enumerate(ranks):
        windows = [parts[0 if is_whole else number] for _, _, parts in found]
        starts = [0 if is_whole else int(start[number]) for start, _, _ in found]
        lengths = [len(parts[0]) for parts in windows]
        keys = np.split(_order.ranks(concatenate(windows), order), np.cumsum(lengths)[:-1])
        (lengths_before,) = _cut(keys, lengths, rank - sum(starts))
        rows.append([start + more for start, more in zip(starts, lengths_before, strict=True)])
    return np.array(rows, np.int64).reshape(len(ranks), len(found))


def _cut(keys: Sequence[Any], lengths: list[int], rank: int) -> list[list[int]]:
    """Return the cuts of runs of integers at a rank."""

    def count(run: int, key: Any, has_equal: bool, low: int, high: int) -> int:
        side = "right" if has_equal else "left"
        return low + int(np.searchsorted(keys[run][low:high], key, side))  # type: ignore[call-overload]

    return threads.cuts(lengths, [rank], lambda run, place: keys[run][place], count)


def merge(
    parts: list[Any], order: OrderArgs, patterns: tuple[Structure, Structure], wants_values: bool
) -> Any:
    """Join the slices for a result chunk in the order of their runs, and sort them stably."""
    keys, values = join_slices(parts)
    keys, values = _sorted(keys, values, order, patterns, True)
    return result(values if wants_values else (*keys, *values))


# --- `unique`: the distinct elements of each chunk, combined by value or by neighbours.

_NAME = "unique"
_NO_INIT = (None, (None,), None)


def unique(
    x: Any, *, consecutive: bool = False, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, or the first of each run (`consecutive`).

    Parameters and result are those of `gpualgo.unique`, with dask arrays for arrays. The result has
    a chunk for every four chunks of x, with `consecutive` for each, of unknown sizes; the inverse
    has the chunks of x. Chunks of unknown size are accepted, except with `return_index`.

    Notes
    -----
    Cost and memory are those of `reduce_by_key`; a worker that computes a chunk of the inverse
    holds all distinct elements.
    """
    flags = {"consecutive": consecutive, "return_index": return_index,
             "return_inverse": return_inverse, "return_counts": return_counts}  # fmt: skip
    flags = {name: checks.flag_argument(flag, name, _NAME) for name, flag in flags.items()}
    x_arg = _inputs.parse_argument(x, _NAME)
    flat_arg = x_arg.flat()
    probe, form = _inputs.probe_call(ga.unique, x_arg.small(), **flags)
    kinds = ("first",) * return_index + ("sum",) * return_counts
    graph = Graph(_NAME, flat_arg.content, consecutive, kinds)
    count = len(flat_arg.arrays)
    dtypes = (*(part.dtype for part in probe[:count]), *(np.dtype(np.int64),) * len(kinds))
    runs = _runs(graph, flat_arg, consecutive, kinds)
    if consecutive:
        combine = None, None, kinds
        _scan.add_run_chunks(graph, runs, flat_arg.source[2], None, _NO_INIT, combine)
        outputs = len(runs)
    else:
        order = flat_arg.source[2], (None, (False,)), (0, None)
        outputs = add_grouped_chunks(graph, runs, order, merge_unique, kinds)
    chunks = ((math.nan,) * outputs,)
    results = _results.arrays(graph, "", flat_arg.first, chunks, dtypes, flat_arg.arrays)
    if return_inverse:
        outputs_refs = [TaskRef(graph.key("", j)) for j in range(outputs)]
        inverse = _run_numbers if consecutive else _indices
        results.insert(count + return_index, inverse(graph, x_arg, runs, outputs_refs, results[0]))
    return _results.pack_results(form, results)


def _runs(graph: Graph, x: Input, consecutive: bool, kinds: tuple[str, ...]) -> list[TaskRef]:
    """Add the tasks that find each chunk's distinct elements, or its runs."""
    count = x.first.numblocks[0]
    starts = [0] * count
    if "first" in kinds:
        x.require_sizes("indices depend on all sizes")
        starts = [0, *accumulate(x.first.chunks[0])]
    function = neighbours if consecutive else chunk
    return [
        graph.add("chunk", (i,), function, x.chunk((i,)), x.source, (i,), starts[i], kinds)
        for i in range(count)
    ]


def _indices(graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], keys: Any) -> Any:
    """Return the index of each element among all distinct elements."""
    inv = Graph("unique-inverse", graph.token)
    for index in blocks(x.first):
        args = x.chunk(index), x.source, index, outputs
        inv.add("", index, inverse, *args)
    meta = meta_like(x.first, x.first.ndim, np.int64)
    return inv.array("", x.first.chunks, meta, [*x.arrays, keys])


def _run_numbers(
    graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], keys: Any
) -> Any:
    """Return the number of the run that each element is in."""
    inv, flat = Graph("unique-inverse", graph.token), x.flat()
    num_before: TaskRef | None = None
    for i, (run, output) in enumerate(zip(runs, outputs, strict=True)):
        inv.add("", (i,), numbers, flat.chunk((i,)), x.source, (i,), run, output, num_before)
        num_before = inv.add("count", (i,), counted, output, num_before)
    meta = meta_like(x.first, 1, np.int64)
    run_ids = inv.array("", flat.first.chunks, meta, [*flat.arrays, keys])
    shape = x.first.shape
    if 0 in shape and len(shape) > 1:  # dask's reshape fails
        return reshaped(run_ids, tuple((n,) for n in shape))
    return run_ids if len(shape) == 1 else run_ids.reshape(shape)


# --- within tasks -------------------------------------------------------------------------------


def _unique_of_chunk(x: Any, start: int, kinds: tuple[str, ...], consecutive: bool) -> Run:
    options: dict[str, Any] = {"return_index": "first" in kinds, "return_counts": "sum" in kinds}
    outputs = ga.unique(x, consecutive=consecutive, **options)
    if not kinds:
        return unpack(outputs), ()
    keys, *more = outputs
    if "first" in kinds:
        more[0] = more[0] + start
    return unpack(keys), tuple(more)


def chunk(
    chunks: list[Any], source: ChunkSpec, index: Index, start: int, kinds: tuple[str, ...]
) -> Run:
    return _unique_of_chunk(
        pack(source[2], checked_chunks(chunks, source, index)), start, kinds, False
    )


def neighbours(
    chunks: list[Any], source: ChunkSpec, index: Index, start: int, kinds: tuple[str, ...]
) -> Runs:
    """Return the runs of a chunk, and its last element."""
    parts = checked_chunks(chunks, source, index)
    last = copied(index_parts(parts, slice(-1, None)))
    return *_unique_of_chunk(pack(source[2], parts), start, kinds, True), last


def merge_unique(parts: list[Any], order: OrderArgs, kinds: tuple[str, ...]) -> Any:
    elements, more = join_slices(parts)
    keys: Any = pack(order[0], elements)
    if not kinds:
        return result(unpack(ga.unique(keys)))
    outputs: list[Any] = []
    if "first" in kinds:
        distinct, positions = ga.unique(keys, return_index=True)
        outputs.append(more[0][positions])
    if "sum" in kinds:
        distinct, counts = ga.reduce_by_key(keys, more[-1])
        outputs.append(counts)
    return (*unpack(distinct), *outputs)


def _keys(output: Any, count: int) -> Parts:
    return output[:count] if isinstance(output, tuple) else (output,)


def inverse(chunks: list[Any], source: ChunkSpec, index: Index, outputs: list[Any]) -> Any:
    """Return the index of each element of a chunk among all distinct elements."""
    parts, pattern = checked_chunks(chunks, source, index), source[2]
    distinct = concatenate([_keys(output, len(parts)) for output in outputs])
    return ga.searchsorted(pack(pattern, distinct), pack(pattern, parts))


def counted(output: Any, before: int | None) -> int:
    """Return the number of runs up to the end of a chunk."""
    return (before or 0) + len(_keys(output, 1)[0])


def numbers(
    chunks: list[Any], source: ChunkSpec, index: Index, own: Runs, output: Any, before: int | None
) -> Any:
    """Return each element's run number; the chunk's first run may begin in an earlier chunk."""
    x = pack(source[2], checked_chunks(chunks, source, index))
    _, local = ga.unique(x, consecutive=True, return_inverse=True)
    continued = len(own[0][0]) - len(_keys(output, 1)[0])
    return local + ((before or 0) - continued)
