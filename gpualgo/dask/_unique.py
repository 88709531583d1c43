"""`unique`: the distinct elements of each chunk, combined by value or by neighbours."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _neighbours, _results
from gpualgo.dask._exchange import Run, arrived
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._grouping import together
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._neighbours import Runs
from gpualgo.dask._order import Plain
from gpualgo.dask._shapes import reshaped
from gpualgo.dask._values import (
    Parts,
    Source,
    copied,
    given,
    joined,
    meta_like,
    packed,
    parts_of,
    result,
    taken,
)

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
    flags = {name: checks.flag(flag, name, _NAME) for name, flag in flags.items()}
    x_arg = _inputs.taken(x, _NAME)
    flat_arg = x_arg.flat()
    probe, form = _inputs.told(ga.unique, x_arg.small(), **flags)
    kinds = ("first",) * return_index + ("sum",) * return_counts
    graph = Graph(_NAME, flat_arg.content, consecutive, kinds)
    count = len(flat_arg.arrays)
    dtypes = (*(part.dtype for part in probe[:count]), *(np.dtype(np.int64),) * len(kinds))
    runs = _runs(graph, flat_arg, consecutive, kinds)
    if consecutive:
        combine = None, None, kinds
        _neighbours.settled(graph, runs, flat_arg.source[2], None, _NO_INIT, combine)
        outputs = len(runs)
    else:
        order = flat_arg.source[2], (None, (False,)), (0, None)
        outputs = together(graph, runs, order, merge, kinds)
    chunks = ((math.nan,) * outputs,)
    results = _results.arrays(graph, "", flat_arg.first, chunks, dtypes, flat_arg.arrays)
    if return_inverse:
        outputs_refs = [TaskRef(graph.key("", j)) for j in range(outputs)]
        inverse = _run_numbers if consecutive else _indices
        results.insert(count + return_index, inverse(graph, x_arg, runs, outputs_refs, results[0]))
    return _results.built(form, results)


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
        return parts_of(outputs), ()
    keys, *more = outputs
    if "first" in kinds:
        more[0] = more[0] + start
    return parts_of(keys), tuple(more)


def chunk(
    chunks: list[Any], source: Source, index: Index, start: int, kinds: tuple[str, ...]
) -> Run:
    return _unique_of_chunk(packed(source[2], given(chunks, source, index)), start, kinds, False)


def neighbours(
    chunks: list[Any], source: Source, index: Index, start: int, kinds: tuple[str, ...]
) -> Runs:
    """Return the runs of a chunk, and its last element."""
    parts = given(chunks, source, index)
    last = copied(taken(parts, slice(-1, None)))
    return *_unique_of_chunk(packed(source[2], parts), start, kinds, True), last


def merge(parts: list[Any], order: Plain, kinds: tuple[str, ...]) -> Any:
    elements, more = arrived(parts)
    keys: Any = packed(order[0], elements)
    if not kinds:
        return result(parts_of(ga.unique(keys)))
    outputs: list[Any] = []
    if "first" in kinds:
        distinct, positions = ga.unique(keys, return_index=True)
        outputs.append(more[0][positions])
    if "sum" in kinds:
        distinct, counts = ga.reduce_by_key(keys, more[-1])
        outputs.append(counts)
    return (*parts_of(distinct), *outputs)


def _keys(output: Any, count: int) -> Parts:
    return output[:count] if isinstance(output, tuple) else (output,)


def inverse(chunks: list[Any], source: Source, index: Index, outputs: list[Any]) -> Any:
    """Return the index of each element of a chunk among all distinct elements."""
    parts, pattern = given(chunks, source, index), source[2]
    distinct = joined([_keys(output, len(parts)) for output in outputs])
    return ga.searchsorted(packed(pattern, distinct), packed(pattern, parts))


def counted(output: Any, before: int | None) -> int:
    """Return the number of runs up to the end of a chunk."""
    return (before or 0) + len(_keys(output, 1)[0])


def numbers(
    chunks: list[Any], source: Source, index: Index, own: Runs, output: Any, before: int | None
) -> Any:
    """Return each element's run number; the chunk's first run may begin in an earlier chunk."""
    x = packed(source[2], given(chunks, source, index))
    _, local = ga.unique(x, consecutive=True, return_inverse=True)
    continued = len(own[0][0]) - len(_keys(output, 1)[0])
    return local + ((before or 0) - continued)
