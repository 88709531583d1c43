"""`reduce_by_key` and `unique`: results of each chunk, combined by key or by neighbours."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._distributed import Table, splitters
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs
from gpualgo.dask._folds import init_in_task, parse_init
from gpualgo.dask._graph import Graph, packed, result_arrays, results_of
from gpualgo.dask._inputs import Input, blocks, reshaped
from gpualgo.dask._sort import Order, Run, add_exchange, join_slices, sort_indices, up_to
from gpualgo.dask._tasks import (
    ChunkArg,
    Parts,
    PickledOperator,
    Structure,
    concatenate,
    copy_slice,
    element_of,
    index_parts,
    load_operator,
    meta_like,
    namespace_of,
    on_host,
    pack,
    parts_of,
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


def ascending(keys: Input) -> Order:
    return keys.pattern, (None, (False,)), (0, None)


def add_grouped_chunks(
    graph: Graph, runs: list[TaskRef], order: Order, finish: Callable[..., Any], *args: Any
) -> int:
    """Add the result chunks of runs of distinct keys; return their number.

    `finish` combines the slices of all runs for one result chunk, in the order of the runs.
    """
    outputs = -(-len(runs) // CHUNKS_TOGETHER)
    if outputs == 1:
        graph.add("", (0,), finish, runs, *args)
        return 1
    count = _SAMPLES_PER_CUT * outputs
    samples = [graph.add("sample", (i,), sample_keys, run, count) for i, run in enumerate(runs)]
    bounds = graph.add("splitters", (), compute_splitters, samples, outputs, order)
    cuts = [graph.add("bounds", (i,), cut, run, bounds, outputs, order)
            for i, run in enumerate(runs)]  # fmt: skip
    table = graph.add("cuts", (), stack_cuts, cuts)
    for j, pieces in enumerate(add_exchange(graph, runs, table, outputs)):
        graph.add("", (j,), finish, pieces, *args)
    return outputs


def sample_keys(own: Run, count: int) -> tuple[Parts, int]:
    """Return evenly spaced keys of a run, and the number of keys each stands for."""
    width = max(1, len(own[0][0]) // count)
    return copy_slice(own[0], slice(width - 1, None, width)), width


def compute_splitters(samples: list[tuple[Parts, int]], outputs: int, order: Order) -> Parts | None:
    """Return keys that split all keys into ranges of similar size; None if there are no keys."""
    lengths = [len(parts[0]) for parts, _ in samples]
    if not sum(lengths):
        return None
    keys = concatenate([parts for parts, _ in samples])
    order_of_samples = sort_indices(keys, order)
    widths = [width for _, width in samples]
    chosen = splitters(widths, lengths, on_host(order_of_samples), outputs)
    return index_parts(keys, namespace_of(order_of_samples).asarray(chosen))


def cut(own: Run, bounds: Parts | None, outputs: int, order: Order) -> Any:
    """Return where the slices of a run begin, behind the keys up to each splitter, and its end."""
    if bounds is None:
        return np.zeros(outputs + 1, np.int64)
    return np.array([0, *up_to(own[0], bounds, order), len(own[0][0])], np.int64)


def stack_cuts(cuts: list[Any]) -> Table:
    return np.stack(cuts, 1)


# --- Runs of equal neighbours that continue across chunks; each is output by the chunk it begins
# in.
#
# Two chains of tasks: from the left the last key before each chunk, to tell whether its first run
# began earlier; from the right the aggregate of its first run, including its continuation in later
# chunks.

Runs = tuple[Parts, Parts, Parts]
"""Of a chunk: the first keys of its runs, the runs' aggregates, and the chunk's last key."""
Combination = tuple[Structure, Any, tuple[Any, ...]]
"""How two aggregates of a run are combined: pattern, operator, dtypes.

