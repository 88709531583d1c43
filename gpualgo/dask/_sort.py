"""Sorts: sorted runs of chunks, exact cuts, then the slices of each result chunk sorted again."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _order, _results, _runs
from gpualgo.dask._exchange import add_exchange
from gpualgo.dask._graph import Graph
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._order import Order


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
    small = None if v_arg is None else v_arg.small()
    order = _order.order_of(descending, begin_bit, end_bit, k_arg)
    bits = {} if order.is_whole else {"begin_bit": begin_bit, "end_bit": end_bit}
    options = {"descending": descending, "axis": axis, **bits}
    probe, form = _inputs.probe_call(ga.radix_sort, k_arg.small(), small, **options)
    dtypes = tuple(part.dtype for part in probe)
    results = _sorted(func_name, k_arg, v_arg, order, axis, dtypes, None)
    return _results.pack_results(form, results)


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with dask arrays for arrays; cost and
    memory are those of `radix_sort` with indices as values.
    """
    func_name = "argsort"
    k_arg = _inputs.parse_argument(keys, func_name, "keys")
    order = _order.order_of(descending, 0, None, k_arg)
    options = {"descending": descending, "axis": axis, "dtype": dtype}
    (probe,), _ = _inputs.probe_call(ga.argsort, k_arg.small(), **options)
    sort_axis = checks.axis_of(checks.plain_axis(axis, func_name), k_arg.first.ndim, func_name)
    length = math.prod(k_arg.first.shape) if sort_axis is None else k_arg.first.shape[sort_axis]
    if length > _max_indices(probe.dtype):
        raise ValueError(
            f"argsort: dtype {probe.dtype} is too narrow for indices below {length}; "
            "pass a wider dtype="
        )
    return _sorted(func_name, k_arg, None, order, axis, (probe.dtype,), probe.dtype)[0]


def _values(values: Any, keys: Input, func_name: str) -> Input:
    """Return values with the chunks of the keys."""
    v_arg = _inputs.parse_argument(values, func_name, "values", like=keys.first)
    if v_arg.form is not None and v_arg.first.shape != keys.first.shape:
        v_arg = v_arg.broadcast(keys.first)
    if v_arg.first.shape != keys.first.shape and v_arg.is_known and keys.is_known:
        raise ValueError(
            f"{func_name}: values have shape {v_arg.first.shape} and keys {keys.first.shape}; "
            "pass a value for each key"
        )
    return v_arg if _inputs.same_chunks(v_arg, keys) else v_arg.rechunked(keys.first.chunks)


def _sorted(
    func_name: str, keys: Input, values: Input | None, order: Order, axis: Any,
    dtypes: tuple[Any, ...], indices: Any,
) -> list[Any]:  # fmt: skip
    """Return the sorted arrays; for an argsort `indices` is the dtype of indices, else None."""
    ndim = keys.first.ndim
    sort_axis = checks.axis_of(checks.plain_axis(axis, func_name), ndim, func_name)
    if sort_axis is None:
        keys, sort_axis = keys.flat(), 0
        values = None if values is None else values.flat()
    if keys.first.numblocks[sort_axis] == 1:
        return _rows(func_name, keys, values, order, sort_axis, dtypes)
    keys.require_sizes("the index of a sorted element depends on all sizes")
    chunks = keys.first.chunks
    if ndim > 1 and axis is not None and keys.first.size == keys.first.shape[sort_axis]:
        keys, values = keys.flat(), None if values is None else values.flat()
        flat_results = _sorted(func_name, keys, values, order, 0, dtypes, indices)
        return [reshaped(x, chunks) for x in flat_results]
    if keys.first.ndim > 1:
        row_chunks = {a: -1 if a == sort_axis else "auto" for a in range(ndim)}
        keys = keys.rechunked(row_chunks)
        values = None if values is None else values.rechunked(keys.first.chunks)
        return [x.rechunk(chunks) for x in _rows(func_name, keys, values, order, sort_axis, dtypes)]
    return _long_row(func_name, keys, values, order, dtypes, indices)


def _rows(
    func_name: str,
    keys: Input,
    values: Input | None,
    order: Order,
    axis: int,
    dtypes: tuple[Any, ...],
) -> list[Any]:
    """Sort chunks that hold whole rows."""
    content = None if values is None else values.content
    graph = Graph(func_name.replace("_", "-"), keys.content, content, order.plain, axis, dtypes)
    dtype = dtypes[0] if func_name == "argsort" else None
    for index in blocks(keys.first):
        args = keys.chunk(index), keys.source, *_chunk(values, index), index, order.plain
        graph.add("", index, _runs.rows, *args, axis, dtype)
    sources = *keys.arrays, *(() if values is None else values.arrays)
    return _results.arrays(graph, "", keys.first, keys.first.chunks, dtypes, sources)


def _chunk(values: Input | None, index: tuple[int, ...]) -> tuple[Any, Any]:
    return ([], None) if values is None else (values.chunk(index), values.source)


def _long_row(
    func_name: str, keys: Input, values: Input | None, order: Order, dtypes: tuple[Any, ...],
    indices: Any,
) -> list[Any]:  # fmt: skip
    """Sort one row of several chunks."""
    content = None if values is None else values.content
    graph = Graph(func_name.replace("_", "-"), keys.content, content, order.plain, dtypes)
    sizes = keys.first.chunks[0]
    starts = [0, *accumulate(sizes)]
    count, ranks = len(sizes), tuple(starts[1:-1])
    width = max(1, int(math.sqrt(starts[-1] / 2) / count))  # balances samples and candidates
    runs, samples = [], []
    for i in range(count):
        args = keys.chunk((i,)), keys.source, *_chunk(values, (i,)), (i,), order.plain
        index_args = None if indices is None else (starts[i], indices)
        runs.append(graph.add("run", (i,), _runs.run, *args, index_args))
        samples.append(graph.add("sample", (i,), _runs.sample, runs[i], width))
    spans = graph.add("spans", (), _runs.brackets, samples, ranks, width, order.plain)
    candidates = [
        graph.add("candidates", (i,), _runs.candidates, runs[i], i, spans, order.plain)
        for i in range(count)
    ]
    cuts = graph.add("cuts", (), _runs.cuts, candidates, ranks, order.plain)
    patterns = keys.source[2], None if values is None else values.source[2]
    for j, pieces in enumerate(add_exchange(graph, runs, cuts, count)):
        merge_args = pieces, order.plain, patterns, indices is not None
        graph.add("", (j,), _runs.merge, *merge_args)
    sources = *keys.arrays, *(() if values is None else values.arrays)
    return _results.arrays(graph, "", keys.first, keys.first.chunks, dtypes, sources)


def _max_indices(dtype: Any) -> int:
    """Return how many indices a dtype can represent."""
    return int(np.iinfo(dtype).max) + 1
