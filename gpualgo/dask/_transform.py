"""`transform`: one call for each chunk."""

from __future__ import annotations

from itertools import product
from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._operators.operator import MAX_ARITY
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._values import ChunkSpec, checked_chunks, pack, pattern_of, result, unpack

_NAME = "transform"


def transform(op: Any, *arguments: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`, with dask arrays for arrays; arguments
    may also be numbers and NumPy or CuPy arrays. Along each axis the result has the chunks of the
    first array that is not broadcast there. Chunks of unknown size are accepted.

    Notes
    -----
    A task for each chunk. A worker holds the chunks that it works on and their results.
    """
    if not 0 < len(arguments) <= MAX_ARITY:
        raise TypeError(
            f"transform: pass 1 to {MAX_ARITY} arguments after op, got {len(arguments)}"
        )
    local_op, frozen = pickle_operator(op, _NAME, len(arguments))
    inputs = [
        x if is_scalar(x) else _inputs.parse_argument(x, _NAME, "an argument") for x in arguments
    ]
    small = [x.small(0) if isinstance(x, Input) else x for x in inputs]
    probe, form = _inputs.probe_call(ga.transform, local_op, *small, dtype=dtype)
    dtypes = tuple(part.dtype for part in probe)
    content = [x.content if isinstance(x, Input) else (type(x).__name__, x) for x in inputs]
    graph = Graph(_NAME, content, frozen[0], dtypes)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    arrays = [part for x in inputs if isinstance(x, Input) for part in x.arrays]
    arrays = _inputs.align_chunks(arrays, _NAME)
    chunks = _inputs.broadcast_chunks(arrays)
    sources = [x.source if isinstance(x, Input) else (x,) for x in inputs]
    acc_dtype = pack(pattern_of(form), dtypes)
    for index in product(*map(range, map(len, chunks))):
        refs = [_chunk_at(x, index) for x in arrays]
        graph.add("", index, chunk, refs, sources, index, op_arg, acc_dtype)
    results = _results.arrays(graph, "", arrays[0], chunks, dtypes, arrays)
    return _results.pack_results(form, results)


def _chunk_at(x: Any, index: Index) -> TaskRef:
    """Return the task of the chunk that is broadcast to a chunk of the result."""
    own_index = zip(index[len(index) - x.ndim :], x.numblocks, strict=True)
    return TaskRef((x.name, *(0 if n == 1 else i for i, n in own_index)))


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any],
    sources: list[ChunkSpec | tuple[Any]],
    index: Index,
    op: PickledOperator,
    dtype: Any,
) -> Any:
    """Apply op to chunks; a source of one item is a scalar argument."""
    remaining = iter(chunks)
    arguments = []
    for source in sources:
        if len(source) == 1:
            arguments.append(source[0])
        else:
            parts = checked_chunks([next(remaining) for _ in source[1]], source, index)
            arguments.append(pack(source[2], parts))
    return result(unpack(ga.transform(load_operator(op), *arguments, dtype=dtype)))