Without an operator the dtypes are "first" or "sum".
"""


def add_run_chunks(
    graph: Graph, runs: list[TaskRef], keys: Structure, eq: PickledOperator | None, init: Any,
    combination: Combination,
) -> int:  # fmt: skip
    """Add the result chunks: the runs that begin in each chunk; return their number."""
    before: list[TaskRef | None] = [None]
    for i, run in enumerate(runs[:-1]):
        before.append(graph.add("last", (i,), last_key_of, before[-1], run))
    behind: TaskRef | None = None
    for i, run in reversed(list(enumerate(runs))):
        graph.add("", (i,), own_runs, run, behind, before[i], keys, eq, init, *combination)
        if i:
            behind = graph.add("first", (i,), first_run, run, behind, keys, eq, *combination)
    return len(runs)


def last_key_of(before: Parts | None, own: Runs) -> Parts | None:
    """Return the last key of a chunk; if it is empty, of the chunks before it."""
    return own[2] if len(own[2][0]) else before


def first_run(
    own: Runs, behind: tuple[Parts, Parts] | None, keys: Structure, eq: PickledOperator | None,
    pattern: Structure, op: PickledOperator | None, kinds: tuple[Any, ...],
) -> tuple[Parts, Parts] | None:  # fmt: skip
    """Return the first key of a chunk and the aggregate of its run, with its continuation."""
    heads, aggregates, last_key = own
    count = len(heads[0])
    if not count:
        return behind
    aggregate = index_parts(aggregates, slice(0, 1))
    if count == 1 and behind is not None and _is_same_run(last_key, behind[0], keys, eq):
        aggregate = _combined(aggregate, behind[1], (pattern, op, kinds))
    return index_parts(heads, slice(0, 1)), aggregate


def own_runs(
    own: Runs, behind: tuple[Parts, Parts] | None, before: Parts | None, keys: Structure,
    eq: PickledOperator | None, init: Any, pattern: Structure, op: PickledOperator | None,
    kinds: tuple[Any, ...],
) -> Any:  # fmt: skip
    """Return the runs that begin in a chunk; the last includes its continuation."""
    heads, aggregates, last_key = own
    count = len(heads[0])
    first = index_parts(heads, slice(0, 1))
    start = int(count > 0 and before is not None and _is_same_run(before, first, keys, eq))
    combine = pattern, op, kinds
    if start < count and behind is not None and _is_same_run(last_key, behind[0], keys, eq):
        total = _combined(index_parts(aggregates, slice(count - 1, None)), behind[1], combine)
        aggregates = concatenate([index_parts(aggregates, slice(0, count - 1)), total])
    heads, aggregates = (index_parts(one, slice(start, None)) for one in (heads, aggregates))
    value = init_in_task(init)
    if value is not None:  # combine it with each aggregate
        numbers = namespace_of(aggregates[0]).arange(len(aggregates[0]))
        x, fn, dtype = pack(pattern, aggregates), load_operator(op), pack(pattern, kinds)
        combined = ga.reduce_by_key(numbers, x, value, fn, consecutive=True, dtype=dtype)[1]
        aggregates = unpack(combined)
    return result((*heads, *aggregates))


def _is_same_run(a: Parts, b: Parts, keys: Structure, eq: PickledOperator | None) -> bool:
    """Return whether key b continues the run of key a."""
    values, _ = ga.run_length_encode(pack(keys, concatenate([a, b])), eq=load_operator(eq))
    return len(unpack(values)[0]) == 1


def _combined(a: Parts, b: Parts, combine: Combination) -> Parts:
    """Combine two aggregates of one run."""
    pattern, op, kinds = combine
    if op is None:
        fields = zip(a, b, kinds, strict=True)
        return tuple(p if kind == "first" else p + q for p, q, kind in fields)
    x, dtype = pack(pattern, concatenate([a, b])), pack(pattern, kinds)
    return unpack(ga.reduce(x, None, load_operator(op), axis=(0,), keepdims=True, dtype=dtype))


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
    x_arg = _inputs.parse_argument(x, "reduce_by_key", "x")
    key_arg = _inputs.parse_argument(keys, "reduce_by_key", "keys", like=x_arg.first)
    _inputs.check_shapes(key_arg, x_arg, "keys have", "pass an element for each key")
    key_arg, x_arg = key_arg.flat(), x_arg.with_chunks_of(key_arg).flat()
    local_op, frozen = pickle_operator(op, "reduce_by_key")
    local_eq, frozen_eq = (None, None) if eq is None else pickle_operator(eq, "reduce_by_key")
    initial = parse_init(init, x_arg, (), "reduce_by_key")
    dtypes, form = _inputs.probe_dtypes(
        ga.reduce_by_key, key_arg.small(), x_arg.small(), init, local_op, consecutive=consecutive,
        eq=local_eq, dtype=dtype,
    )  # fmt: skip
    content = key_arg.content, x_arg.content, initial.content, frozen[0], frozen_eq and frozen_eq[0]
    graph = Graph("reduce-by-key", *content, consecutive, dtypes)
    op_arg = graph.operator(frozen)
    patterns = key_arg.pattern, x_arg.pattern
    folding = patterns, dtypes[len(key_arg.arrays) :]
    is_global = not checks.flag_argument(consecutive, "consecutive", "reduce_by_key")
    runs = []
    for index in _inputs.blocks(x_arg.first):
        args = key_arg.chunk(index), x_arg.chunk(index), op_arg, frozen_eq, folding, not is_global
        runs.append(graph.add("chunk", index, reduce_chunk_by_key, *args))
    init_value = initial.chunk(())
    if is_global:
        merging = merge_by_key, init_value, op_arg, folding
        outputs = add_grouped_chunks(graph, runs, ascending(key_arg), *merging)
    else:
        combination = patterns[1], op_arg, folding[1]
        outputs = add_run_chunks(graph, runs, patterns[0], frozen_eq, init_value, combination)
    chunks = ((math.nan,) * outputs,)
    return results_of(graph, form, x_arg.first, chunks, dtypes, key_arg, x_arg)


Folding = tuple[tuple[Structure, Structure], tuple[Any, ...]]
"""The patterns of keys and elements, and the dtypes of aggregates."""


def reduce_chunk_by_key(
    keys: ChunkArg, x: ChunkArg, op: PickledOperator, eq: PickledOperator | None, folding: Folding,
    consecutive: bool,
) -> Any:  # fmt: skip
    """Return a chunk's distinct keys, or runs of equal ones and its last key; their aggregates."""
    distinct, aggregates = ga.reduce_by_key(
        element_of(keys), element_of(x), None, load_operator(op), consecutive=consecutive,
        eq=load_operator(eq), dtype=pack(folding[0][1], folding[1]),
    )  # fmt: skip
    last_key = (copy_slice(parts_of(keys), slice(-1, None)),) * consecutive
    return unpack(distinct), unpack(aggregates), *last_key


