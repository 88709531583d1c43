"""`unique`: each chunk's distinct elements, brought together by value, or by neighbours."""

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

_WHERE = "unique"
_NO_INIT = (None, (None,), None)


def unique(
    x: Any, *, consecutive: bool = False, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:  # fmt: skip
    """Find the distinct elements, ascending; or, consecutive, the first of each run.

    Parameters and result are those of `gpualgo.unique`, with dask arrays for arrays. The result has
    a chunk for four of x, with `consecutive` for each, of unknown sizes; the inverse has the chunks
    of x. Chunks of unknown size are taken, but for `return_index`.

    Notes
    -----
    As `reduce_by_key`; a worker that makes a chunk of the inverse holds all distinct elements.
    """
    flags = {"consecutive": consecutive, "return_index": return_index,
             "return_inverse": return_inverse, "return_counts": return_counts}  # fmt: skip
    flags = {name: checks.flag(flag, name, _WHERE) for name, flag in flags.items()}
    whole = _inputs.taken(x, _WHERE)
    source = whole.flat()
    found, form = _inputs.told(ga.unique, whole.small(), **flags)
    kinds = ("first",) * return_index + ("sum",) * return_counts
    graph = Graph(_WHERE, source.content, consecutive, kinds)
    count = len(source.arrays)
    dtypes = (*(part.dtype for part in found[:count]), *(np.dtype(np.int64),) * len(kinds))
    runs = _runs(graph, source, consecutive, kinds)
    if consecutive:
        how = None, None, kinds
        _neighbours.settled(graph, runs, source.source[2], None, _NO_INIT, how)
        outputs = len(runs)
    else:
        order = source.source[2], (None, (False,)), (0, None)
        outputs = together(graph, runs, order, merge, kinds)
    chunks = ((math.nan,) * outputs,)
    made = _results.arrays(graph, "", source.first, chunks, dtypes, source.arrays)
    if return_inverse:
        places = [TaskRef(graph.key("", j)) for j in range(outputs)]
        inverse = _ranks if consecutive else _places
        made.insert(count + return_index, inverse(graph, whole, runs, places, made[0]))
    return _results.built(form, made)


def _runs(graph: Graph, x: Input, consecutive: bool, kinds: tuple[str, ...]) -> list[TaskRef]:
    """Add the tasks that find each chunk's distinct elements, or its runs."""
    count = x.first.numblocks[0]
    starts = [0] * count
    if "first" in kinds:
        x.require_sizes("places depend on all sizes")
        starts = [0, *accumulate(x.first.chunks[0])]
    work = neighbours if consecutive else chunk
    return [
        graph.add("chunk", (i,), work, x.chunk((i,)), x.source, (i,), starts[i], kinds)
        for i in range(count)
    ]


def _places(graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], made: Any) -> Any:
    """Return where in all distinct elements each element is."""
    own = Graph("unique-inverse", graph.token)
    for index in blocks(x.first):
        args = x.chunk(index), x.source, index, outputs
        own.add("", index, inverse, *args)
    meta = meta_like(x.first, x.first.ndim, np.int64)
    return own.array("", x.first.chunks, meta, [*x.arrays, made])


def _ranks(graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], made: Any) -> Any:
    """Return in which run each element is."""
    own, flat = Graph("unique-inverse", graph.token), x.flat()
    before: TaskRef | None = None
    for i, (run, output) in enumerate(zip(runs, outputs, strict=True)):
        own.add("", (i,), numbers, flat.chunk((i,)), x.source, (i,), run, output, before)
        before = own.add("count", (i,), counted, output, before)
    meta = meta_like(x.first, 1, np.int64)
    found = own.array("", flat.first.chunks, meta, [*flat.arrays, made])
    shape = x.first.shape
    if 0 in shape and len(shape) > 1:  # which dask's does not do
        return reshaped(found, tuple((n,) for n in shape))
    return found if len(shape) == 1 else found.reshape(shape)


# --- within tasks -------------------------------------------------------------------------------


def _found(x: Any, start: int, kinds: tuple[str, ...], consecutive: bool) -> Run:
    options: dict[str, Any] = {"return_index": "first" in kinds, "return_counts": "sum" in kinds}
    found = ga.unique(x, consecutive=consecutive, **options)
    if not kinds:
        return parts_of(found), ()
    keys, *more = found
    if "first" in kinds:
        more[0] = more[0] + start
    return parts_of(keys), tuple(more)


def chunk(
    chunks: list[Any], source: Source, index: Index, start: int, kinds: tuple[str, ...]
) -> Run:
    """Return the distinct elements of a chunk."""
    return _found(packed(source[2], given(chunks, source, index)), start, kinds, False)


def neighbours(
    chunks: list[Any], source: Source, index: Index, start: int, kinds: tuple[str, ...]
) -> Runs:
    """Return the runs of a chunk, and its last element."""
    parts = given(chunks, source, index)
    last = copied(taken(parts, slice(-1, None)))
    return *_found(packed(source[2], parts), start, kinds, True), last


def merge(parts: list[Any], order: Plain, kinds: tuple[str, ...]) -> Any:
    """Return the distinct elements of several chunks."""
    elements, more = arrived(parts)
    keys: Any = packed(order[0], elements)
    if not kinds:
        return result(parts_of(ga.unique(keys)))
    found: list[Any] = []
    if "first" in kinds:
        distinct, where = ga.unique(keys, return_index=True)
        found.append(more[0][where])
    if "sum" in kinds:
        distinct, counts = ga.reduce_by_key(keys, more[-1])
        found.append(counts)
    return (*parts_of(distinct), *found)


def _keys(output: Any, count: int) -> Parts:
    """Return the elements of a result chunk."""
    return output[:count] if isinstance(output, tuple) else (output,)


def inverse(chunks: list[Any], source: Source, index: Index, outputs: list[Any]) -> Any:
    """Return where in all distinct elements those of a chunk are."""
    parts, pattern = given(chunks, source, index), source[2]
    distinct = joined([_keys(output, len(parts)) for output in outputs])
    return ga.searchsorted(packed(pattern, distinct), packed(pattern, parts))


def counted(output: Any, before: int | None) -> int:
    """Return how many runs there are up to the end of a chunk."""
    return (before or 0) + len(_keys(output, 1)[0])


def numbers(
    chunks: list[Any], source: Source, index: Index, own: Runs, output: Any, before: int | None
) -> Any:
    """Return in which run the elements of a chunk are, the first of which may have begun before."""
    x = packed(source[2], given(chunks, source, index))
    _, found = ga.unique(x, consecutive=True, return_inverse=True)
    goes_on = len(own[0][0]) - len(_keys(output, 1)[0])
    return found + ((before or 0) - goes_on)
