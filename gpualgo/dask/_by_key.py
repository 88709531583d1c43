"""`reduce_by_key`: reduces each chunk by key, then combines the chunks' results."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _order, _results, _scan
from gpualgo.dask._exchange import Run, add_exchange, join_slices
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._order import OrderArgs
from gpualgo.dask._reduce import InitTaskArgs, init_in_task, parse_init
from gpualgo.dask._scan import Runs
from gpualgo.dask._values import (
    ChunkSpec,
    Parts,
    Structure,
    checked_chunks,
    concatenate,
    copied,
    index_parts,
    namespace_of,
    on_host,
    pack,
    unpack,
)

# --- Bring equal keys of all chunks together: cut runs of distinct keys at common splitters.
#
# The keys of each run are sorted and distinct, so few distinct keys are few elements. Samples
# divide the key range among result chunks; the sizes of these are known once they are
# computed.

CHUNKS_TOGETHER = 4  # input chunks per result chunk
_SAMPLES_PER_CUT = 4


def add_grouped_chunks(
    graph: Graph, runs: list[TaskRef], order: OrderArgs, finish: Callable[..., Any], *args: Any
) -> int:
    """Add the result chunks of runs of distinct keys; return their number.

    `finish` combines the slices of all runs for one result chunk, in the order of the runs.
    """
    outputs = -(-len(runs) // CHUNKS_TOGETHER)
    if outputs == 1:
        graph.add("", (0,), finish, runs, order, *args)
        return 1
    count = _SAMPLES_PER_CUT * outputs
    samples = [graph.add("sample", (i,), sample, run, count) for i, run in enumerate(runs)]
    splitters = graph.add("splitters", (), compute_splitters, samples, outputs, order)
    run_cuts = [graph.add("places", (i,), cut, run, splitters, order) for i, run in enumerate(runs)]
    cuts = graph.add("cuts", (), table, run_cuts, outputs)
    for j, pieces in enumerate(add_exchange(graph, runs, cuts, outputs)):
        graph.add("", (j,), finish, pieces, order, *args)
    return outputs


# --- within tasks -------------------------------------------------------------------------------


def sample(own: Run, count: int) -> tuple[Parts, int]:
    """Return evenly spaced keys of a run, and the number of keys each stands for."""
    width = max(1, len(own[0][0]) // count)
    return copied(index_parts(own[0], slice(width - 1, None, width))), width


def compute_splitters(
    samples: list[tuple[Parts, int]], outputs: int, order: OrderArgs
) -> Parts | None:
    """Return keys that split all keys into ranges of similar size; None if there are no keys."""
    lengths = [len(parts[0]) for parts, _ in samples]
    if not sum(lengths):
        return None
    keys = concatenate([parts for parts, _ in samples])
    order_of_samples = _order.sort_indices(keys, order)
    weights = np.repeat([width for _, width in samples], lengths)[on_host(order_of_samples)]
    cumulative = np.cumsum(weights)
    wanted = cumulative[-1] * np.arange(1, outputs) // outputs
    chosen = np.clip(np.searchsorted(cumulative, wanted), 0, len(cumulative) - 1)
    return index_parts(keys, order_of_samples[namespace_of(order_of_samples).asarray(chosen)])


def cut(own: Run, splitters: Parts | None, order: OrderArgs) -> Any:
    """Return the indices that cut a run behind the keys up to each splitter."""
    return None if splitters is None else _order.up_to(own[0], splitters, order)


def table(places: list[Any], outputs: int) -> np.ndarray[Any, Any]:
    """Return the cuts of all runs: a row for each splitter."""
    if places[0] is None:
        return np.zeros((outputs - 1, len(places)), np.int64)
    return np.stack(places, 1).astype(np.int64)


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
    local_op, frozen = pickle_operator(op, _NAME)
    local_eq, frozen_eq = (None, None) if eq is None else pickle_operator(eq, _NAME)
    initial = parse_init(init, x_arg, (), _NAME)
    probe, form = _inputs.probe_call(
        ga.reduce_by_key, key_arg.small(), x_arg.small(), init, local_op, consecutive=consecutive,
        eq=local_eq, dtype=dtype,
    )  # fmt: skip
    dtypes = tuple(part.dtype for part in probe)
    content = key_arg.content, x_arg.content, initial.content, frozen[0], frozen_eq and frozen_eq[0]
    graph = Graph("reduce-by-key", *content, consecutive, dtypes)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    patterns = key_arg.source[2], x_arg.source[2]
    folding = patterns, dtypes[len(key_arg.arrays) :]
    is_global = not checks.flag_argument(consecutive, "consecutive", _NAME)
    runs = []
    for index in _inputs.blocks(x_arg.first):
        inputs = key_arg.chunk(index), key_arg.source, x_arg.chunk(index), x_arg.source, index
        function = chunk if is_global else neighbours
        runs.append(graph.add("chunk", index, function, *inputs, op_arg, frozen_eq, folding))
    if is_global:
        order = key_arg.source[2], (None, (False,)), (0, None)
        outputs = add_grouped_chunks(graph, runs, order, merge, initial.rest, op_arg, folding)
    else:
        outputs = len(runs)
        combination = patterns[1], op_arg, folding[1]
        _scan.add_run_chunks(graph, runs, patterns[0], frozen_eq, initial.rest, combination)
    chunks = ((math.nan,) * outputs,)
    sources = *key_arg.arrays, *x_arg.arrays
    results = _results.arrays(graph, "", x_arg.first, chunks, dtypes, sources)
    return _results.pack_results(form, results)


def _cut_alike(keys: Any, x: Any) -> tuple[Input, Input]:
    """Return keys and elements, flattened and with the same chunks."""
    x_arg = _inputs.parse_argument(x, _NAME, "x")
    key_arg = _inputs.parse_argument(keys, _NAME, "keys", like=x_arg.first)
    if x_arg.is_known and key_arg.is_known and x_arg.first.shape != key_arg.first.shape:
        raise ValueError(
            f"reduce_by_key: keys have shape {key_arg.first.shape} and x {x_arg.first.shape}; "
            "pass an element for each key"
        )
    if not _inputs.same_chunks(key_arg, x_arg):
        x_arg = x_arg.rechunked(key_arg.first.chunks)
    return key_arg.flat(), x_arg.flat()


Folding = tuple[tuple[Structure, Structure], tuple[Any, ...]]
"""The patterns of keys and elements, and the dtypes of aggregates."""


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], names: ChunkSpec, elements: list[Any], source: ChunkSpec, index: Index,
    op: PickledOperator, eq: PickledOperator | None, folding: Folding,
) -> Run:  # fmt: skip
    """Return a chunk's distinct keys and their aggregates."""
    keys = pack(names[2], checked_chunks(chunks, names, index))
    x = pack(source[2], checked_chunks(elements, source, index))
    dtype = pack(folding[0][1], folding[1])
    distinct, aggregates = ga.reduce_by_key(keys, x, None, load_operator(op), dtype=dtype)
    return unpack(distinct), unpack(aggregates)


