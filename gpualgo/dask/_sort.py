"""Sorts, and reductions by key: runs of chunks, cuts, then each result chunk made of slices.

Sorts order equal keys by chunk and index, so equal keys, NaN, signed zeros and empty chunks need no
special case.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo import _distributed
from gpualgo._algorithms.radix_sort.cuts import Spans, Table, sample_width
from gpualgo._arrays.forms import Form
from gpualgo._distributed import Order, Parts, concatenate, namespace_of, packed
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _tasks
from gpualgo.dask._folds import Fold, parse_init
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._tasks import Graph, call_on, copy_slice, index_parts, pickle_operator, unpack


def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: Any = 0,
    end_bit: Any = None, axis: Any = -1,
) -> Any:  # fmt: skip
    """Return stably sorted keys, and values moved with them: ``keys[p]``, p = ``argsort(keys)``.

    Parameters and result are those of `gpualgo.radix_sort`, with dask arrays for arrays; the result
    has the same bits, and the chunks of keys. Chunk sizes must be known.

    Notes
    -----
    Each of P chunks is sorted. From samples and a few keys the exact bounds of each result chunk in
    each sorted chunk are found; then each result chunk gets its elements and sorts them. Each
    element is moved once. There are P² + 4P tasks; with more than 64 chunks 2·P^1.5 + 5P, in groups
    of about √P. A worker holds twice the chunks that it sorts (values too), and one task holds
    about P·√(2n) keys. If an array of several rows is sorted along a chunked axis, it is rechunked
    to whole rows, which must fit in memory.
    """
    func_name = "radix_sort"
    k_arg = _inputs.parse_argument(keys, func_name, "keys")
    v_arg = None if values is None else _values(values, k_arg, func_name)
    small = v_arg and v_arg.small()
    begin = checks.integer(begin_bit, "begin_bit", func_name)
    end = None if end_bit is None else checks.integer(end_bit, "end_bit", func_name)
    order = Order(k_arg.form, descending, begin, end)
    options = {"axis": axis, **order.options}
    dtypes, form = _inputs.probe_dtypes(ga.radix_sort, k_arg.small(), small, **options)
    return packed(form, _sort(k_arg, v_arg, order, axis, dtypes))


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with dask arrays for arrays; cost and
    memory are those of `radix_sort` with indices as values.
    """
    func_name = "argsort"
    k_arg = _inputs.parse_argument(keys, func_name, "keys")
    order = Order(k_arg.form, descending)
    options = {"descending": descending, "axis": axis, "dtype": dtype}
    (index_dtype,), _ = _inputs.probe_dtypes(ga.argsort, k_arg.small(), **options)
    shape, axes = k_arg.first.shape, k_arg.axes(checks.plain_axis(axis, func_name))
    _distributed.check_index_dtype(index_dtype, math.prod(shape[a] for a in axes))
    return _sort(k_arg, None, order, axis, (index_dtype,))[0]


def _values(values: Any, keys: Input, func_name: str) -> Input:
    """Return values with the chunks of the keys."""
    v_arg = _inputs.parse_argument(values, func_name, "values", like=keys.first)
    if v_arg.form is None:
        told = f"{func_name}: values have shape {{}} and keys {{}}"
        _inputs.check_shapes(told, v_arg.first.shape, keys.first.shape, "pass a value for each key")
    return v_arg.broadcast(keys.first)


