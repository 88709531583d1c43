"""`select`: filters each chunk; the sizes of the result's chunks are unknown."""

from __future__ import annotations

import math
from typing import Any

import gpualgo as ga
from gpualgo._operators.operator import is_function
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, is_dask
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._values import ChunkSpec, checked_chunks, pack, result, unpack

_NAME = "select"


def select(x: Any, predicate: Any) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters and result are those of `gpualgo.select`, with dask arrays for arrays. The result has
    a chunk for each of x, of unknown size; ``compute_chunk_sizes()`` computes the sizes.

    Notes
    -----
    A task for each chunk reads it once. A worker holds the chunks that it works on and their
    selected elements.
    """
    if not is_dask(predicate) and is_function(predicate, _NAME):
        x_arg = _inputs.parse_argument(x, _NAME).flat()
        local_op, frozen = pickle_operator(predicate, _NAME, 1)
        probe, form = _inputs.probe_call(ga.select, x_arg.small(), local_op)
        graph = Graph(_NAME, x_arg.content, frozen[0])
        op_arg = graph.shared("op", frozen, len(frozen[1]))
        mask = None
    else:
        x_arg, mask = _masked(x, predicate)
        probe, form = _inputs.probe_call(ga.select, x_arg.small(), mask.small())
        graph, op_arg = Graph(_NAME, x_arg.content, mask.content), None
    for index in _inputs.blocks(x_arg.first):
        mask_args = ([], None) if mask is None else (mask.chunk(index), mask.source)
        graph.add("", index, chunk, x_arg.chunk(index), x_arg.source, *mask_args, index, op_arg)
    chunks = ((math.nan,) * x_arg.first.numblocks[0],)
    sources = *x_arg.arrays, *(() if mask is None else mask.arrays)
    dtypes = tuple(part.dtype for part in probe)
    return _results.pack_results(
        form, _results.arrays(graph, "", x_arg.first, chunks, dtypes, sources)
    )


def _masked(x: Any, predicate: Any) -> tuple[Input, Input]:
    """Return elements and the bool array, flattened and with the same chunks."""
    like = predicate if is_dask(predicate) else None
    x_arg = _inputs.parse_argument(x, _NAME, like=like)
    mask = _inputs.parse_argument(predicate, _NAME, "predicate", like=x_arg.first)
    if mask.is_known and x_arg.is_known and mask.first.shape != x_arg.first.shape:
        raise ValueError(
            f"select: predicate has shape {mask.first.shape} and x {x_arg.first.shape}; "
            "pass a bool for each element"
        )
    if not _inputs.same_chunks(mask, x_arg):
        mask = mask.rechunked(x_arg.first.chunks)
    return x_arg.flat(), mask.flat()


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: ChunkSpec, marked: list[Any], marks: ChunkSpec | None, index: Index,
    op: PickledOperator | None,
) -> Any:  # fmt: skip
    x = pack(source[2], checked_chunks(chunks, source, index))
    predicate = load_operator(op) if marks is None else checked_chunks(marked, marks, index)[0]
    return result(unpack(ga.select(x, predicate)))
