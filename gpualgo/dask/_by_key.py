"""`reduce_by_key`: what each chunk's keys come to, brought together by key, or by neighbours."""

from __future__ import annotations

import math
import operator
from typing import Any

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _neighbours, _results
from gpualgo.dask._exchange import Run, arrived
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._grouping import together
from gpualgo.dask._inputs import Input
from gpualgo.dask._neighbours import Runs
from gpualgo.dask._operators import Frozen, freeze, thaw
from gpualgo.dask._order import Plain
from gpualgo.dask._starts import Rest, start_of, value_of
from gpualgo.dask._values import Pattern, Source, copied, given, packed, parts_of, taken

_WHERE = "reduce_by_key"


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, consecutive: bool = False,
    eq: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine the elements of equal keys: ``aggregate = init op x[i] op x[j] op …``.

    Parameters and result are those of `gpualgo.reduce_by_key`, with dask arrays for arrays. The
    result has a chunk for four of x, with `consecutive` for each, of unknown sizes. Chunks of
    unknown size are taken.

    Notes
    -----
    Each chunk is reduced for itself. Then each of P/4 result chunks takes a range of keys from
    each: P²/4 + 5P tasks, beyond 128 chunks by way of groups. A worker holds the chunks that it
    works on, and of distinct keys four chunks and a half at most. With `consecutive` five tasks for
    a chunk, in two chains. Grouped by chunk: equal chunks give equal bits, others may round
    otherwise.
    """
    names, source = _cut_alike(keys, x)
    settled, frozen = freeze(op, _WHERE)
    same, equal = (None, None) if eq is None else freeze(eq, _WHERE)
    start = start_of(init, source, (), _WHERE)
    found, form = _inputs.told(
        ga.reduce_by_key, names.small(), source.small(), init, settled, consecutive=consecutive,
        eq=same, dtype=dtype,
    )  # fmt: skip
    dtypes = tuple(part.dtype for part in found)
    content = names.content, source.content, start.content, frozen[0], equal and equal[0]
    graph = Graph("reduce-by-key", *content, consecutive, dtypes)
    held = graph.shared("op", frozen, len(frozen[1]))
    patterns = names.source[2], source.source[2]
    folding = patterns, dtypes[len(names.arrays) :]
    is_grouped = not checks.flag(consecutive, "consecutive", _WHERE)
    runs = []
    for index in _inputs.blocks(source.first):
        read = names.chunk(index), names.source, source.chunk(index), source.source, index
        work = chunk if is_grouped else neighbours
        runs.append(graph.add("chunk", index, work, *read, held, equal, folding))
    if is_grouped:
        order = names.source[2], (None, (False,)), (0, None)
        outputs = together(graph, runs, order, merge, start.rest, held, folding)
    else:
        outputs = len(runs)
        how = patterns[1], held, folding[1]
        _neighbours.settled(graph, runs, patterns[0], equal, start.rest, how)
    chunks = ((math.nan,) * outputs,)
    sources = *names.arrays, *source.arrays
    made = _results.arrays(graph, "", source.first, chunks, dtypes, sources)
    return _results.built(form, made)


def _cut_alike(keys: Any, x: Any) -> tuple[Input, Input]:
    """Return keys and elements in one dimension, cut alike."""
    source = _inputs.taken(x, _WHERE, "x")
    names = _inputs.taken(keys, _WHERE, "keys", like=source.first)
    if source.is_known and names.is_known and source.first.shape != names.first.shape:
        raise ValueError(
            f"reduce_by_key: keys have shape {names.first.shape} and x {source.first.shape}; "
            "pass an element for each key"
        )
    if not _inputs.same_chunks(names, source):
        source = source.rechunked(names.first.chunks)
    return names.flat(), source.flat()


Folding = tuple[tuple[Pattern, Pattern], tuple[Any, ...]]
"""How keys and elements are built, and the dtypes of aggregates."""


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], names: Source, elements: list[Any], source: Source, index: Index,
    op: Frozen, eq: Frozen | None, folding: Folding,
) -> Run:  # fmt: skip
    """Return the keys of a chunk and what their elements come to."""
    keys = packed(names[2], given(chunks, names, index))
    x = packed(source[2], given(elements, source, index))
    dtype = packed(folding[0][1], folding[1])
    found, aggregates = ga.reduce_by_key(keys, x, None, thaw(op), dtype=dtype)
    return parts_of(found), parts_of(aggregates)


def neighbours(
    chunks: list[Any], names: Source, elements: list[Any], source: Source, index: Index,
    op: Frozen, eq: Frozen | None, folding: Folding,
) -> Runs:  # fmt: skip
    """Return the runs of a chunk and what their elements come to, and its last key."""
    keys = given(chunks, names, index)
    x = packed(source[2], given(elements, source, index))
    options = {"eq": thaw(eq), "dtype": packed(folding[0][1], folding[1])}
    found, aggregates = ga.reduce_by_key(
        packed(names[2], keys), x, None, thaw(op), consecutive=True, **options
    )
    return parts_of(found), parts_of(aggregates), copied(taken(keys, slice(-1, None)))


def merge(parts: list[Any], order: Plain, rest: Rest, op: Frozen, folding: Folding) -> Any:
    """Return what keys of all chunks come to, each of which begins with init."""
    (keys_pattern, pattern), dtypes = folding
    keys, aggregates = arrived(parts)
    init = value_of([], rest, ())
    found = ga.reduce_by_key(
        packed(keys_pattern, keys), packed(pattern, aggregates), init, thaw(op),
        dtype=packed(pattern, dtypes),
    )  # fmt: skip
    return parts_of(found)
