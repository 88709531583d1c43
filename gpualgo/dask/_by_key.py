"""`reduce_by_key`: reduces each chunk by key, then combines the chunks' results."""

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
from gpualgo.dask._operators import Frozen, freeze, load_operator
from gpualgo.dask._order import Plain
from gpualgo.dask._starts import Rest, start_of, value_of
from gpualgo.dask._values import Pattern, Source, copied, given, packed, parts_of, taken

_NAME = "reduce_by_key"


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, consecutive: bool = False,
    eq: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of each key combined: ``aggregate = init op x[i] op x[j] op …``.

    Parameters and result are those of `gpualgo.reduce_by_key`, with dask arrays for arrays. The
    result has a chunk for every four chunks of x, with `consecutive` for each, of unknown sizes.
    Chunks of unknown size are accepted.

    Notes
    -----
    Each of P chunks is reduced by key. Then each of P/4 result chunks takes a range of keys from
    all of them: P²/4 + 5P tasks; with more than 128 chunks they are exchanged in groups. With
    `consecutive` there are five tasks for a chunk, in two chains. A worker holds the chunks that it
    works on, and the distinct keys of at most four and a half chunks. Elements are grouped by
    chunk: equal chunks give equal bits, other chunks may round differently.
    """
    key_arg, x_arg = _cut_alike(keys, x)
    local_op, frozen = freeze(op, _NAME)
    local_eq, frozen_eq = (None, None) if eq is None else freeze(eq, _NAME)
    initial = start_of(init, x_arg, (), _NAME)
    probe, form = _inputs.told(
        ga.reduce_by_key, key_arg.small(), x_arg.small(), init, local_op, consecutive=consecutive,
        eq=local_eq, dtype=dtype,
    )  # fmt: skip
    dtypes = tuple(part.dtype for part in probe)
    content = key_arg.content, x_arg.content, initial.content, frozen[0], frozen_eq and frozen_eq[0]
    graph = Graph("reduce-by-key", *content, consecutive, dtypes)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    patterns = key_arg.source[2], x_arg.source[2]
    folding = patterns, dtypes[len(key_arg.arrays) :]
    is_global = not checks.flag(consecutive, "consecutive", _NAME)
    runs = []
    for index in _inputs.blocks(x_arg.first):
        inputs = key_arg.chunk(index), key_arg.source, x_arg.chunk(index), x_arg.source, index
        function = chunk if is_global else neighbours
        runs.append(graph.add("chunk", index, function, *inputs, op_arg, frozen_eq, folding))
    if is_global:
        order = key_arg.source[2], (None, (False,)), (0, None)
        outputs = together(graph, runs, order, merge, initial.rest, op_arg, folding)
    else:
        outputs = len(runs)
        combination = patterns[1], op_arg, folding[1]
        _neighbours.settled(graph, runs, patterns[0], frozen_eq, initial.rest, combination)
    chunks = ((math.nan,) * outputs,)
    sources = *key_arg.arrays, *x_arg.arrays
    results = _results.arrays(graph, "", x_arg.first, chunks, dtypes, sources)
    return _results.built(form, results)


def _cut_alike(keys: Any, x: Any) -> tuple[Input, Input]:
    """Return keys and elements, flattened and with the same chunks."""
    x_arg = _inputs.taken(x, _NAME, "x")
    key_arg = _inputs.taken(keys, _NAME, "keys", like=x_arg.first)
    if x_arg.is_known and key_arg.is_known and x_arg.first.shape != key_arg.first.shape:
        raise ValueError(
            f"reduce_by_key: keys have shape {key_arg.first.shape} and x {x_arg.first.shape}; "
            "pass an element for each key"
        )
    if not _inputs.same_chunks(key_arg, x_arg):
        x_arg = x_arg.rechunked(key_arg.first.chunks)
    return key_arg.flat(), x_arg.flat()


Folding = tuple[tuple[Pattern, Pattern], tuple[Any, ...]]
"""The patterns of keys and elements, and the dtypes of aggregates."""


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], names: Source, elements: list[Any], source: Source, index: Index,
    op: Frozen, eq: Frozen | None, folding: Folding,
) -> Run:  # fmt: skip
    """Return a chunk's distinct keys and their aggregates."""
    keys = packed(names[2], given(chunks, names, index))
    x = packed(source[2], given(elements, source, index))
    dtype = packed(folding[0][1], folding[1])
    distinct, aggregates = ga.reduce_by_key(keys, x, None, load_operator(op), dtype=dtype)
    return parts_of(distinct), parts_of(aggregates)


def neighbours(
    chunks: list[Any], names: Source, elements: list[Any], source: Source, index: Index,
    op: Frozen, eq: Frozen | None, folding: Folding,
) -> Runs:  # fmt: skip
    """Return a chunk's runs of equal keys, their aggregates, and the chunk's last key."""
    keys = given(chunks, names, index)
    x = packed(source[2], given(elements, source, index))
    options = {"eq": load_operator(eq), "dtype": packed(folding[0][1], folding[1])}
    run_keys, aggregates = ga.reduce_by_key(
        packed(names[2], keys), x, None, load_operator(op), consecutive=True, **options
    )
    return parts_of(run_keys), parts_of(aggregates), copied(taken(keys, slice(-1, None)))


def merge(parts: list[Any], order: Plain, rest: Rest, op: Frozen, folding: Folding) -> Any:
    """Combine the aggregates of equal keys from all chunks, each starting from init."""
    (keys_pattern, pattern), dtypes = folding
    keys, aggregates = arrived(parts)
    init = value_of([], rest, ())
    merged = ga.reduce_by_key(
        packed(keys_pattern, keys), packed(pattern, aggregates), init, load_operator(op),
        dtype=packed(pattern, dtypes),
    )  # fmt: skip
    return parts_of(merged)
