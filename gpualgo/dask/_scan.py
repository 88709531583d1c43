"""Scans: an aggregate of each chunk, a chain of prefixes in order, a scan of each chunk."""

from __future__ import annotations

import operator
from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._reduce import (
    InitArgument,
    InitTaskArgs,
    ReduceArgs,
    init_in_task,
    parse_init,
    reduce_parts,
)
from gpualgo.dask._values import (
    ChunkSpec,
    Parts,
    Structure,
    checked_chunks,
    concatenate,
    index_parts,
    library_of,
    namespace_of,
    pack,
    result,
    unpack,
)


def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return each element combined with all before it: ``y[i] = init op x[0] op … op x[i]``.

    Parameters and result are those of `gpualgo.inclusive_scan`, with dask arrays for arrays; the
    result has the chunks of x. If `axis` is None and x has several axes, x is flattened, and dask
    chooses the chunks. Chunks of unknown size are accepted.

    Notes
    -----
    Three tasks for each chunk read it twice (the last chunk along the axis once) and write the
    result once. A worker holds the chunks that it works on and their results. Prefixes are passed
    from chunk to chunk, so the first results are ready while the last chunks are being read. Equal
    chunks give equal bits, other chunks may round differently.
    """
    return _scan("inclusive_scan", x, init, op, axis, reverse, dtype)


def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return all before each element, combined: ``y[0] = init``, ``y[i] = init op … op x[i-1]``.

    As `inclusive_scan`; the default of `init` is the operator's identity, as for
    `gpualgo.exclusive_scan`.
    """
    return _scan("exclusive_scan", x, init, op, axis, reverse, dtype)


def _scan(func_name: str, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any) -> Any:
    x_arg = _inputs.parse_argument(x, func_name)
    local_op, frozen = pickle_operator(op, func_name)
    reverse = checks.flag_argument(reverse, "reverse", func_name)
    scan_axis = checks.axis_of(checks.plain_axis(axis, func_name), x_arg.first.ndim, func_name)
    if scan_axis is None:
        x_arg, scan_axis = x_arg.flat(), 0
    other_axes = tuple(a for a in range(x_arg.first.ndim) if a != scan_axis)
    initial = parse_init(init, x_arg, other_axes, func_name)
    options = {"axis": scan_axis, "reverse": reverse, "dtype": dtype}
    call = getattr(ga, func_name)
    probe, form = _inputs.probe_call(call, x_arg.small(), initial.small, local_op, **options)
    dtypes = tuple(part.dtype for part in probe)
    if init is None and func_name == "exclusive_scan":  # every chunk must start from it
        initial = parse_init(local_op.identity_for(dtypes[0]), x_arg, other_axes, func_name)
    content = x_arg.content, initial.content, frozen[0], scan_axis, reverse, dtypes
    graph = Graph(func_name.replace("_", "-"), *content)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    for row in blocks(x_arg.first, other_axes):
        _add_line(
            graph, x_arg, initial, op_arg, row, reverse, ((scan_axis,), dtypes, x_arg.source[2])
        )
    sources = *x_arg.arrays, *initial.arrays
    arrays = _results.arrays(graph, "", x_arg.first, x_arg.first.chunks, dtypes, sources)
    return _results.pack_results(form, arrays)


def _add_line(
    graph: Graph,
    x_arg: Input,
    initial: InitArgument,
    op: Any,
    row: Index,
    reverse: bool,
    folding: ReduceArgs,
) -> None:
    """Add the tasks of the chunks along one line, which starts at chunk `row`."""
    (axis,), _, _ = folding
    count = x_arg.first.numblocks[axis]
    line = (*row[:axis], *row[axis + 1 :])
    init_args = initial.chunk(line), initial.rest, line
    prefix: TaskRef | None = None
    for step in range(count):
        chunk_number = count - 1 - step if reverse else step
        index = (*row[:axis], chunk_number, *row[axis + 1 :])
        chunk_args = x_arg.chunk(index), x_arg.source, index
        graph.add("", index, scan, *chunk_args, prefix, *init_args, op, reverse, folding)
        if step < count - 1:
            total = graph.add("aggregate", index, aggregate, *chunk_args, op, reverse, folding)
            prefix = graph.add("prefix", index, link, prefix, total, *init_args, op, folding)


# --- within tasks -------------------------------------------------------------------------------


def aggregate(
    chunks: list[Any],
    source: ChunkSpec,
    index: Index,
    op: PickledOperator,
    reverse: bool,
    folding: ReduceArgs,
) -> Parts:
    """Return a chunk's aggregate along its axis; an empty array if it has no elements there."""
    parts, (axis,) = checked_chunks(chunks, source, index), folding[0]
    if not parts[0].shape[axis]:
        return tuple(part.astype(dtype) for part, dtype in zip(parts, folding[1], strict=True))
    if reverse:
        backwards = (slice(None),) * axis + (slice(None, None, -1),)
        parts = tuple(part[backwards] for part in parts)
    return reduce_parts(parts, load_operator(op), (axis,), None, folding)


