"""`reduce`: reduces each chunk, then combines in an ordered tree; `init` is applied once, last."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import FAN_IN, Graph, Index
from gpualgo.dask._inputs import Input
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._values import (
    ChunkSpec,
    Parts,
    Structure,
    checked_chunks,
    concatenate,
    library_of,
    pack,
    pattern_of_value,
    result,
    unpack,
)

# --- `init`: a value that is part of each task, or dask arrays with a value for each row.

InitTaskArgs = tuple[Any, tuple[Any, ...] | None, ChunkSpec | None]
"""Of init: its pattern; its values, or None; the source of its arrays, or None."""


class InitArgument(NamedTuple):
    """The initial value of a reduction or scan."""

    source: Input | None
    rest: InitTaskArgs
    small: Any
    is_one: bool

    @property
    def arrays(self) -> tuple[Any, ...]:
        return () if self.source is None else self.source.arrays

    @property
    def content(self) -> Any:
        """All that results depend on, for the graph's hash."""
        if self.source is not None:
            return self.source.content
        values = self.rest[1]
        assert values is not None
        return self.rest[0], [(type(v).__name__, getattr(v, "dtype", None), v) for v in values]

    def chunk(self, index: Index) -> list[TaskRef]:
        """Return the tasks of the chunks of init for a block of rows."""
        if self.source is None:
            return []
        return self.source.chunk(() if self.is_one else index)


def parse_init(init: Any, x: Input, kept: Sequence[int], where: str) -> InitArgument:
    """Parse init; `kept` are the axes of the result's rows."""
    fields = unpack(init)
    if not any(map(_is_array, fields)):
        pattern = pattern_of_value(init)
        return InitArgument(None, (pattern, fields, None), init, True)
    chunks = tuple(x.first.chunks[axis] for axis in kept)
    shape = tuple(x.first.shape[axis] for axis in kept)
    source = _inputs.parse_argument(init, where, "init")
    is_one = source.first.ndim == 0
    if not is_one and (source.is_known and x.is_known) and source.first.shape != shape:
        raise ValueError(
            f"{where}: init has shape {source.first.shape}, but rows have shape {shape}; pass one "
            "value, or an array with one for each row"
        )
    if not is_one and x.is_known and source.first.chunks != chunks:
        source = source.rechunked(chunks)
    small = source.small()
    if is_one:
        small = small[()] if library_of(source.first._meta) == "numpy" else small
    return InitArgument(source, (None, None, source.source), small, is_one)


def _is_array(x: Any) -> bool:
    """Return whether init is a dask array or an array of several values."""
    if _inputs.is_dask(x):
        return True
    if isinstance(x, np.ndarray):
        return x.size != 1
    return hasattr(x, "__cuda_array_interface__")


def init_in_task(chunks: Sequence[Any], rest: InitTaskArgs, index: Index) -> Any:
    """Return init within a task."""
    pattern, values, source = rest
    if source is None:
        assert values is not None
        return pack(pattern, values)
    parts = checked_chunks(chunks, source, index)
    if parts[0].ndim == 0 and isinstance(parts[0], np.ndarray):
        parts = tuple(part[()] for part in parts)
    return pack(source[2], parts)


_NAME = "reduce"


