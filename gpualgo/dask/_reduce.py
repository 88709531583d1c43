"""`reduce`: each chunk, then a tree in order; `init` comes in once, at the end."""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import FAN_IN, Graph, Index
from gpualgo.dask._inputs import Input
from gpualgo.dask._operators import Frozen, freeze, thaw
from gpualgo.dask._starts import start_of, value_of
from gpualgo.dask._values import Parts, Pattern, Source, given, joined, packed, parts_of, result

_WHERE = "reduce"


def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine the elements of a dask array: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters and result are those of `gpualgo.reduce`, with dask arrays for arrays; `init` may be
    a NumPy or dask array of the result's shape. Chunks of unknown size are taken.

    Notes
    -----
    Reads x once; a task for each chunk, and a fifteenth more. A worker holds the chunks that it
    works on, and one number for each other; where op does not commute and several axes that are cut
    are reduced, a row of a chunk for each. Grouped by chunk, then by sixteen results in order:
    equal chunks give equal bits, others may round otherwise.
    """
    source = _inputs.taken(x, _WHERE)
    settled, frozen = freeze(op, _WHERE)
    keepdims = checks.flag(keepdims, "keepdims", _WHERE)
    axes = checks.axes_of(checks.plain_axes(axis, _WHERE), source.first.ndim, _WHERE)
    kept = tuple(a for a in range(source.first.ndim) if a not in axes)
    start = start_of(init, source, kept, _WHERE)
    found, form = _inputs.told(
        ga.reduce, source.small(), start.small, settled, axis=axes, keepdims=keepdims, dtype=dtype
    )
    dtypes = tuple(part.dtype for part in found)
    graph = Graph(_WHERE, source.content, start.content, frozen[0], axes, keepdims, dtypes)
    held = graph.shared("op", frozen, len(frozen[1]))
    folding = axes, dtypes, source.source[2]
    last = combined(graph, source, held, folding, settled.commutative)
    for index, ref in last.items():
        place = tuple(k for a, k in enumerate(index) if keepdims or a in kept)
        row = tuple(index[a] for a in kept)
        graph.add(
            "", place, finish, ref, start.chunk(row), start.rest, row, held, folding, keepdims
        )
    chunks = tuple(
        (1,) if a in axes else sizes
        for a, sizes in enumerate(source.first.chunks)
        if keepdims or a in kept
    )
    sources = *source.arrays, *start.arrays
    return _results.built(form, _results.arrays(graph, "", source.first, chunks, dtypes, sources))


Folding = tuple[tuple[int, ...], tuple[Any, ...], Pattern]
"""Of a reduction: its axes, the dtypes of its accumulators, how elements are built."""


def combined(
    graph: Graph, source: Input, op: Any, folding: Folding, commutes: bool
) -> dict[Index, TaskRef]:
    """Add the tasks that leave one result for each place of the other axes, without init.

    Over several axes that are cut elements are combined block by block if op commutes. That is not
    C order: without, they are axis by axis, the last first.
    """
    axes, dtypes, pattern = folding
    count = list(source.first.numblocks)
    at_once = commutes or all(count[axis] == 1 for axis in axes[1:])
    current: dict[Index, TaskRef] = {}
    for index in product(*map(range, count)):
        first = axes if at_once else axes[-1:]
        args = source.chunk(index), source.source, index, op, (first, dtypes, pattern)
        current[index] = graph.add("chunk", index, chunk, *args)
    for step, axis in enumerate(reversed(axes)):
        if step and not at_once:
            for index, ref in current.items():
                again = [ref], op, axis, folding
                current[index] = graph.add("fold", (step, *index), combine, *again)
        current = _tree(graph, current, count, op, axis, folding)
    return current


def _tree(
    graph: Graph, current: dict[Index, TaskRef], count: list[int], op: Any, axis: int,
    folding: Folding,
) -> dict[Index, TaskRef]:  # fmt: skip
    """Combine what lies along an axis, sixteen at a time; `count` tells how many there are."""
    level = 0
    while count[axis] > 1:
        groups: dict[Index, list[TaskRef]] = {}
        for index, ref in current.items():  # in order
            place = (*index[:axis], index[axis] // FAN_IN, *index[axis + 1 :])
            groups.setdefault(place, []).append(ref)
        current = {
            place: graph.add("tree", (axis, level, *place), combine, refs, op, axis, folding)
            for place, refs in groups.items()
        }
        count[axis] = -(-count[axis] // FAN_IN)
        level += 1
    return current


# --- within tasks -------------------------------------------------------------------------------


def folded(parts: Parts, op: Any, axes: tuple[int, ...], init: Any, folding: Folding) -> Parts:
    """Return what parts come to along axes that they keep."""
    _, dtypes, pattern = folding
    x, dtype = packed(pattern, parts), packed(pattern, dtypes)
    found = parts_of(ga.reduce(x, init, op, axis=axes, keepdims=True, dtype=dtype))
    # Of no dimension NumPy's are numbers, and this may be folded once more.
    return tuple(np.asarray(part) if isinstance(part, np.generic) else part for part in found)


def chunk(chunks: list[Any], source: Source, index: Index, op: Frozen, folding: Folding) -> Parts:
    """Return what a chunk comes to; of one without elements to combine nothing, and no identity."""
    parts, axes = given(chunks, source, index), folding[0]
    if all(parts[0].shape[axis] for axis in axes):
        return folded(parts, thaw(op), axes, None, folding)
    few = tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(parts[0].ndim))
    return tuple(part[few].astype(dtype) for part, dtype in zip(parts, folding[1], strict=True))


def combine(several: list[Parts], op: Frozen, axis: int, folding: Folding) -> Parts:
    """Return what results of chunks, one after another along an axis, come to."""
    parts = joined(several, axis)
    if parts[0].shape[axis] <= 1 or parts[0].size == 0:
        few = (slice(None),) * axis + (slice(0, 1),)
        return tuple(part[few] for part in parts)
    return folded(parts, thaw(op), (axis,), None, folding)


def finish(
    parts: Parts, starts: list[Any], rest: Any, row: Index, op: Frozen, folding: Folding,
    keepdims: bool,
) -> Any:  # fmt: skip
    """Return a result, which begins with init."""
    axes, dtypes, pattern = folding
    init = value_of(starts, rest, row)
    x, dtype = packed(pattern, parts), packed(pattern, dtypes)
    found = ga.reduce(x, init, thaw(op), axis=axes, keepdims=keepdims, dtype=dtype)
    return result(parts_of(found))