def merge_by_key(parts: list[Any], init: Any, op: PickledOperator, folding: Folding) -> Any:
    """Combine the aggregates of equal keys from all chunks, each starting from init."""
    (keys_pattern, pattern), dtypes = folding
    keys, aggregates = join_slices(parts)
    merged = ga.reduce_by_key(
        pack(keys_pattern, keys), pack(pattern, aggregates), init_in_task(init), load_operator(op),
        dtype=pack(pattern, dtypes),
    )  # fmt: skip
    return unpack(merged)


# --- `unique`: the distinct elements of each chunk, combined by value or by neighbours.

_NO_INIT = None, (None,)


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
    kinds = ("first",) * return_index + ("sum",) * return_counts
    graph = Graph("unique", flat_arg.content, consecutive, kinds)
    count = len(flat_arg.arrays)
    dtypes = (*(part.dtype for part in probe[:count]), *(np.dtype(np.int64),) * len(kinds))
    runs = _add_unique_chunks(graph, flat_arg, consecutive, kinds)
    if consecutive:
        combination = None, None, kinds
        outputs = add_run_chunks(graph, runs, flat_arg.pattern, None, _NO_INIT, combination)
    else:
        merging = merge_unique, flat_arg.pattern, kinds
        outputs = add_grouped_chunks(graph, runs, ascending(flat_arg), *merging)
    chunks = ((math.nan,) * outputs,)
    results = result_arrays(graph, flat_arg.first, chunks, dtypes, flat_arg)
    if return_inverse:
        outputs_refs = [TaskRef(graph.key("", j)) for j in range(outputs)]
        add_inverse = _run_numbers if consecutive else _indices
        inverse = add_inverse(graph, x_arg, runs, outputs_refs, results[0])
        results.insert(count + return_index, inverse)
    return packed(form, results)


