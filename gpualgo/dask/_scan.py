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
from gpualgo.dask._operators import Frozen, freeze, load_operator
from gpualgo.dask._reduce import Folding, folded
from gpualgo.dask._starts import Rest, Start, start_of, value_of
from gpualgo.dask._values import Parts, Source, given, joined, library_of, packed, parts_of, result


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
    x_arg = _inputs.taken(x, func_name)
    local_op, frozen = freeze(op, func_name)
    reverse = checks.flag(reverse, "reverse", func_name)
    scan_axis = checks.axis_of(checks.plain_axis(axis, func_name), x_arg.first.ndim, func_name)
    if scan_axis is None:
        x_arg, scan_axis = x_arg.flat(), 0
    other_axes = tuple(a for a in range(x_arg.first.ndim) if a != scan_axis)
    initial = start_of(init, x_arg, other_axes, func_name)
    options = {"axis": scan_axis, "reverse": reverse, "dtype": dtype}
    call = getattr(ga, func_name)
    probe, form = _inputs.told(call, x_arg.small(), initial.small, local_op, **options)
    dtypes = tuple(part.dtype for part in probe)
    if init is None and func_name == "exclusive_scan":  # every chunk must start from it
        initial = start_of(local_op.identity_for(dtypes[0]), x_arg, other_axes, func_name)
    content = x_arg.content, initial.content, frozen[0], scan_axis, reverse, dtypes
    graph = Graph(func_name.replace("_", "-"), *content)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    for row in blocks(x_arg.first, other_axes):
        _add_line(
            graph, x_arg, initial, op_arg, row, reverse, ((scan_axis,), dtypes, x_arg.source[2])
        )
    sources = *x_arg.arrays, *initial.arrays
    arrays = _results.arrays(graph, "", x_arg.first, x_arg.first.chunks, dtypes, sources)
    return _results.built(form, arrays)


def _add_line(
    graph: Graph, x_arg: Input, initial: Start, op: Any, row: Index, reverse: bool, folding: Folding
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
    chunks: list[Any], source: Source, index: Index, op: Frozen, reverse: bool, folding: Folding
) -> Parts:
    """Return a chunk's aggregate along its axis; an empty array if it has no elements there."""
    parts, (axis,) = given(chunks, source, index), folding[0]
    if not parts[0].shape[axis]:
        return tuple(part.astype(dtype) for part, dtype in zip(parts, folding[1], strict=True))
    if reverse:
        backwards = (slice(None),) * axis + (slice(None, None, -1),)
        parts = tuple(part[backwards] for part in parts)
    return folded(parts, load_operator(op), (axis,), None, folding)


def link(
    prefix: Parts | None, own: Parts, starts: list[Any], rest: Rest, row: Index, op: Frozen,
    folding: Folding,
) -> Parts:  # fmt: skip
    """Return the prefix of the next chunk; the first chunk with elements applies init."""
    (axis,) = folding[0]
    if not own[0].shape[axis]:
        return own if prefix is None else prefix
    if prefix is None or not prefix[0].shape[axis]:
        init = value_of(starts, rest, row)
        return own if init is None else folded(own, load_operator(op), (axis,), init, folding)
    return folded(joined([prefix, own], axis), load_operator(op), (axis,), None, folding)


def scan(
    chunks: list[Any], source: Source, index: Index, prefix: Parts | None, starts: list[Any],
    rest: Rest, row: Index, op: Frozen, reverse: bool, folding: Folding,
) -> Any:  # fmt: skip
    """Scan a chunk, starting from its prefix or init."""
    (axis,), dtypes, pattern = folding
    parts = given(chunks, source, index)
    if prefix is None or not prefix[0].shape[axis]:
        init = value_of(starts, rest, row)
    else:
        init = packed(pattern, tuple(_as_init(part, axis) for part in prefix))
    call = getattr(ga, source[0])
    options = {"axis": axis, "reverse": reverse, "dtype": packed(pattern, dtypes)}
    if pattern is None or parts[0].ndim > 1 or library_of(parts[0]) == "numpy":
        return result(parts_of(call(packed(pattern, parts), init, load_operator(op), **options)))
    # A tuple init of GPU arrays has one value per row, so scan one row of a 2-D array.
    x = packed(pattern, tuple(part.reshape(1, -1) for part in parts))
    rows = parts_of(call(x, init, load_operator(op), **{**options, "axis": 1}))
    return result(tuple(part.reshape(-1) for part in rows))


def _as_init(part: Any, axis: int) -> Any:
    """Return a prefix as an initial value: a scalar for one line, else an array over rows."""
    if part.ndim > 1:
        return part.squeeze(axis)
    return part[0] if library_of(part) == "numpy" else part
