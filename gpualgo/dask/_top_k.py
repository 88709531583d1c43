"""`top_k`: the first of each chunk, then the first of those, in a tree."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import blocks
from gpualgo.dask._values import Parts, Source, given, joined, namespace_of

_WHERE = "top_k"


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: str = "largest") -> Any:
    """Find the k first elements in order: ``x[i]``, i = ``argsort(x, descending=…)[:k]``.

    Parameters and result are those of `gpualgo.top_k`, with dask arrays for arrays, to the last
    bit; along the axis the result is one chunk. Sizes of chunks along the axis have to be known.

    Notes
    -----
    Reads x once; a task for each chunk, and a fifteenth more. A worker holds the chunks that it
    works on, and of sixteen others k elements and their places.
    """
    source = _inputs.taken(x, _WHERE)
    k = checks.integer(k, "k", _WHERE)
    line = checks.axis_of(checks.plain_axis(axis, _WHERE), source.first.ndim, _WHERE)
    if line is None:
        source, line = source.flat(), 0
    source.require_sizes("places depend on all sizes")
    extent = source.first.shape[line]
    if not 0 <= k <= extent:  # the call says what is wrong
        _inputs.told(ga.top_k, np.broadcast_to(source.small(), source.first.shape), k, axis=line)
    options = {"axis": line, "mode": mode}
    found, form = _inputs.told(ga.top_k, source.small(), min(k, 1), **options)
    graph = Graph("top-k", source.content, k, line, mode)
    starts = [0, *accumulate(source.first.chunks[line])]
    for row in blocks(source.first, [a for a in range(source.first.ndim) if a != line]):
        refs = []
        for i in range(source.first.numblocks[line]):
            index = (*row[:line], i, *row[line + 1 :])
            args = source.chunk(index), source.source, index, starts[i], k, line, mode
            refs.append(graph.add("chunk", index, chunk, *args))
        graph.alias("", row, graph.tree("tree", row, refs, first, k, line, mode))
    chunks = tuple((k,) if a == line else c for a, c in enumerate(source.first.chunks))
    dtypes = tuple(part.dtype for part in found)
    arrays = _results.arrays(graph, "", source.first, chunks, dtypes, source.arrays)
    return _results.built(form, arrays)


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: Source, index: Index, start: int, k: int, axis: int, mode: str
) -> Parts:
    """Return the first elements of a chunk, and their places in the whole."""
    (part,) = given(chunks, source, index)
    values, places = ga.top_k(part, min(k, part.shape[axis]), axis=axis, mode=mode)
    return values, places + start


def first(several: list[Parts], k: int, axis: int, mode: str) -> Parts:
    """Return the first of several, of which those of earlier chunks stand before others."""
    values, places = joined(several, axis)
    found, order = ga.top_k(values, min(k, values.shape[axis]), axis=axis, mode=mode)
    return found, namespace_of(places).take_along_axis(places, order, axis)
