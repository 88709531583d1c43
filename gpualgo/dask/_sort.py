"""Sorts: sorted runs of chunks, exact cuts, then the slices of each result chunk sorted again.

Elements are ordered by key, equal keys by chunk and index, so equal keys, NaN, signed zeros and
empty chunks need no special case.
"""

from __future__ import annotations

import math
from itertools import accumulate, count, zip_longest
from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._algorithms.radix_sort.cuts import Spans, Table, sample_width
from gpualgo._distributed import (
    Order,
    Parts,
    check_index_dtype,
    concatenate,
    namespace_of,
    packed,
)
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs
from gpualgo.dask._graph import Graph, result_arrays
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._tasks import copy_slice, result, unpack


def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: Any = 0,
    end_bit: Any = None, axis: Any = -1,
) -> Any:  # fmt: skip
    """Return stably sorted keys, and values moved with them: ``keys[p]``, p = ``argsort(keys)``.

    Parameters and result are those of `gpualgo.radix_sort`, with dask arrays for arrays; the result
    has the same bits, and the chunks of keys. Chunk sizes must be known.

    Notes
    -----
    Each of P chunks is sorted. From samples and a few keys the exact bounds of each result chunk in
    each sorted chunk are found; then each result chunk gets its elements and sorts them. Each
    element is moved once. There are P² + 4P tasks; with more than 64 chunks 2·P^1.5 + 5P, in groups
    of about √P. A worker holds twice the chunks that it sorts (values too), and one task holds
    about P·√(2n) keys. If an array of several rows is sorted along a chunked axis, it is rechunked
    to whole rows, which must fit in memory.
    """
    func_name = "radix_sort"
    k_arg = _inputs.parse_argument(keys, func_name, "keys")
    v_arg = None if values is None else _values(values, k_arg, func_name)
    small = v_arg and v_arg.small()
    begin = checks.integer(begin_bit, "begin_bit", func_name)
    end = None if end_bit is None else checks.integer(end_bit, "end_bit", func_name)
    order = Order(k_arg.form, descending, begin, end)
    options = {"axis": axis, **order.options}
    dtypes, form = _inputs.probe_dtypes(ga.radix_sort, k_arg.small(), small, **options)
    return packed(form, _sort(func_name, k_arg, v_arg, order, axis, dtypes, None))


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with dask arrays for arrays; cost and
    memory are those of `radix_sort` with indices as values.
    """
    func_name = "argsort"
    k_arg = _inputs.parse_argument(keys, func_name, "keys")
    order = Order(k_arg.form, descending)
    options = {"descending": descending, "axis": axis, "dtype": dtype}
    (index_dtype,), _ = _inputs.probe_dtypes(ga.argsort, k_arg.small(), **options)
    sort_axis = checks.axis_of(checks.plain_axis(axis, func_name), k_arg.first.ndim, func_name)
    length = math.prod(k_arg.first.shape) if sort_axis is None else k_arg.first.shape[sort_axis]
    check_index_dtype(index_dtype, length)
    return _sort(func_name, k_arg, None, order, axis, (index_dtype,), index_dtype)[0]


def _values(values: Any, keys: Input, func_name: str) -> Input:
    """Return values with the chunks of the keys."""
    v_arg = _inputs.parse_argument(values, func_name, "values", like=keys.first)
    if v_arg.form is not None and v_arg.first.shape != keys.first.shape:
        v_arg = v_arg.broadcast(keys.first)
    _inputs.check_shapes(v_arg, keys, "values have", "pass a value for each key")
    return v_arg.rechunked(keys.first.chunks)


def _sort(
    func_name: str, keys: Input, values: Input | None, order: Order, axis: Any,
    dtypes: tuple[Any, ...], indices: Any,
) -> list[Any]:  # fmt: skip
    """Return the sorted arrays; for an argsort `indices` is the dtype of indices, else None."""
    ndim = keys.first.ndim
    keys, sort_axis = keys.line(axis)
    values = values and values.line(axis)[0]
    if keys.first.numblocks[sort_axis] == 1:
        return _rows(func_name, keys, values, order, sort_axis, dtypes)
    keys.require_sizes("the index of a sorted element depends on all sizes")
    chunks = keys.first.chunks
    if ndim > 1 and axis is not None and keys.first.size == keys.first.shape[sort_axis]:
        keys, values = keys.flat(), values and values.flat()
        flat_results = _sort(func_name, keys, values, order, 0, dtypes, indices)
        return [reshaped(x, chunks) for x in flat_results]
    if keys.first.ndim > 1:
        row_chunks = {a: -1 if a == sort_axis else "auto" for a in range(ndim)}
        keys = keys.rechunked(row_chunks)
        values = values and values.rechunked(keys.first.chunks)
        return [x.rechunk(chunks) for x in _rows(func_name, keys, values, order, sort_axis, dtypes)]
    return _long_row(func_name, keys, values, order, dtypes, indices)


def _rows(
    func_name: str, keys: Input, values: Input | None, order: Order, axis: int,
    dtypes: tuple[Any, ...],
) -> list[Any]:  # fmt: skip
    """Sort chunks that hold whole rows."""
    graph = Graph(func_name.replace("_", "-"), keys, values, order.options, axis, dtypes)
    options = {"axis": axis, **order.options}
    if func_name == "argsort":
        options["dtype"] = dtypes[0]
    for index in blocks(keys.first):
        args = [x.chunk(index) for x in (keys, values) if x is not None]
        graph.call("", index, getattr(ga, func_name), *args, **options)
    return result_arrays(graph, keys.first, keys.first.chunks, dtypes, keys, values)


def _long_row(
    func_name: str, keys: Input, values: Input | None, order: Order, dtypes: tuple[Any, ...],
    indices: Any,
) -> list[Any]:  # fmt: skip
    """Sort one row of several chunks."""
    graph = Graph(func_name.replace("_", "-"), keys, values, order.options, dtypes)
    sizes = keys.first.chunks[0]
    starts = [0, *accumulate(sizes)]
    count, ranks = len(sizes), tuple(starts[1:-1])
    width = sample_width(sizes)
    runs, samples = [], []
    for i in range(count):
        index_args = None if indices is None else (starts[i], indices)
        args = keys.chunk((i,)), values and values.chunk((i,)), order, index_args
        runs.append(graph.add("run", (i,), sort_run, *args))
        samples.append(graph.add("sample", (i,), sample, runs[i], width))
    spans = graph.add("spans", (), order.brackets, samples, sizes, ranks, width)
    windows = [graph.add("candidates", (i,), candidates, run, i, spans)
               for i, run in enumerate(runs)]  # fmt: skip
    table = graph.add("cuts", (), order.borders, windows, spans, sizes, ranks)
    forms = keys.form, values and values.form
    for j, pieces in enumerate(add_exchange(graph, runs, table, count)):
        graph.add("", (j,), merge, pieces, order, forms, indices is not None)
    return result_arrays(graph, keys.first, keys.first.chunks, dtypes, keys, values)


# --- Within tasks: sorted runs, splitters, exact cuts, merges.


def sort_run(keys: Any, values: Any, order: Order, indices: tuple[int, Any] | None) -> Run:
    """Sort a chunk along with its values, or with the global indices of its keys."""
    if indices is not None:
        (start, dtype), first = indices, unpack(keys)[0]
        values = namespace_of(first).arange(start, start + len(first), dtype=dtype)
    return _sorted(keys, values, order)


def _sorted(keys: Any, values: Any, order: Order, **out: Any) -> Run:
    call: Any = ga.radix_sort  # whose overloads know no tuples of unknown length
    found = call(keys, values, **order.options, **out)
    return (unpack(found), ()) if values is None else (unpack(found[0]), unpack(found[1]))


def sample(own: Run, width: int) -> Parts:
    """Return every width-th key of a run."""
    return copy_slice(own[0], slice(width - 1, None, width))


def candidates(own: Run, number: int, spans: Spans) -> list[Parts]:
    """Return a run's keys between the bounds of each cut."""
    pairs = zip(*(bounds[:, number].tolist() for bounds in spans), strict=True)
    return [copy_slice(own[0], slice(low, high)) for low, high in pairs]