def _add_unique_chunks(
    graph: Graph, x: Input, consecutive: bool, kinds: tuple[str, ...]
) -> list[TaskRef]:
    """Add the tasks that find each chunk's distinct elements, or its runs."""
    count = x.first.numblocks[0]
    starts = [0] * count
    if "first" in kinds:
        x.require_sizes("indices depend on all sizes")
        starts = [0, *accumulate(x.first.chunks[0])]
    rows = [(x.chunk((i,)), starts[i], kinds, consecutive) for i in range(count)]
    return [graph.add("chunk", (i,), unique_of_chunk, *args) for i, args in enumerate(rows)]


def _indices(graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], keys: Any) -> Any:
    """Return the index of each element among all distinct elements."""
    inv = Graph("unique-inverse", graph.token)
    for index in blocks(x.first):
        inv.add("", index, indices_of_chunk, x.chunk(index), outputs)
    meta = meta_like(x.first, x.first.ndim, np.int64)
    return inv.array("", x.first.chunks, meta, [*x.arrays, keys])


def _run_numbers(
    graph: Graph, x: Input, runs: list[TaskRef], outputs: list[TaskRef], keys: Any
) -> Any:
    """Return the number of the run that each element is in."""
    inv, flat = Graph("unique-inverse", graph.token), x.flat()
    num_before: TaskRef | None = None
    for i, (run, output) in enumerate(zip(runs, outputs, strict=True)):
        inv.add("", (i,), run_numbers_of_chunk, flat.chunk((i,)), run, output, num_before)
        num_before = inv.add("count", (i,), count_runs, output, num_before)
    meta = meta_like(x.first, 1, np.int64)
    run_ids = inv.array("", flat.first.chunks, meta, [*flat.arrays, keys])
    shape = x.first.shape
    if 0 in shape and len(shape) > 1:  # dask's reshape fails
        return reshaped(run_ids, tuple((n,) for n in shape))
    return run_ids if len(shape) == 1 else run_ids.reshape(shape)


def unique_of_chunk(x: ChunkArg, start: int, kinds: tuple[str, ...], consecutive: bool) -> Any:
    """Return a chunk's distinct elements, or the first of each run and its last element.

    With them go indices and counts.
    """
    options: dict[str, Any] = {"return_index": "first" in kinds, "return_counts": "sum" in kinds}
    outputs = ga.unique(element_of(x), consecutive=consecutive, **options)
    keys, *more = outputs if kinds else (outputs,)
    if "first" in kinds:
        more[0] = more[0] + start
    last = (copy_slice(parts_of(x), slice(-1, None)),) * consecutive
    return unpack(keys), tuple(more), *last


def merge_unique(parts: list[Any], pattern: Structure, kinds: tuple[str, ...]) -> Any:
    elements, more = join_slices(parts)
    keys: Any = pack(pattern, elements)
    if not kinds:
        return result(unpack(ga.unique(keys)))
    outputs: list[Any] = []
    if "first" in kinds:
        distinct, positions = ga.unique(keys, return_index=True)
        outputs.append(more[0][positions])
    if "sum" in kinds:
        distinct, counts = ga.reduce_by_key(keys, more[-1])
        outputs.append(counts)
    return (*unpack(distinct), *outputs)


def _keys(output: Any, count: int) -> Parts:
    return output[:count] if isinstance(output, tuple) else (output,)


def indices_of_chunk(x: ChunkArg, outputs: list[Any]) -> Any:
    """Return the index of each element of a chunk among all distinct elements."""
    pattern, num_fields = x[0][2], len(x[0][1])
    distinct = concatenate([_keys(output, num_fields) for output in outputs])
    return ga.searchsorted(pack(pattern, distinct), element_of(x))


def count_runs(output: Any, before: int | None) -> int:
    """Return the number of runs up to the end of a chunk."""
    return (before or 0) + len(_keys(output, 1)[0])


def run_numbers_of_chunk(x: ChunkArg, own: Runs, output: Any, before: int | None) -> Any:
    """Return each element's run number; the chunk's first run may begin in an earlier chunk."""
    _, local = ga.unique(element_of(x), consecutive=True, return_inverse=True)
    continued = len(own[0][0]) - len(_keys(output, 1)[0])
    return local + ((before or 0) - continued)
