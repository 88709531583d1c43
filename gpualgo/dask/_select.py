"""`select`: what is kept of each chunk, so that the sizes of chunks are not known."""

from __future__ import annotations

import math
from typing import Any

import gpualgo as ga
from gpualgo._operators.predicates import is_function
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, is_dask
from gpualgo.dask._operators import Frozen, freeze, thaw
from gpualgo.dask._values import Source, given, packed, parts_of, result

_WHERE = "select"


def select(x: Any, predicate: Any) -> Any:
    """Keep the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters and result are those of `gpualgo.select`, with dask arrays for arrays. The result has
    a chunk for each of x, of unknown size: ``compute_chunk_sizes()`` counts them.

    Notes
    -----
    A task for each chunk, which is read once. A worker holds the chunks that it works on and what
    is kept of them.
    """
    if not is_dask(predicate) and is_function(predicate, _WHERE):
        source = _inputs.taken(x, _WHERE).flat()
        settled, frozen = freeze(predicate, _WHERE, 1)
        found, form = _inputs.told(ga.select, source.small(), settled)
        graph = Graph(_WHERE, source.content, frozen[0])
        held = graph.shared("op", frozen, len(frozen[1]))
        marks = None
    else:
        source, marks = _marked(x, predicate)
        found, form = _inputs.told(ga.select, source.small(), marks.small())
        graph, held = Graph(_WHERE, source.content, marks.content), None
    for index in _inputs.blocks(source.first):
        mark = ([], None) if marks is None else (marks.chunk(index), marks.source)
        graph.add("", index, chunk, source.chunk(index), source.source, *mark, index, held)
    chunks = ((math.nan,) * source.first.numblocks[0],)
    sources = *source.arrays, *(() if marks is None else marks.arrays)
    dtypes = tuple(part.dtype for part in found)
    return _results.built(form, _results.arrays(graph, "", source.first, chunks, dtypes, sources))


def _marked(x: Any, predicate: Any) -> tuple[Input, Input]:
    """Return elements and marks, cut alike, in one dimension."""
    like = predicate if is_dask(predicate) else None
    source = _inputs.taken(x, _WHERE, like=like)
    marks = _inputs.taken(predicate, _WHERE, "predicate", like=source.first)
    if marks.is_known and source.is_known and marks.first.shape != source.first.shape:
        raise ValueError(
            f"select: predicate has shape {marks.first.shape} and x {source.first.shape}; "
            "pass a bool for each element"
        )
    if not _inputs.same_chunks(marks, source):
        marks = marks.rechunked(source.first.chunks)
    return source.flat(), marks.flat()


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: Source, marked: list[Any], marks: Source | None, index: Index,
    op: Frozen | None,
) -> Any:  # fmt: skip
    """Return what is kept of a chunk."""
    x = packed(source[2], given(chunks, source, index))
    predicate = thaw(op) if marks is None else given(marked, marks, index)[0]
    return result(parts_of(ga.select(x, predicate)))
