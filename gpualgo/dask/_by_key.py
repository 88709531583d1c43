"""`reduce_by_key` and `unique`: results of each chunk, combined by key or by neighbours."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._arrays.forms import Form
from gpualgo._distributed import MERGES, Order, Parts, concatenate, namespace_of, packed
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs
from gpualgo.dask._folds import Fold, parse_init
from gpualgo.dask._graph import Graph, result_arrays, results_of
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._sort import Run, add_exchange, join_slices
from gpualgo.dask._tasks import (
    call_on,
    copy_slice,
    index_parts,
    meta_like,
    pickle_operator,
    result,
    unpack,
)

# --- Bring equal keys of all chunks together: cut runs of distinct keys at common splitters.
#
# The keys of each run are sorted and distinct, so few distinct keys are few elements. Samples
# divide the key range among result chunks; the sizes of these are known once they are
# computed.

CHUNKS_TOGETHER = 4  # input chunks per result chunk
_SAMPLES_PER_CUT = 4


def add_grouped_chunks(graph: Graph, runs: list[TaskRef], by_key: ByKey) -> int:
    """Add the result chunks of runs of distinct keys; return their number."""
    order, outputs = Order(by_key.keys), -(-len(runs) // CHUNKS_TOGETHER)
    if outputs == 1:
        graph.add("", (0,), by_key.merged, runs)
        return 1
    count = _SAMPLES_PER_CUT * outputs
    samples = [graph.add("sample", (i,), sample_keys, run, count) for i, run in enumerate(runs)]
    bounds = graph.add("splitters", (), order.splitters, samples, outputs)
    cuts = [graph.add("bounds", (i,), cut, run, bounds, outputs, order)
            for i, run in enumerate(runs)]  # fmt: skip
    table = graph.add("cuts", (), np.stack, cuts, 1)
    for j, pieces in enumerate(add_exchange(graph, runs, table, outputs)):
        graph.add("", (j,), by_key.merged, pieces)
    return outputs


def sample_keys(own: Run, count: int) -> tuple[Parts, int]:
    """Return evenly spaced keys of a run, and the number of keys each stands for."""
    width = max(1, len(own[0][0]) // count)
    return copy_slice(own[0], slice(width - 1, None, width)), width


def cut(own: Run, bounds: Parts | None, outputs: int, order: Order) -> Any:
    """Return where the slices of a run begin, behind the keys up to each splitter, and its end."""
    if bounds is None:
        return np.zeros(outputs + 1, np.int64)
    return np.array([0, *order.up_to(own[0], bounds), len(own[0][0])], np.int64)


# --- Runs of equal neighbours that continue across chunks; each is output by the chunk it begins
# in.
#
# One task gets the first and last runs of all chunks. It tells each chunk whether its first run
# began earlier, and what later chunks add to its last run.

Runs = tuple[Parts, Parts, Parts]
"""Of a chunk: the first keys of its runs, the runs' aggregates, and the chunk's last key."""
Edges = tuple[int, Parts, Parts, Parts]
"""Of a chunk: the number of runs, the first key and aggregate, and the last key."""
Joint = tuple[int, Parts | None, int]
"""Of a chunk: 1 if its first run began earlier, else 0; the aggregate of what continues its last
run; how many runs began earlier."""


def add_run_chunks(graph: Graph, runs: list[TaskRef], by_key: ByKey) -> TaskRef:
    """Add the result chunks: the runs that begin in each chunk; return the task of the joints."""
    edges = [graph.add("edges", (i,), edges_of, run) for i, run in enumerate(runs)]
    joints = graph.add("joints", (), by_key.joints, edges)
    for i, run in enumerate(runs):
        graph.add("", (i,), by_key.own_runs, run, joints, i)
    return joints


def edges_of(own: Runs) -> Edges:
    heads, aggregates, last_key = own
    first = slice(0, 1)
    return len(heads[0]), copy_slice(heads, first), copy_slice(aggregates, first), last_key


@dataclass(frozen=True)
class ByKey:
    """A reduction by key; its methods run within tasks."""

    keys: Form | None
    fold: Fold
    eq: Any = None
    init: Any = None

    def grouped(self, keys: Any, x: Any, consecutive: bool) -> Any:
        """Return a chunk's distinct keys, or its runs and last key; and their aggregates."""
        op, dtype = self.fold.op, packed(self.fold.form, self.fold.dtypes)
        distinct, aggregates = ga.reduce_by_key(
            keys, x, None, op, consecutive=consecutive, eq=self.eq, dtype=dtype
        )
        last_key = (copy_slice(unpack(keys), slice(-1, None)),) * consecutive
        return unpack(distinct), unpack(aggregates), *last_key

    def merged(self, parts: list[Any]) -> Any:
        """Combine the aggregates of equal keys from all chunks, each starting from init."""
        keys, aggregates = join_slices(parts)
        x = packed(self.keys, keys)
        return call_on(ga.unique, x) if not aggregates else self._reduced(x, aggregates)

    def joints(self, edges: list[Edges]) -> list[Joint]:
        starts, continuations = [0] * len(edges), list[Parts | None]([None] * len(edges))
        behind: tuple[int, Parts, Parts] | None = None  # the next chunk that has elements
        for i, (count, head, aggregate, last_key) in reversed(list(enumerate(edges))):
            if not count:
                continue
            if behind is not None and self._is_same_run(last_key, behind[1]):
                starts[behind[0]], continuations[i] = 1, behind[2]
                if count == 1:
                    aggregate = aggregate and self.fold.joined([aggregate, behind[2]], 0)
            behind = i, head, aggregate
        counts = (each[0] - start for each, start in zip(edges, starts, strict=True))
        return list(zip(starts, continuations, accumulate(counts, initial=0), strict=False))

    def own_runs(self, own: Runs, joints: list[Joint], number: int) -> Any:
        """Return the runs that begin in a chunk; the last includes its continuation."""
        heads, aggregates, _ = own
        start, continuation, _ = joints[number]
        last = len(heads[0]) - 1
        if continuation and start <= last:
            total = self.fold.joined([index_parts(aggregates, slice(last, None)), continuation], 0)
            aggregates = concatenate([index_parts(aggregates, slice(last)), total])
        heads, aggregates = (index_parts(one, slice(start, None)) for one in (heads, aggregates))
        if self.init is not None:  # combine it with each aggregate
            numbers = namespace_of(aggregates[0]).arange(len(aggregates[0]))
            aggregates = self._reduced(numbers, aggregates, consecutive=True)[1:]
        return result((*heads, *aggregates))

    def _reduced(self, keys: Any, aggregates: Parts, **options: Any) -> Any:
        x, dtype = (packed(self.fold.form, each) for each in (aggregates, self.fold.dtypes))
        return call_on(ga.reduce_by_key, keys, x, self.init, self.fold.op, dtype=dtype, **options)

    def _is_same_run(self, a: Parts, b: Parts) -> bool:
        """Return whether key b continues the run of key a."""
        values, _ = ga.run_length_encode(packed(self.keys, concatenate([a, b])), eq=self.eq)
        return len(unpack(values)[0]) == 1


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
    `consecutive` there are three tasks for a chunk, and one for all. A worker holds the chunks that
    it works on, and the distinct keys of at most four and a half chunks. Elements are grouped by
    chunk: equal chunks give equal bits, other chunks may round differently.
    """
    x_arg = _inputs.parse_argument(x, "reduce_by_key", "x")
    key_arg = _inputs.parse_argument(keys, "reduce_by_key", "keys", like=x_arg.first)
    _inputs.check_shapes(key_arg, x_arg, "keys have", "pass an element for each key")
    key_arg, x_arg = key_arg.flat(), x_arg.rechunked(key_arg.first.chunks).flat()
    local_op, frozen = pickle_operator(op, "reduce_by_key")
    local_eq, frozen_eq = (None, None) if eq is None else pickle_operator(eq, "reduce_by_key")
    initial = parse_init(init, x_arg, (), "reduce_by_key")
    dtypes, form = _inputs.probe_dtypes(
        ga.reduce_by_key, key_arg.small(), x_arg.small(), initial.small, local_op,
        consecutive=consecutive, eq=local_eq, dtype=dtype,
    )  # fmt: skip
    content = key_arg, x_arg, initial, frozen, frozen_eq, consecutive, dtypes
    graph = Graph("reduce-by-key", *content)
    fold = Fold(graph.shared("op", frozen), (0,), dtypes[len(key_arg.arrays) :], x_arg.form)
    by_key = ByKey(key_arg.form, fold, frozen_eq, initial.chunk(()))
    is_global = not checks.flag_argument(consecutive, "consecutive", "reduce_by_key")
    runs = []
    for index in _inputs.blocks(x_arg.first):
        args = key_arg.chunk(index), x_arg.chunk(index), not is_global
        runs.append(graph.add("chunk", index, replace(by_key, init=None).grouped, *args))
    outputs = len(runs)
    if is_global:
        outputs = add_grouped_chunks(graph, runs, by_key)
    else:
        add_run_chunks(graph, runs, by_key)
    chunks = ((math.nan,) * outputs,)
    return results_of(graph, form, x_arg.first, chunks, dtypes, key_arg, x_arg, initial.source)


# --- `unique`: the distinct elements of each chunk, combined by value or by neighbours.


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
    flags = {name: checks.flag_argument(flag, name, "unique") for name, flag in flags.items()}
    x_arg = _inputs.parse_argument(x, "unique")
    flat_arg = x_arg.flat()
    probe, form = _inputs.probe_call(ga.unique, x_arg.small(), **flags)
    wanted = return_index, return_counts
    graph = Graph("unique", flat_arg, consecutive, wanted)
    int64 = (np.dtype(np.int64),) * sum(wanted)
    dtypes = (*(part.dtype for part in probe[: len(x_arg.arrays)]), *int64)
    starts: Any = (0,) * flat_arg.first.numblocks[0]
    if return_index:
        flat_arg.require_sizes("indices depend on all sizes")
        starts = accumulate(flat_arg.first.chunks[0], initial=0)
    runs = []
    for index, start in zip(blocks(flat_arg.first), starts, strict=False):
        args = flat_arg.chunk(index), start, wanted, flags["consecutive"]
        runs.append(graph.add("chunk", index, unique_of_chunk, *args))
    op = pickle_operator(MERGES[wanted], "unique")[1]
    form_of_rest = Form(tuple, (None, None)) if all(wanted) else None
    by_key = ByKey(flat_arg.form, Fold(op, (0,), int64, form_of_rest))
    outputs = len(runs)
    if consecutive:
        joints = add_run_chunks(graph, runs, by_key)
    else:
        outputs = add_grouped_chunks(graph, runs, by_key)
    chunks = ((math.nan,) * outputs,)
    results = result_arrays(graph, flat_arg.first, chunks, dtypes, flat_arg)
    if return_inverse:
        if consecutive:
            inverse = _run_numbers(graph, x_arg, joints, results[0])
        else:
            inverse = _indices(graph, x_arg, outputs, results[0])
        results.insert(len(x_arg.arrays) + return_index, inverse)
    return packed(form, results)


def _indices(graph: Graph, x: Input, num_outputs: int, keys: Any) -> Any:
    """Return the index of each element among all distinct elements."""
    inv = Graph("unique-inverse", graph.token)
    outputs = [TaskRef(graph.key("", j)) for j in range(num_outputs)]
    for index in blocks(x.first):
        inv.add("", index, indices_of_chunk, x.chunk(index), outputs, x.form)
    meta = meta_like(x.first, x.first.ndim, np.int64)
    return inv.array("", x.first.chunks, meta, [*x.arrays, keys])


def _run_numbers(graph: Graph, x: Input, joints: TaskRef, keys: Any) -> Any:
    """Return the number of the run that each element is in."""
    inv, flat = Graph("unique-inverse", graph.token), x.flat()
    for (i,) in blocks(flat.first):
        inv.add("", (i,), run_numbers_of_chunk, flat.chunk((i,)), joints, i)
    meta = meta_like(x.first, 1, np.int64)
    run_ids = inv.array("", flat.first.chunks, meta, [*flat.arrays, keys])
    shape = x.first.shape
    if len(shape) > 1 and any(0 in sizes for sizes in x.first.chunks):  # dask's reshape fails
        return reshaped(run_ids, tuple((n,) for n in shape))
    return run_ids if len(shape) == 1 else run_ids.reshape(shape)


def unique_of_chunk(x: Any, start: int, wanted: tuple[bool, bool], consecutive: bool) -> Any:
    """Return a chunk's distinct elements, or the first of each run and its last element.

    With them go indices and counts, if wanted.
    """
    flags: Any = {"return_index": wanted[0], "return_counts": wanted[1]}
    outputs = ga.unique(x, consecutive=consecutive, **flags)
    keys, *more = outputs if any(wanted) else (outputs,)
    if wanted[0]:
        more[0] = more[0] + start
    last = (copy_slice(unpack(x), slice(-1, None)),) * consecutive
    return unpack(keys), tuple(more), *last


def indices_of_chunk(x: Any, outputs: list[Any], form: Form | None) -> Any:
    """Return the index of each element of a chunk among all distinct elements."""
    keys = [unpack(output)[: len(unpack(x))] for output in outputs]
    return ga.searchsorted(packed(form, concatenate(keys)), x)


def run_numbers_of_chunk(x: Any, joints: list[Joint], number: int) -> Any:
    """Return each element's run number; the chunk's first run may begin in an earlier chunk."""
    _, local = ga.unique(x, consecutive=True, return_inverse=True)
    start, _, begun = joints[number]
    return local + (begun - start)