def link(
    prefix: Parts | None,
    own: Parts,
    starts: list[Any],
    rest: InitTaskArgs,
    row: Index,
    op: PickledOperator,
    folding: ReduceArgs,
) -> Parts:
    """Return the prefix of the next chunk; the first chunk with elements applies init."""
    (axis,) = folding[0]
    if not own[0].shape[axis]:
        return own if prefix is None else prefix
    if prefix is None or not prefix[0].shape[axis]:
        init = init_in_task(starts, rest, row)
        return own if init is None else reduce_parts(own, load_operator(op), (axis,), init, folding)
    return reduce_parts(concatenate([prefix, own], axis), load_operator(op), (axis,), None, folding)


def scan(
    chunks: list[Any], source: ChunkSpec, index: Index, prefix: Parts | None, starts: list[Any],
    rest: InitTaskArgs, row: Index, op: PickledOperator, reverse: bool, folding: ReduceArgs,
) -> Any:  # fmt: skip
    """Scan a chunk, starting from its prefix or init."""
    (axis,), dtypes, pattern = folding
    parts = checked_chunks(chunks, source, index)
    if prefix is None or not prefix[0].shape[axis]:
        init = init_in_task(starts, rest, row)
    else:
        init = pack(pattern, tuple(_as_init(part, axis) for part in prefix))
    call = getattr(ga, source[0])
    options = {"axis": axis, "reverse": reverse, "dtype": pack(pattern, dtypes)}
    if pattern is None or parts[0].ndim > 1 or library_of(parts[0]) == "numpy":
        return result(unpack(call(pack(pattern, parts), init, load_operator(op), **options)))
    # A tuple init of GPU arrays has one value per row, so scan one row of a 2-D array.
    x = pack(pattern, tuple(part.reshape(1, -1) for part in parts))
    rows = unpack(call(x, init, load_operator(op), **{**options, "axis": 1}))
    return result(tuple(part.reshape(-1) for part in rows))


def _as_init(part: Any, axis: int) -> Any:
    """Return a prefix as an initial value: a scalar for one line, else an array over rows."""
    if part.ndim > 1:
        return part.squeeze(axis)
    return part[0] if library_of(part) == "numpy" else part


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
    graph: Graph,
    runs: list[TaskRef],
    keys: Structure,
    eq: PickledOperator | None,
    rest: InitTaskArgs,
    how: Any,
) -> None:
    """Add the result chunks: the runs that begin in each chunk, with their continuations."""
    before: list[TaskRef | None] = [None]
    for i, run in enumerate(runs[:-1]):
        before.append(graph.add("last", (i,), last, before[-1], run))
    behind: TaskRef | None = None
    for i, run in reversed(list(enumerate(runs))):
        args = behind, before[i], keys, eq, *how
        graph.add("", (i,), own_runs, run, *args, rest)
        if i:
            behind = graph.add("first", (i,), first, run, behind, keys, eq, *how)


# --- within tasks -------------------------------------------------------------------------------


def last(before: Parts | None, own: Runs) -> Parts | None:
    """Return the last key of a chunk; if it is empty, of the chunks before it."""
    return own[2] if len(own[2][0]) else before


def first(
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
    own: Runs,
    behind: tuple[Parts, Parts] | None,
    before: Parts | None,
    keys: Structure,
    eq: PickledOperator | None,
    pattern: Structure,
    op: PickledOperator | None,
    kinds: tuple[Any, ...],
    rest: InitTaskArgs,
) -> Any:
    """Return the runs that begin in a chunk; the last includes its continuation."""
    heads, aggregates, last_key = own
    count = len(heads[0])
    start = int(
        count > 0 and before is not None
        and _is_same_run(before, index_parts(heads, slice(0, 1)), keys, eq)
    )  # fmt: skip
    combine = pattern, op, kinds
    if start < count and behind is not None and _is_same_run(last_key, behind[0], keys, eq):
        total = _combined(index_parts(aggregates, slice(count - 1, None)), behind[1], combine)
        aggregates = concatenate([index_parts(aggregates, slice(0, count - 1)), total])
    heads, aggregates = (
        index_parts(heads, slice(start, None)),
        index_parts(aggregates, slice(start, None)),
    )
    return result((*heads, *_apply_init(aggregates, rest, combine)))


def _apply_init(aggregates: Parts, rest: InitTaskArgs, combine: Combination) -> Parts:
    """Combine init with each aggregate."""
    init, (pattern, op, dtypes) = init_in_task([], rest, ()), combine
    if init is None:
        return aggregates
    distinct_keys = namespace_of(aggregates[0]).arange(len(aggregates[0]))
    _, results = ga.reduce_by_key(
        distinct_keys, pack(pattern, aggregates), init, load_operator(op), consecutive=True,
        dtype=pack(pattern, dtypes),
    )  # fmt: skip
    return unpack(results)


def _is_same_run(a: Parts, b: Parts, keys: Structure, eq: PickledOperator | None) -> bool:
    """Return whether key b continues the run of key a."""
    values, _ = ga.run_length_encode(pack(keys, concatenate([a, b])), eq=load_operator(eq))
    return len(unpack(values)[0]) == 1


def _combined(a: Parts, b: Parts, combine: Combination) -> Parts:
    """Combine two aggregates of one run."""
    pattern, op, kinds = combine
    if op is None:
        return tuple(
            p if kind == "first" else p + q for p, q, kind in zip(a, b, kinds, strict=True)
        )
    x, dtype = pack(pattern, concatenate([a, b])), pack(pattern, kinds)
    return unpack(ga.reduce(x, None, load_operator(op), axis=(0,), keepdims=True, dtype=dtype))