def _sort(
    keys: Input, values: Input | None, order: Order, axis: Any, dtypes: tuple[Any, ...]
) -> list[Any]:
    """Return the sorted arrays; for an argsort the indices."""
    ndim = keys.first.ndim
    keys, sort_axis = keys.line(axis)
    values = values and values.line(axis)[0]
    if keys.first.numblocks[sort_axis] == 1:
        return _rows(keys, values, order, sort_axis, dtypes)
    keys.require_sizes("the index of a sorted element depends on all sizes")
    chunks = keys.first.chunks
    if ndim > 1 and axis is not None and keys.first.size == keys.first.shape[sort_axis]:
        keys, values = keys.flat(), values and values.flat()
        return [reshaped(x, chunks) for x in _sort(keys, values, order, 0, dtypes)]
    if keys.first.ndim > 1:
        row_chunks = {a: -1 if a == sort_axis else "auto" for a in range(ndim)}
        keys = keys.rechunked(row_chunks)
        values = values and values.rechunked(keys.first.chunks)
        return [x.rechunk(chunks) for x in _rows(keys, values, order, sort_axis, dtypes)]
    return _long_row(keys, values, order, dtypes)


def _rows(
    keys: Input, values: Input | None, order: Order, axis: int, dtypes: tuple[Any, ...]
) -> list[Any]:
    """Sort chunks that hold whole rows."""
    graph = Graph(keys.where, keys, values, order.options, axis, dtypes)
    options = {"axis": axis, **order.options}
    if keys.where == "argsort":
        options["dtype"] = dtypes[0]
    args = [x for x in (keys, values) if x is not None]
    keys.each(graph, "", call_on, getattr(ga, keys.where), *args, **options)
    return graph.results(keys.first.chunks, dtypes, keys, values)


def _long_row(
    keys: Input, values: Input | None, order: Order, dtypes: tuple[Any, ...]
) -> list[Any]:
    """Sort one row of several chunks."""
    graph = Graph(keys.where, keys, values, order.options, dtypes)
    index_dtype = dtypes[0] if keys.where == "argsort" else None
    sizes = keys.first.chunks[0]
    ranks, width = tuple(accumulate(sizes))[:-1], sample_width(sizes)
    runs, samples = [], []
    for i, start in enumerate((0, *ranks)):
        args = keys.chunk((i,)), values and values.chunk((i,)), order, start, index_dtype
        runs.append(graph.add("run", (i,), sort_run, *args))
        samples.append(graph.add("sample", (i,), sample, runs[i], width))
    spans = graph.add("spans", (), order.brackets, samples, sizes, ranks, width)
    windows = [graph.add("candidates", (i,), candidates, run, i, spans)
               for i, run in enumerate(runs)]  # fmt: skip
    table = graph.add("cuts", (), order.borders, windows, spans, sizes, ranks)
    forms = keys.form, values and values.form
    for j, pieces in enumerate(add_exchange(graph, runs, table, len(runs))):
        graph.add("", (j,), merge, pieces, order, forms, index_dtype is not None)
    return graph.results(keys.first.chunks, dtypes, keys, values)


# --- Within tasks: sorted runs, splitters, exact cuts, merges.


def sort_run(keys: Any, values: Any, order: Order, start: int, index_dtype: Any) -> Run:
    """Sort a chunk along with its values, or with the global indices of its keys."""
    if index_dtype is not None:
        first = unpack(keys)[0]
        values = namespace_of(first).arange(start, start + len(first), dtype=index_dtype)
    return _sorted(keys, values, order)


def _sorted(keys: Any, values: Any, order: Order, **out: Any) -> Run:
    call: Any = ga.radix_sort  # whose overloads know no tuples of unknown length
    found = call(keys, values, **order.options, **out)
    return (unpack(found), ()) if values is None else (unpack(found[0]), unpack(found[1]))


def sample(own: Run, width: int) -> Parts:
    """Return every width-th key of a run."""
    return copy_slice(own[0], slice(width - 1, None, width))


def candidates(own: Run, number: int, spans: Spans) -> list[Parts]:
    """Return a run's keys between the bounds of each cut."""
    pairs = zip(*(bounds[:, number].tolist() for bounds in spans), strict=True)
    return [copy_slice(own[0], slice(low, high)) for low, high in pairs]