def merge(parts: list[Any], order: Order, forms: Any, wants_values: bool) -> Any:
    """Join the slices for a result chunk in the order of their runs, and sort them stably."""
    keys, values = (packed(form, run) if run else None
                    for form, run in zip(forms, join_slices(parts), strict=True))  # fmt: skip
    out = keys if values is None else (keys, values)
    keys, values = _sorted(keys, values, order, out=out)
    return result(values if wants_values else (*keys, *values))


# --- Move slices of sorted runs to result chunks: directly, or through groups of runs.

Run = tuple[Parts, Parts]
"""Sorted keys and the values moved with them."""

MOST_DIRECT = 64 * 64  # slices sent directly; above that, through groups


def add_exchange(
    graph: Graph, runs: list[TaskRef], table: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """For each result chunk, return the slices it gets from all runs, as `join_slices` reads them.

    `table` tells where the slices begin in each run: a row for each result chunk, and one more.
    """
    count = len(runs)
    if count * num_chunks <= MOST_DIRECT:
        return [[graph.add("piece", (i, j), slice_run, run, table, i, j, j + 1)
                 for i, run in enumerate(runs)] for j in range(num_chunks)]  # fmt: skip
    # Groups of runs first bundle their slices for groups of chunks. A group takes every n-th run:
    # of sorted input, neighbouring runs would all go to one chunk.
    size, groups = math.isqrt(num_chunks - 1) + 1, math.isqrt(count - 1) + 1
    gathered: list[list[TaskRef]] = []
    for target, first in enumerate(range(0, num_chunks, size)):
        last = min(first + size, num_chunks)
        bundles = []
        for group in range(groups):
            parts = [graph.add("part", (i, target), slice_run, runs[i], table, i, first, last)
                     for i in range(group, count, groups)]  # fmt: skip
            bundles.append(graph.add("bundle", (group, target), list, parts))
        for j in range(first, last):
            args = table, groups, first, j
            gathered.append([graph.add("piece", (group, j), slice_bundle, bundle, group, *args)
                             for group, bundle in enumerate(bundles)])  # fmt: skip
    return gathered


# Within tasks:


def slice_run(own: Run, table: Table, number: int, first: int, last: int, origin: int = 0) -> Run:
    """Return a copy of the slice that result chunks [first, last) get.

    It is one of a run, or of its slice for the chunks from `origin` on.
    """
    start, *ends = table[[origin, first, last], number].tolist()
    span = slice(*(end - start for end in ends))
    return copy_slice(own[0], span), copy_slice(own[1], span)


def slice_bundle(
    parts: list[Run], group: int, table: Table, step: int, first: int, chunk: int
) -> list[Run]:
    """Return the slices for one chunk, from a group's slices for chunks from `first` on."""
    numbered = zip(count(group, step), parts, strict=False)
    return [slice_run(part, table, i, chunk, chunk + 1, first) for i, part in numbered]


def join_slices(parts: list[Any]) -> Run:
    """Join the slices for a result chunk, in the order of the runs."""
    if isinstance(parts[0], list):  # from groups, each of every n-th run
        parts = [run for runs in zip_longest(*parts) for run in runs if run is not None]
    return concatenate([run[0] for run in parts]), concatenate([run[1] for run in parts])
