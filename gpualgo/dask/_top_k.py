"""`top_k`: the top k of each chunk, then the top k of those, in a tree."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import blocks
from gpualgo.dask._values import ChunkSpec, Parts, checked_chunks, concatenate, namespace_of

_NAME = "top_k"


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`, with dask arrays for arrays. The result has
    the same bits, and one chunk along the axis, where chunk sizes must be known.

    Notes
    -----
    x is read once, by a task for each chunk; 1/15 as many tasks combine the results. A worker holds
    the chunks that it works on, and k elements and indices of each of 16 others.
    """
    x_arg = _inputs.parse_argument(x, _NAME)
    k = checks.integer(k, "k", _NAME)
    k_axis = checks.axis_of(checks.plain_axis(axis, _NAME), x_arg.first.ndim, _NAME)
    if k_axis is None:
        x_arg, k_axis = x_arg.flat(), 0
    x_arg.require_sizes("indices depend on all sizes")
    extent = x_arg.first.shape[k_axis]
    if not 0 <= k <= extent:  # the call raises the error
        _inputs.probe_call(
            ga.top_k, np.broadcast_to(x_arg.small(), x_arg.first.shape), k, axis=k_axis
        )
    options = {"axis": k_axis, "mode": mode}
    probe, form = _inputs.probe_call(ga.top_k, x_arg.small(), min(k, 1), **options)
    graph = Graph("top-k", x_arg.content, k, k_axis, mode)
    starts = [0, *accumulate(x_arg.first.chunks[k_axis])]
    for row in blocks(x_arg.first, [a for a in range(x_arg.first.ndim) if a != k_axis]):
        refs = []
        for i in range(x_arg.first.numblocks[k_axis]):
            index = (*row[:k_axis], i, *row[k_axis + 1 :])
            args = x_arg.chunk(index), x_arg.source, index, starts[i], k, k_axis, mode
            refs.append(graph.add("chunk", index, chunk, *args))
        graph.alias("", row, graph.tree("tree", row, refs, first, k, k_axis, mode))
    chunks = tuple((k,) if a == k_axis else c for a, c in enumerate(x_arg.first.chunks))
    dtypes = tuple(part.dtype for part in probe)
    arrays = _results.arrays(graph, "", x_arg.first, chunks, dtypes, x_arg.arrays)
    return _results.pack_results(form, arrays)


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: ChunkSpec, index: Index, start: int, k: int, axis: int, mode: Any
) -> Parts:
    """Return the top elements of a chunk, and their global indices."""
    (part,) = checked_chunks(chunks, source, index)
    values, indices = ga.top_k(part, min(k, part.shape[axis]), axis=axis, mode=mode)
    return values, indices + start


def first(several: list[Parts], k: int, axis: int, mode: Any) -> Parts:
    """Return the top of several chunks' results; on ties, earlier chunks win."""
    values, indices = concatenate(several, axis)
    top, order = ga.top_k(values, min(k, values.shape[axis]), axis=axis, mode=mode)
    return top, namespace_of(indices).take_along_axis(indices, order, axis)