def merge(parts: list[Any], order: Order, forms: Any, wants_values: bool) -> Any:
    """Join the slices for a result chunk in the order of their runs, and sort them stably."""
    keys, values = (packed(form, run) if run else None
                    for form, run in zip(forms, join_slices(parts), strict=True))  # fmt: skip
    out = keys if values is None else (keys, values)
    keys, values = _sorted(keys, values, order, out=out)
    return _tasks.result(values if wants_values else (*keys, *values))


# --- Move slices of sorted runs to result chunks: directly, or through groups of runs.

Run = tuple[Parts, Parts]
"""Sorted keys and the values moved with them."""

MOST_DIRECT = 64 * 64  # slices sent directly; above that, through groups


def add_exchange(
    graph: Graph, runs: list[TaskRef], table: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """For each result chunk, return the slices it gets from all runs, as `join_slices` reads them.

    `table` tells where the slices begin in each run: a row for each result chunk, and one more.
    """
    count = len(runs)
    if count * num_chunks <= MOST_DIRECT:
        return [[graph.add("piece", (i, j), slice_run, run, table, i, j, j + 1)
                 for i, run in enumerate(runs)] for j in range(num_chunks)]  # fmt: skip
    # Groups of runs first bundle their slices for groups of chunks. A group takes every n-th run:
    # of sorted input, neighbouring runs would all go to one chunk.
    size, groups = math.isqrt(num_chunks - 1) + 1, math.isqrt(count - 1) + 1
    gathered: list[list[TaskRef]] = []
    for target, first in enumerate(range(0, num_chunks, size)):
        last = min(first + size, num_chunks)
        bundles = []
        for group in range(groups):
            parts = [graph.add("part", (i, target), slice_run, runs[i], table, i, first, last)
                     for i in range(group, count, groups)]  # fmt: skip
            bundles.append(graph.add("bundle", (group, target), list, parts))
        for j in range(first, last):
            args = table, groups, first, j
            gathered.append([graph.add("piece", (group, j), slice_bundle, bundle, group, *args)
                             for group, bundle in enumerate(bundles)])  # fmt: skip
    return gathered


# Within tasks:


def slice_run(own: Run, table: Table, number: int, first: int, last: int, origin: int = 0) -> Run:
    """Return a copy of the slice that result chunks [first, last) get.

    It is one of a run, or of its slice for the chunks from `origin` on.
    """
    start, *ends = table[[origin, first, last], number].tolist()
    span = slice(*(end - start for end in ends))
    return copy_slice(own[0], span), copy_slice(own[1], span)


def slice_bundle(
    parts: list[Run], group: int, table: Table, step: int, first: int, chunk: int
) -> list[Run]:
    """Return the slices for one chunk, from a group's slices for chunks from `first` on."""
    return [slice_run(part, table, group + i * step, chunk, chunk + 1, first)
            for i, part in enumerate(parts)]  # fmt: skip


def join_slices(parts: list[Any]) -> Run:
    """Join the slices for a result chunk, in the order of the runs."""
    if isinstance(parts[0], list):  # from groups, each of every n-th run
        parts = [run for runs in zip_longest(*parts) for run in runs if run is not None]
    return concatenate([run[0] for run in parts]), concatenate([run[1] for run in parts])


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
# in. One task finds the joints from the first and last runs of all chunks.

Runs = tuple[Parts, Parts, Parts]
"""Of a chunk: the first keys of its runs, the runs' aggregates, and the chunk's last key."""


def add_run_chunks(graph: Graph, runs: list[TaskRef], by_key: ByKey) -> TaskRef:
    """Add the result chunks: the runs that begin in each chunk; return the task of the joints."""
    edges = [graph.add("edges", (i,), edges_of, run) for i, run in enumerate(runs)]
    found = graph.add("joints", (), by_key.joints, edges)
    for i, run in enumerate(runs):
        graph.add("", (i,), by_key.own_runs, run, found, i)
    return found


def edges_of(own: Runs) -> _distributed.Edges:
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

    def joints(self, edges: list[_distributed.Edges]) -> list[_distributed.Joint]:
        def joined(a: Parts, b: Parts) -> Parts:
            return a and self.fold.joined([a, b], 0)

        return _distributed.joints(edges, self._is_same_run, joined)

    def own_runs(self, own: Runs, found: list[_distributed.Joint], number: int) -> Any:
        """Return the runs that begin in a chunk; the last includes its continuation."""
        heads, aggregates, _ = own
        start, continuation, _ = found[number]
        last = len(heads[0]) - 1
        if continuation and start <= last:
            total = self.fold.joined([index_parts(aggregates, slice(last, None)), continuation], 0)
            aggregates = concatenate([index_parts(aggregates, slice(last)), total])
        heads, aggregates = (index_parts(one, slice(start, None)) for one in (heads, aggregates))
        if self.init is not None:  # combine it with each aggregate
            numbers = namespace_of(aggregates[0]).arange(len(aggregates[0]))
            aggregates = self._reduced(numbers, aggregates, consecutive=True)[1:]
        return _tasks.result((*heads, *aggregates))

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
    told, advice = "reduce_by_key: keys have shape {} and x {}", "pass an element for each key"
    _inputs.check_shapes(told, key_arg.first.shape, x_arg.first.shape, advice)
    key_arg, x_arg = key_arg.flat(), x_arg.broadcast(key_arg.first).flat()
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
    local = replace(by_key, init=None).grouped
    runs = list(x_arg.each(graph, "chunk", local, key_arg, x_arg, not is_global).values())
    outputs = len(runs)
    if is_global:
        outputs = add_grouped_chunks(graph, runs, by_key)
    else:
        add_run_chunks(graph, runs, by_key)
    chunks = ((math.nan,) * outputs,)
    return packed(form, graph.results(chunks, dtypes, x_arg, key_arg, initial.source))


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
    op = pickle_operator(_distributed.MERGES[wanted], "unique")[1]
    form_of_rest = Form(tuple, (None, None)) if all(wanted) else None
    by_key = ByKey(flat_arg.form, Fold(op, (0,), int64, form_of_rest))
    outputs = len(runs)
    if consecutive:
        found = add_run_chunks(graph, runs, by_key)
    else:
        outputs = add_grouped_chunks(graph, runs, by_key)
    chunks = ((math.nan,) * outputs,)
    results = graph.results(chunks, dtypes, flat_arg)
    if return_inverse:
        if consecutive:
            inverse = _run_numbers(graph, x_arg, found, results[0])
        else:
            inverse = _indices(graph, x_arg, outputs, results[0])
        results.insert(len(x_arg.arrays) + return_index, inverse)
    return packed(form, results)


def _indices(graph: Graph, x: Input, num_outputs: int, keys: Any) -> Any:
    """Return the index of each element among all distinct elements."""
    inv = Graph("unique-inverse", graph.token)
    outputs = [TaskRef(graph.key("", j)) for j in range(num_outputs)]
    x.each(inv, "", indices_of_chunk, x, outputs, x.form)
    meta = _tasks.meta_like(x.first, x.first.ndim, np.int64)
    return inv.array("", x.first.chunks, meta, [*x.arrays, keys])


def _run_numbers(graph: Graph, x: Input, found: TaskRef, keys: Any) -> Any:
    """Return the number of the run that each element is in."""
    inv, flat = Graph("unique-inverse", graph.token), x.flat()
    for (i,) in blocks(flat.first):
        inv.add("", (i,), run_numbers_of_chunk, flat.chunk((i,)), found, i)
    meta = _tasks.meta_like(x.first, 1, np.int64)
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


def run_numbers_of_chunk(x: Any, found: list[_distributed.Joint], number: int) -> Any:
    """Return each element's run number; the chunk's first run may begin in an earlier chunk."""
    _, local = ga.unique(x, consecutive=True, return_inverse=True)
    start, _, begun = found[number]
    return local + (begun - start)