def neighbours(
    chunks: list[Any], names: ChunkSpec, elements: list[Any], source: ChunkSpec, index: Index,
    op: PickledOperator, eq: PickledOperator | None, folding: Folding,
) -> Runs:  # fmt: skip
    """Return a chunk's runs of equal keys, their aggregates, and the chunk's last key."""
    keys = checked_chunks(chunks, names, index)
    x = pack(source[2], checked_chunks(elements, source, index))
    options = {"eq": load_operator(eq), "dtype": pack(folding[0][1], folding[1])}
    run_keys, aggregates = ga.reduce_by_key(
        pack(names[2], keys), x, None, load_operator(op), consecutive=True, **options
    )
    return unpack(run_keys), unpack(aggregates), copied(index_parts(keys, slice(-1, None)))


def merge(
    parts: list[Any], order: OrderArgs, rest: InitTaskArgs, op: PickledOperator, folding: Folding
) -> Any:
    """Combine the aggregates of equal keys from all chunks, each starting from init."""
    (keys_pattern, pattern), dtypes = folding
    keys, aggregates = join_slices(parts)
    init = init_in_task([], rest, ())
    merged = ga.reduce_by_key(
        pack(keys_pattern, keys), pack(pattern, aggregates), init, load_operator(op),
        dtype=pack(pattern, dtypes),
    )  # fmt: skip
    return unpack(merged)
