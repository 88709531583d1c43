"""Scans: each chunk's aggregate, a chain of prefixes in order, and each chunk from its prefix."""

from __future__ import annotations

import operator
from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._operators import Frozen, freeze, thaw
from gpualgo.dask._reduce import Folding, folded
from gpualgo.dask._starts import Rest, Start, start_of, value_of
from gpualgo.dask._values import Parts, Source, given, joined, library_of, packed, parts_of, result


def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine each element with all before it: ``y[i] = init op x[0] op x[1] op … op x[i]``.

    Parameters and result are those of `gpualgo.inclusive_scan`, with dask arrays for arrays; the
    result has the chunks of x. Where `axis` is None and there are several axes, x is flattened, and
    the chunks are those that dask cuts then. Chunks of unknown size are taken.

    Notes
    -----
    Reads each chunk but the last along the axis twice and writes it once, by three tasks. A worker
    holds the chunks that it works on and their results: prefixes go from chunk to chunk in a chain,
    so that the first results are there while the last chunks are still read. Equal chunks give
    equal bits, others may round otherwise.
    """
    return _scan("inclusive_scan", x, init, op, axis, reverse, dtype)


def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine all elements before each: ``y[0] = init``, ``y[i] = init op x[0] op … op x[i-1]``.

    As `inclusive_scan`; without `init` it starts from op's identity, as `gpualgo.exclusive_scan`
    does.
    """
    return _scan("exclusive_scan", x, init, op, axis, reverse, dtype)


def _scan(where: str, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any) -> Any:
    source = _inputs.taken(x, where)
    settled, frozen = freeze(op, where)
    reverse = checks.flag(reverse, "reverse", where)
    line = checks.axis_of(checks.plain_axis(axis, where), source.first.ndim, where)
    if line is None:
        source, line = source.flat(), 0
    kept = tuple(a for a in range(source.first.ndim) if a != line)
    start = start_of(init, source, kept, where)
    options = {"axis": line, "reverse": reverse, "dtype": dtype}
    call = getattr(ga, where)
    found, form = _inputs.told(call, source.small(), start.small, settled, **options)
    dtypes = tuple(part.dtype for part in found)
    if init is None and where == "exclusive_scan":  # else a later chunk would not begin with it
        start = start_of(settled.identity_for(dtypes[0]), source, kept, where)
    content = source.content, start.content, frozen[0], line, reverse, dtypes
    graph = Graph(where.replace("_", "-"), *content)
    held = graph.shared("op", frozen, len(frozen[1]))
    for row in blocks(source.first, kept):
        _line(graph, source, start, held, row, reverse, ((line,), dtypes, source.source[2]))
    sources = *source.arrays, *start.arrays
    arrays = _results.arrays(graph, "", source.first, source.first.chunks, dtypes, sources)
    return _results.built(form, arrays)


def _line(
    graph: Graph, source: Input, start: Start, op: Any, row: Index, reverse: bool, folding: Folding
) -> None:
    """Add the tasks of the chunks along one line, the first of which has the index `row`."""
    (axis,), _, _ = folding
    count = source.first.numblocks[axis]
    place = (*row[:axis], *row[axis + 1 :])
    begin = start.chunk(place), start.rest, place
    prefix: TaskRef | None = None
    for step in range(count):
        number = count - 1 - step if reverse else step
        index = (*row[:axis], number, *row[axis + 1 :])
        read = source.chunk(index), source.source, index
        graph.add("", index, scan, *read, prefix, *begin, op, reverse, folding)
        if step < count - 1:
            own = graph.add("aggregate", index, aggregate, *read, op, reverse, folding)
            prefix = graph.add("prefix", index, link, prefix, own, *begin, op, folding)


# --- within tasks -------------------------------------------------------------------------------


def aggregate(
    chunks: list[Any], source: Source, index: Index, op: Frozen, reverse: bool, folding: Folding
) -> Parts:
    """Return what a chunk comes to along its axis: nothing, if it has no element there."""
    parts, (axis,) = given(chunks, source, index), folding[0]
    if not parts[0].shape[axis]:
        return tuple(part.astype(dtype) for part, dtype in zip(parts, folding[1], strict=True))
    if reverse:
        back = (slice(None),) * axis + (slice(None, None, -1),)
        parts = tuple(part[back] for part in parts)
    return folded(parts, thaw(op), (axis,), None, folding)


def link(
    prefix: Parts | None, own: Parts, starts: list[Any], rest: Rest, row: Index, op: Frozen,
    folding: Folding,
) -> Parts:  # fmt: skip
    """Return the prefix of the next chunk, which begins with init once there is an element."""
    (axis,) = folding[0]
    if not own[0].shape[axis]:
        return own if prefix is None else prefix
    if prefix is None or not prefix[0].shape[axis]:
        init = value_of(starts, rest, row)
        return own if init is None else folded(own, thaw(op), (axis,), init, folding)
    return folded(joined([prefix, own], axis), thaw(op), (axis,), None, folding)


def scan(
    chunks: list[Any], source: Source, index: Index, prefix: Parts | None, starts: list[Any],
    rest: Rest, row: Index, op: Frozen, reverse: bool, folding: Folding,
) -> Any:  # fmt: skip
    """Return the results of a chunk."""
    (axis,), dtypes, pattern = folding
    parts = given(chunks, source, index)
    if prefix is None or not prefix[0].shape[axis]:
        init = value_of(starts, rest, row)
    else:
        init = packed(pattern, tuple(_first(part, axis) for part in prefix))
    call = getattr(ga, source[0])
    options = {"axis": axis, "reverse": reverse, "dtype": packed(pattern, dtypes)}
    if pattern is None or parts[0].ndim > 1 or library_of(parts[0]) == "numpy":
        return result(parts_of(call(packed(pattern, parts), init, thaw(op), **options)))
    # Numbers of a tuple that lie on a GPU stand for a row each: so here for one row.
    x = packed(pattern, tuple(part.reshape(1, -1) for part in parts))
    rows = parts_of(call(x, init, thaw(op), **{**options, "axis": 1}))
    return result(tuple(part.reshape(-1) for part in rows))


def _first(part: Any, axis: int) -> Any:
    """Return the start that a prefix is: of a line alone a value, else one for each row."""
    if part.ndim > 1:
        return part.squeeze(axis)
    return part[0] if library_of(part) == "numpy" else part
