"""Sorts: runs, exact cuts of them, and the pieces of each result chunk sorted once more."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _order, _results, _runs
from gpualgo.dask._exchange import exchanged
from gpualgo.dask._graph import Graph
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._order import Order
from gpualgo.dask._shapes import reshaped


def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: Any = 0,
    end_bit: Any = None, axis: Any = -1,
) -> Any:  # fmt: skip
    """Sort keys stably, and values along: ``result[i] = keys[p[i]]``, p = ``argsort(keys)``.

    Parameters and result are those of `gpualgo.radix_sort`, with dask arrays for arrays; the result
    is the same to the last bit, and has the chunks of keys. Sizes of chunks have to be known.

    Notes
    -----
    Each of P chunks is sorted, and samples of all say within about √(2n) elements where the chunks
    of the result begin; these are looked at, and each run is cut exactly. Each element moves once,
    and is sorted again where it arrives. P² + 4P tasks; of more than 64 chunks 2·P^1.5 + 5P, by
    way of groups of about √P. A worker holds the chunks that it sorts, twice (with values these,
    too), and for the task that cuts about P·√(2n) keys. Along an axis that is cut of an array with
    several rows, rows are brought together (``rechunk``), and have to fit.
    """
    where = "radix_sort"
    taken = _inputs.taken(keys, where, "keys")
    moved = None if values is None else _values(values, taken, where)
    small = None if moved is None else moved.small()
    order = _order.order_of(descending, begin_bit, end_bit, taken)
    bits = {} if order.is_whole else {"begin_bit": begin_bit, "end_bit": end_bit}
    options = {"descending": descending, "axis": axis, **bits}
    found, form = _inputs.told(ga.radix_sort, taken.small(), small, **options)
    dtypes = tuple(part.dtype for part in found)
    made = _sorted(where, taken, moved, order, axis, dtypes, None)
    return _results.built(form, made)


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the stable order of keys: ``keys[p[0]] ≤ keys[p[1]] ≤ …``, equal keys as they come.

    Parameters and result are those of `gpualgo.argsort`, with dask arrays for arrays; cost and
    memory are those of `radix_sort` with indices for values.
    """
    where = "argsort"
    taken = _inputs.taken(keys, where, "keys")
    order = _order.order_of(descending, 0, None, taken)
    options = {"descending": descending, "axis": axis, "dtype": dtype}
    (found,), _ = _inputs.told(ga.argsort, taken.small(), **options)
    line = checks.axis_of(checks.plain_axis(axis, where), taken.first.ndim, where)
    length = math.prod(taken.first.shape) if line is None else taken.first.shape[line]
    if length > _limit(found.dtype):
        raise ValueError(
            f"argsort: dtype {found.dtype} is too narrow for indices below {length}; "
            "pass a wider dtype="
        )
    return _sorted(where, taken, None, order, axis, (found.dtype,), found.dtype)[0]


def _values(values: Any, keys: Input, where: str) -> Input:
    """Return values as keys are cut."""
    moved = _inputs.taken(values, where, "values", like=keys.first)
    if moved.form is not None and moved.first.shape != keys.first.shape:
        moved = moved.broadcast(keys.first)
    if moved.first.shape != keys.first.shape and moved.is_known and keys.is_known:
        raise ValueError(
            f"{where}: values have shape {moved.first.shape} and keys {keys.first.shape}; "
            "pass a value for each key"
        )
    return moved if _inputs.same_chunks(moved, keys) else moved.rechunked(keys.first.chunks)


def _sorted(
    where: str, keys: Input, values: Input | None, order: Order, axis: Any,
    dtypes: tuple[Any, ...], indices: Any,
) -> list[Any]:  # fmt: skip
    """Return the sorted arrays; `indices`: the dtype of places, which alone are the result."""
    ndim = keys.first.ndim
    line = checks.axis_of(checks.plain_axis(axis, where), ndim, where)
    if line is None:
        keys, line = keys.flat(), 0
        values = None if values is None else values.flat()
    if keys.first.numblocks[line] == 1:
        return _rows(where, keys, values, order, line, dtypes)
    keys.require_sizes("where a sorted element goes depends on all sizes")
    chunks = keys.first.chunks
    if ndim > 1 and axis is not None and keys.first.size == keys.first.shape[line]:
        keys, values = keys.flat(), None if values is None else values.flat()
        made = _sorted(where, keys, values, order, 0, dtypes, indices)
        return [reshaped(x, chunks) for x in made]
    if keys.first.ndim > 1:
        whole = {a: -1 if a == line else "auto" for a in range(ndim)}
        keys = keys.rechunked(whole)
        values = None if values is None else values.rechunked(keys.first.chunks)
        return [x.rechunk(chunks) for x in _rows(where, keys, values, order, line, dtypes)]
    return _long_row(where, keys, values, order, dtypes, indices)


def _rows(
    where: str, keys: Input, values: Input | None, order: Order, axis: int, dtypes: tuple[Any, ...]
) -> list[Any]:
    """Return sorts of chunks that hold whole rows."""
    moved = None if values is None else values.content
    graph = Graph(where.replace("_", "-"), keys.content, moved, order.plain, axis, dtypes)
    dtype = dtypes[0] if where == "argsort" else None
    for index in blocks(keys.first):
        args = keys.chunk(index), keys.source, *_chunk(values, index), index, order.plain
        graph.add("", index, _runs.rows, *args, axis, dtype)
    sources = *keys.arrays, *(() if values is None else values.arrays)
    return _results.arrays(graph, "", keys.first, keys.first.chunks, dtypes, sources)


def _chunk(values: Input | None, index: tuple[int, ...]) -> tuple[Any, Any]:
    return ([], None) if values is None else (values.chunk(index), values.source)


def _long_row(
    where: str, keys: Input, values: Input | None, order: Order, dtypes: tuple[Any, ...],
    indices: Any,
) -> list[Any]:  # fmt: skip
    """Return the sort of a row of several chunks."""
    moved = None if values is None else values.content
    graph = Graph(where.replace("_", "-"), keys.content, moved, order.plain, dtypes)
    sizes = keys.first.chunks[0]
    starts = [0, *accumulate(sizes)]
    count, ranks = len(sizes), tuple(starts[1:-1])
    width = max(1, int(math.sqrt(starts[-1] / 2) / count))  # as many samples as candidates
    runs, samples = [], []
    for i in range(count):
        args = keys.chunk((i,)), keys.source, *_chunk(values, (i,)), (i,), order.plain
        place = None if indices is None else (starts[i], indices)
        runs.append(graph.add("run", (i,), _runs.run, *args, place))
        samples.append(graph.add("sample", (i,), _runs.sample, runs[i], width))
    spans = graph.add("spans", (), _runs.brackets, samples, ranks, width, order.plain)
    found = [
        graph.add("candidates", (i,), _runs.candidates, runs[i], i, spans, order.plain)
        for i in range(count)
    ]
    cuts = graph.add("cuts", (), _runs.cuts, found, ranks, order.plain)
    patterns = keys.source[2], None if values is None else values.source[2]
    for j, pieces in enumerate(exchanged(graph, runs, cuts, count)):
        whole = pieces, order.plain, patterns, indices is not None
        graph.add("", (j,), _runs.merge, *whole)
    sources = *keys.arrays, *(() if values is None else values.arrays)
    return _results.arrays(graph, "", keys.first, keys.first.chunks, dtypes, sources)


def _limit(dtype: Any) -> int:
    """Return how many places integers of a dtype tell apart."""
    return int(np.iinfo(dtype).max) + 1