def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of a dask array combined: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters and result are those of `gpualgo.reduce`, with dask arrays for arrays; `init` may be
    a NumPy or dask array with the shape of the result. Chunks of unknown size are accepted.

    Notes
    -----
    x is read once, by a task for each chunk; 1/15 as many tasks combine the results, 16 at a time,
    in order. A worker holds the chunks that it works on, and one number for each other chunk; one
    row of each if `op` does not commute and several chunked axes are reduced. Equal chunks give
    equal bits, other chunks may round differently.
    """
    x_arg = _inputs.parse_argument(x, _NAME)
    local_op, frozen = pickle_operator(op, _NAME)
    keepdims = checks.flag_argument(keepdims, "keepdims", _NAME)
    axes = checks.axes_of(checks.plain_axes(axis, _NAME), x_arg.first.ndim, _NAME)
    other_axes = tuple(a for a in range(x_arg.first.ndim) if a not in axes)
    initial = parse_init(init, x_arg, other_axes, _NAME)
    probe, form = _inputs.probe_call(
        ga.reduce, x_arg.small(), initial.small, local_op, axis=axes, keepdims=keepdims, dtype=dtype
    )
    dtypes = tuple(part.dtype for part in probe)
    graph = Graph(_NAME, x_arg.content, initial.content, frozen[0], axes, keepdims, dtypes)
    op_arg = graph.shared("op", frozen, len(frozen[1]))
    folding = axes, dtypes, x_arg.source[2]
    aggregates = combined(graph, x_arg, op_arg, folding, local_op.commutative)
    for index, ref in aggregates.items():
        out = tuple(k for a, k in enumerate(index) if keepdims or a in other_axes)
        row = tuple(index[a] for a in other_axes)
        graph.add(
            "", out, finish, ref, initial.chunk(row), initial.rest, row, op_arg, folding, keepdims
        )
    chunks = tuple(
        (1,) if a in axes else sizes
        for a, sizes in enumerate(x_arg.first.chunks)
        if keepdims or a in other_axes
    )
    sources = *x_arg.arrays, *initial.arrays
    return _results.pack_results(
        form, _results.arrays(graph, "", x_arg.first, chunks, dtypes, sources)
    )


ReduceArgs = tuple[tuple[int, ...], tuple[Any, ...], Structure]
"""The reduced axes, the dtypes of the accumulators, and the pattern of elements."""


def combined(
    graph: Graph, source: Input, op: Any, folding: ReduceArgs, commutes: bool
) -> dict[Index, TaskRef]:
    """Add the tasks that reduce along some axes, without init; return a task for each result.

    Several chunked axes are combined block by block if op commutes. That is not C order, so other
    operators are applied axis by axis, the last first.
    """
    axes, dtypes, pattern = folding
    count = list(source.first.numblocks)
    is_blockwise = commutes or all(count[axis] == 1 for axis in axes[1:])
    current: dict[Index, TaskRef] = {}
    for index in product(*map(range, count)):
        first_axes = axes if is_blockwise else axes[-1:]
        args = source.chunk(index), source.source, index, op, (first_axes, dtypes, pattern)
        current[index] = graph.add("chunk", index, chunk, *args)
    for step, axis in enumerate(reversed(axes)):
        if step and not is_blockwise:
            for index, ref in current.items():
                fold_args = [ref], op, axis, folding
                current[index] = graph.add("fold", (step, *index), combine, *fold_args)
        current = _tree(graph, current, count, op, axis, folding)
    return current


def _tree(
    graph: Graph, current: dict[Index, TaskRef], count: list[int], op: Any, axis: int,
    folding: ReduceArgs,
) -> dict[Index, TaskRef]:  # fmt: skip
    """Combine results along an axis, FAN_IN at a time; `count` is updated."""
    level = 0
    while count[axis] > 1:
        groups: dict[Index, list[TaskRef]] = {}
        for index, ref in current.items():  # in order
            target = (*index[:axis], index[axis] // FAN_IN, *index[axis + 1 :])
            groups.setdefault(target, []).append(ref)
        current = {
            target: graph.add("tree", (axis, level, *target), combine, refs, op, axis, folding)
            for target, refs in groups.items()
        }
        count[axis] = -(-count[axis] // FAN_IN)
        level += 1
    return current


# --- within tasks -------------------------------------------------------------------------------


def reduce_parts(
    parts: Parts, op: Any, axes: tuple[int, ...], init: Any, folding: ReduceArgs
) -> Parts:
    """Reduce parts along axes, keeping these."""
    _, dtypes, pattern = folding
    x, dtype = pack(pattern, parts), pack(pattern, dtypes)
    results = unpack(ga.reduce(x, init, op, axis=axes, keepdims=True, dtype=dtype))
    # NumPy returns scalars for 0-d results; a later call needs arrays.
    return tuple(np.asarray(part) if isinstance(part, np.generic) else part for part in results)


def chunk(
    chunks: list[Any], source: ChunkSpec, index: Index, op: PickledOperator, folding: ReduceArgs
) -> Parts:
    """Return the aggregate of a chunk; without elements along the axes, an empty array."""
    parts, axes = checked_chunks(chunks, source, index), folding[0]
    if all(parts[0].shape[axis] for axis in axes):
        return reduce_parts(parts, load_operator(op), axes, None, folding)
    slices = tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(parts[0].ndim))
    return tuple(part[slices].astype(dtype) for part, dtype in zip(parts, folding[1], strict=True))


def combine(several: list[Parts], op: PickledOperator, axis: int, folding: ReduceArgs) -> Parts:
    """Combine results of chunks that follow each other along an axis."""
    parts = concatenate(several, axis)
    if parts[0].shape[axis] <= 1 or parts[0].size == 0:
        slices = (slice(None),) * axis + (slice(0, 1),)
        return tuple(part[slices] for part in parts)
    return reduce_parts(parts, load_operator(op), (axis,), None, folding)


def finish(
    parts: Parts,
    starts: list[Any],
    rest: Any,
    row: Index,
    op: PickledOperator,
    folding: ReduceArgs,
    keepdims: bool,
) -> Any:
    """Combine init with a result."""
    axes, dtypes, pattern = folding
    init = init_in_task(starts, rest, row)
    x, dtype = pack(pattern, parts), pack(pattern, dtypes)
    reduced = ga.reduce(x, init, load_operator(op), axis=axes, keepdims=keepdims, dtype=dtype)
    return result(unpack(reduced))
