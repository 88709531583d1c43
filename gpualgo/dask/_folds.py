"""Calls on each chunk alone, or whose results are combined in a tree or in a chain of prefixes.

A reduction applies `init` once, last; a scan applies it to the first chunk with elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, product
from typing import Any, NamedTuple

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo import _distributed
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._arrays.forms import Form
from gpualgo._distributed import Parts, concatenate, packed
from gpualgo._operators.operator import MAX_ARITY, is_function
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _tasks
from gpualgo.dask._inputs import Input, blocks, is_dask
from gpualgo.dask._tasks import Graph, Index, call_on, pickle_operator, unpack

# --- Functions of chunks alone; `searchsorted` and `top_k` with a tree.


def transform(op: Any, *arguments: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`, with dask arrays for arrays; arguments
    may also be numbers and NumPy or CuPy arrays. Along each axis the result has the chunks of the
    first array that is not broadcast there. Chunks of unknown size are accepted.

    Notes
    -----
    A task for each chunk. A worker holds the chunks that it works on and their results.
    """
    count = len(arguments)
    if not 0 < count <= MAX_ARITY:
        raise TypeError(f"transform: pass 1 to {MAX_ARITY} arguments after op, got {count}")
    local_op, frozen = pickle_operator(op, "transform", count)
    inputs = [
        x if is_scalar(x) else _inputs.parse_argument(x, "transform", f"argument {i}")
        for i, x in enumerate(arguments, 1)
    ]
    small = [x.small(0) if isinstance(x, Input) else x for x in inputs]
    dtypes, form = _inputs.probe_dtypes(ga.transform, local_op, *small, dtype=dtype)
    graph = Graph("transform", *inputs, frozen, dtypes)
    op_arg = graph.shared("op", frozen)
    arrays = [part for x in inputs if isinstance(x, Input) for part in x.arrays]
    axes = _inputs.common_axes(arrays)
    chunks = tuple(like.chunks[axis] for like, axis in axes)
    aligned = iter([_inputs.fitted(part, axes, "transform", is_full=False) for part in arrays])
    inputs = [x.of(islice(aligned, len(x.arrays))) if isinstance(x, Input) else x for x in inputs]
    acc_dtype = packed(form, dtypes)
    for index in product(*map(range, map(len, chunks))):
        args = [x.broadcast_chunk(index) if isinstance(x, Input) else x for x in inputs]
        graph.add("", index, call_on, ga.transform, op_arg, *args, dtype=acc_dtype)
    return packed(form, graph.results(chunks, dtypes, *inputs))


def select(x: Any, predicate: Any) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters and result are those of `gpualgo.select`, with dask arrays for arrays. The result has
    a chunk for each of x, of unknown size; ``compute_chunk_sizes()`` computes the sizes.

    Notes
    -----
    A task for each chunk reads it once. A worker holds the chunks that it works on and their
    selected elements.
    """
    small: Any
    kept: Any
    if not is_dask(predicate) and is_function(predicate, "select"):
        x_arg = _inputs.parse_argument(x, "select").flat()
        small, kept = pickle_operator(predicate, "select", 1)
    else:
        x_arg, kept = _masked(x, predicate)
        small = kept.small()
    dtypes, form = _inputs.probe_dtypes(ga.select, x_arg.small(), small)
    graph = Graph("select", x_arg, kept)
    mask = kept if isinstance(kept, Input) else graph.shared("op", kept)
    x_arg.each(graph, "", call_on, ga.select, x_arg, mask)
    chunks = ((math.nan,) * x_arg.first.numblocks[0],)
    return packed(form, graph.results(chunks, dtypes, x_arg, mask))


def _masked(x: Any, predicate: Any) -> tuple[Input, Input]:
    """Return elements and the bool array, flattened and with the same chunks."""
    like = predicate if is_dask(predicate) else None
    x_arg = _inputs.parse_argument(x, "select", like=like)
    mask = _inputs.parse_argument(predicate, "select", "predicate", like=x_arg.first)
    told, advice = "select: predicate has shape {} and x {}", "pass a bool for each element"
    _inputs.check_shapes(told, mask.first.shape, x_arg.first.shape, advice)
    return x_arg.flat(), mask.broadcast(x_arg.first).flat()


def searchsorted(
    a: Any, v: Any, *, side: str = "left", less: Any = None, descending: Any = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the indices r at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Parameters and result are those of `gpualgo.searchsorted`; a or v, or both, are dask arrays, and
    the result has the chunks of v. Chunks of unknown size are accepted.

    Notes
    -----
    There is a task for each pair of a chunk of a and a chunk of v; further tasks add their results.
    If a fits in memory, make it one chunk or a NumPy array. A worker holds a chunk of each, and 16
    results.
    """
    a_arg = _inputs.parse_argument(a, "searchsorted", "a")
    v_arg = None if is_scalar(v) else _inputs.parse_argument(v, "searchsorted", "v")
    local_less, frozen = (None, None) if less is None else pickle_operator(less, "searchsorted")
    small = v if v_arg is None else v_arg.small()
    options = {"side": side, "less": local_less, "descending": descending, "dtype": dtype}
    (index_dtype,), _ = _inputs.probe_dtypes(ga.searchsorted, a_arg.small(), small, **options)
    length = a_arg.first.shape[0]
    if length > np.iinfo(index_dtype).max:
        told = f"searchsorted: dtype {index_dtype} cannot hold indices up to {length}"
        raise ValueError(f"{told}; pass a wider dtype=")
    content = v if v_arg is None else v_arg
    graph = Graph("searchsorted", a_arg, content, side, frozen, descending, index_dtype)
    less_arg = graph.shared("less", frozen)
    options["less"], options["dtype"], refs = less_arg, index_dtype, {}
    for (i,), index in product(blocks(a_arg.first), [()] if v_arg is None else blocks(v_arg.first)):
        args = a_arg.chunk((i,)), v if v_arg is None else v_arg.chunk(index)
        task = call_on, ga.searchsorted, *args
        refs[i, *index] = graph.add("chunk", (i, *index), *task, **options)
    for row, ref in graph.trees("tree", refs, (0,), _tasks.sum_arrays).items():
        graph.alias("", row[1:], ref)
    chunks = () if v_arg is None else v_arg.first.chunks
    return graph.results(chunks, (index_dtype,), a_arg, v_arg)[0]


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`, with dask arrays for arrays. The result has
    the same bits, and one chunk along the axis, where chunk sizes must be known.

    Notes
    -----
    x is read once, by a task for each chunk; 1/15 as many tasks combine the results. A worker holds
    the chunks that it works on, and k elements and indices of each of 16 others.
    """
    x_arg = _inputs.parse_argument(x, "top_k")
    k = checks.integer(k, "k", "top_k")
    x_arg, k_axis = x_arg.line(axis)
    x_arg.require_sizes("indices depend on all sizes")
    extent = x_arg.first.shape[k_axis]
    if not 0 <= k <= extent:  # the call raises the error
        whole = np.broadcast_to(x_arg.small(), x_arg.first.shape)
        _inputs.probe_call(ga.top_k, whole, k, axis=k_axis)
    options = {"axis": k_axis, "mode": mode}
    dtypes, form = _inputs.probe_dtypes(ga.top_k, x_arg.small(), min(k, 1), **options)
    graph = Graph("top-k", x_arg, k, k_axis, mode)
    starts, refs = [0, *accumulate(x_arg.first.chunks[k_axis])], {}
    for index in blocks(x_arg.first):
        args = x_arg.chunk(index), starts[index[k_axis]], k, k_axis, mode
        refs[index] = graph.add("chunk", index, top_of_chunk, *args)
    for row, ref in graph.trees("tree", refs, (k_axis,), top_of_several, k, k_axis, mode).items():
        graph.alias("", row, ref)
    chunks = tuple((k,) if a == k_axis else c for a, c in enumerate(x_arg.first.chunks))
    return packed(form, graph.results(chunks, dtypes, x_arg))


def top_of_chunk(x: Any, start: int, k: int, axis: int, mode: Any) -> Parts:
    """Return the top elements of a chunk, and their global indices."""
    values, indices = ga.top_k(x, min(k, x.shape[axis]), axis=axis, mode=mode)
    return values, indices + start


def top_of_several(several: list[Parts], k: int, axis: int, mode: Any) -> Parts:
    """Return the top of several chunks' results; on ties, earlier chunks win."""
    values, indices = concatenate(several, axis)
    top, order = ga.top_k(values, min(k, values.shape[axis]), axis=axis, mode=mode)
    return top, _distributed.namespace_of(indices).take_along_axis(indices, order, axis)


# --- `histogram`: counts each chunk and adds the counts in a tree; two passes without a range.


def histogram(
    x: Any, bins: Any, range: Any = None, *, weights: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return how many samples are in each bin: ``result[i] = #{x : edges[i] <= x < edges[i+1]}``.

    Parameters and result are those of `gpualgo.histogram`, with dask arrays for arrays and for
    `weights`; `bins` and `range` must not be dask arrays. Counts and integer sums equal those of a
    single machine; sums of other weights are rounded once per chunk and once per addition. Chunks
    of unknown size are accepted.

    Notes
    -----
    With `range` or edges x is read once, by a task for each chunk. Without them a first pass finds
    the minimum and maximum, and all chunks are kept between the two passes, on disk if they do not
    fit in memory: pass `range` if you know it. A worker holds the chunks that it works on, and the
    counts of each.
    """
    x_arg = _inputs.parse_argument(x, "histogram")
    if x_arg.form is None and x_arg.first.dtype.names:  # each field is a dimension
        kinds, get = x_arg.first.dtype, operator.itemgetter
        parts = (x_arg.first.map_blocks(get(name), dtype=kinds[name]) for name in kinds.names)
        x_arg = _inputs.parse_argument(tuple(parts), "histogram")
    if any(map(is_dask, unpack((bins, range)))):
        raise TypeError("histogram: bins and range must not be dask arrays; call compute() on them")
    bins = _snapshot(bins)
    w_arg = weights if weights is None or is_scalar(weights) else _weights(weights, x_arg)
    axes = x_arg.axes(axis)
    is_joint = x_arg.form is not None
    ranges, unknown = _distributed.unknown_ranges(bins, range, len(x_arg.arrays), is_joint)
    any_ranges = _distributed.with_ranges(ranges, dict.fromkeys(unknown, (0, 1)), is_joint)
    small = w_arg.small() if isinstance(w_arg, Input) else w_arg
    (probe,), _ = _inputs.probe_call(
        ga.histogram, x_arg.small(), bins, any_ranges, weights=small, axis=axes, dtype=dtype
    )
    num_samples = math.prod(x_arg.first.shape[axis] for axis in axes)
    if weights is None and not math.isnan(num_samples):
        arguments.counter_dtype(probe.dtype, num_samples)  # raises if it cannot hold the number
    graph = Graph("histogram", x_arg, bins, range, w_arg, axes, probe.dtype)
    if unknown:
        ends = list(x_arg.each(graph, "ends", ends_of, x_arg, unknown).values())
        names = {dim: x_arg.fields[dim][0] for dim in unknown}
        ranges = graph.add("range", (), ranges_of, ends, ranges, names, is_joint)
    bins_arg = graph.shared("bins", bins)
    options = {"axis": axes, "dtype": probe.dtype}
    args = ga.histogram, x_arg, bins_arg, ranges
    refs = x_arg.each(graph, "chunk", call_on, *args, weights=w_arg, **options)
    shape = probe.shape[x_arg.first.ndim - len(axes) :]
    for row, ref in graph.trees("tree", refs, axes, _tasks.sum_arrays).items():
        kept = (i for a, i in enumerate(row) if a not in axes)
        graph.alias("", (*kept, *(0,) * len(shape)), ref)
    other_chunks = (c for a, c in enumerate(x_arg.first.chunks) if a not in axes)
    result_chunks = (*other_chunks, *((extent,) for extent in shape))
    return graph.results(result_chunks, (probe.dtype,), x_arg, w_arg)[0]


def _snapshot(bins: Any) -> Any:
    """Return bins as copies that the caller cannot change; invalid bins unchanged."""
    if isinstance(bins, tuple):
        return tuple(map(_snapshot, bins))
    if isinstance(bins, np.ndarray) or hasattr(bins, "__cuda_array_interface__"):
        return np.array(_distributed.on_host(bins), subok=isinstance(bins, np.ma.MaskedArray))
    return list(bins) if isinstance(bins, list) else bins


def _weights(weights: Any, x: Input) -> Input:
    """Return weights with the shape and chunks of the samples."""
    w_arg = _inputs.parse_argument(weights, "histogram", "weights", like=x.first)
    if w_arg.first.ndim > x.first.ndim:
        raise ValueError(
            f"histogram: weights have shape {w_arg.first.shape} and x {x.first.shape}, to which "
            "they do not broadcast"
        )
    return w_arg.broadcast(x.first)


# Within tasks:


def ends_of(x: Any, dims: list[int]) -> Any:
    """Return the minimum and maximum of some dimensions; None for an empty chunk."""
    parts = unpack(x)
    if not parts[0].size:
        return None
    return [[_distributed.on_host(value)[()] for value in ga.minmax(parts[dim])] for dim in dims]


def ranges_of(ends: list[Any], ranges: Any, names: dict[int, str], is_joint: bool) -> Any:
    """Return ranges with those of some dimensions, from those of all chunks.

    Raise ValueError unless they are finite; NaN propagates.
    """
    known = {}
    for (dim, name), *pairs in zip(names.items(), *filter(None, ends), strict=True):
        low, high = map(np.stack, zip(*pairs, strict=True)) if pairs else (np.zeros(1), np.ones(1))
        known[dim] = arguments.finite_ends(low.min(), high.max(), name)
    return _distributed.with_ranges(ranges, known, is_joint)


# --- `init`: a value that is part of each task, or dask arrays with a value for each row.


class InitArgument(NamedTuple):
    """The initial value of a reduction or scan: a value, or arrays."""

    value: Any
    source: Input | None
    small: Any

    @property
    def content(self) -> Any:
        """All that results depend on, for the graph's hash."""
        return _tasks.dumps(self.value) if self.source is None else self.source.content

    def chunk(self, row: Index) -> Any:
        """Return init for a block of rows, as an argument of a task."""
        if self.source is None:
            return self.value
        is_one = self.source.first.ndim == 0
        return self.source.chunk(() if is_one else row)._replace(place=row, are_values=is_one)


def parse_init(init: Any, x: Input, row_axes: Sequence[int], where: str) -> InitArgument:
    """Parse init; `row_axes` are the axes of the result's rows."""
    if not any(map(_is_array, unpack(init))):
        return InitArgument(init, None, init)
    shape = tuple(x.first.shape[axis] for axis in row_axes)
    source = _inputs.parse_argument(init, where, "init")
    if all(extent == 1 for extent in source.first.shape):
        source = source.of(array.reshape(()) for array in source.arrays)
        return InitArgument(None, source, _distributed.map_fields(lambda x: x[()], source.small()))
    told = f"{where}: init has shape {{}}, but rows have shape {{}}"
    advice = "pass one value, or an array with one for each row"
    _inputs.check_shapes(told, source.first.shape, shape, advice)
    source = source.fitted([(x.first, axis) for axis in row_axes])
    return InitArgument(None, source, source.small())


def _is_array(x: Any) -> bool:
    """Return whether init is a dask array or an array of several values."""
    if isinstance(x, np.ndarray):
        return x.size != 1
    return _inputs.is_dask(x) or hasattr(x, "__cuda_array_interface__")


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
    x_arg = _inputs.parse_argument(x, "reduce")
    local_op, frozen = pickle_operator(op, "reduce")
    keepdims = checks.flag_argument(keepdims, "keepdims", "reduce")
    axes = x_arg.axes(axis)
    other_axes = tuple(a for a in range(x_arg.first.ndim) if a not in axes)
    initial = parse_init(init, x_arg, other_axes, "reduce")
    options = {"axis": axes, "keepdims": keepdims, "dtype": dtype}
    small = x_arg.small(), initial.small
    dtypes, form = _inputs.probe_dtypes(ga.reduce, *small, local_op, **options)
    graph = Graph("reduce", x_arg, initial, frozen, axes, keepdims, dtypes)
    op_arg = graph.shared("op", frozen)
    fold = Fold(op_arg, axes, dtypes, x_arg.form)
    for index, ref in combined(graph, x_arg, fold, local_op.commutative).items():
        out = tuple(k for a, k in enumerate(index) if keepdims or a in other_axes)
        row = tuple(index[a] for a in other_axes)
        graph.add("", out, fold.finished, ref, initial.chunk(row), keepdims)
    chunks = tuple((1,) if a in axes else sizes for a, sizes in enumerate(x_arg.first.chunks)
                   if keepdims or a in other_axes)  # fmt: skip
    return packed(form, graph.results(chunks, dtypes, x_arg, initial.source))


@dataclass(frozen=True)
class Fold:
    """A reduction along axes; its methods run within tasks."""

    op: Any
    axes: tuple[int, ...]
    dtypes: tuple[Any, ...]  # of the accumulators
    form: Form | None  # of elements

    def reduced(self, parts: Parts, axes: tuple[int, ...], init: Any = None) -> Parts:
        """Reduce parts along axes, keeping these."""
        x, dtype = packed(self.form, parts), packed(self.form, self.dtypes)
        results = ga.reduce(x, init, self.op, axis=axes, keepdims=True, dtype=dtype)
        return tuple(map(_tasks.as_array, unpack(results)))

    def of_chunk(self, x: Any, axes: tuple[int, ...], reverse: bool = False) -> Parts:
        """Return the aggregate of a chunk; without elements along the axes, an empty array."""
        parts = unpack(x)
        if not all(parts[0].shape[axis] for axis in axes):
            slices = tuple(slice(0, 1) if a in axes else slice(None) for a in range(parts[0].ndim))
            return tuple(p[slices].astype(t) for p, t in zip(parts, self.dtypes, strict=True))
        if reverse:
            backwards = (slice(None),) * axes[0] + (slice(None, None, -1),)
            parts = tuple(part[backwards] for part in parts)
        return self.reduced(parts, axes)

    def joined(self, several: list[Parts], axis: int) -> Parts:
        """Combine results of chunks that follow each other along an axis."""
        parts = concatenate(several, axis)
        if parts[0].shape[axis] <= 1 or parts[0].size == 0:
            slices = (slice(None),) * axis + (slice(0, 1),)
            return tuple(part[slices] for part in parts)
        return self.reduced(parts, (axis,))

    def finished(self, parts: Parts, init: Any, keepdims: bool) -> Any:
        """Combine init with a result."""
        options = {"axis": self.axes, "keepdims": keepdims, "dtype": packed(self.form, self.dtypes)}
        return _tasks.result(unpack(ga.reduce(packed(self.form, parts), init, self.op, **options)))

    def linked(self, prefix: Parts | None, own: Parts, init: Any) -> Parts:
        """Return the prefix of the next chunk; the first chunk with elements applies init."""
        (axis,) = self.axes
        if not own[0].shape[axis]:
            return own if prefix is None else prefix
        if prefix is not None and prefix[0].shape[axis]:
            return self.joined([prefix, own], axis)
        return own if init is None else self.reduced(own, self.axes, init)

    def scanned(self, call: Any, x: Any, prefix: Parts | None, init: Any, reverse: bool) -> Any:
        """Scan a chunk, starting from its prefix or init."""
        (axis,) = self.axes
        dtype = packed(self.form, self.dtypes)
        options = {"axis": axis, "reverse": reverse, "dtype": dtype}
        if prefix is None or not prefix[0].shape[axis]:
            found = call(x, init, self.op, **options)
        else:
            found = _distributed.scan_from(call, self.form, unpack(x), prefix, self.op, **options)
        return _tasks.result(unpack(found))


def combined(graph: Graph, source: Input, fold: Fold, commutes: bool) -> dict[Index, TaskRef]:
    """Add the tasks that reduce along some axes, without init; return a task for each result.

    Several chunked axes are combined block by block if op commutes. That is not C order, so other
    operators are applied axis by axis, the last first.
    """
    axes, count = fold.axes, source.first.numblocks
    is_blockwise = commutes or all(count[axis] == 1 for axis in axes[1:])
    first_axes = axes if is_blockwise else axes[-1:]
    current = source.each(graph, "chunk", fold.of_chunk, source, first_axes)
    for step, axis in enumerate(reversed(axes)):
        if step and not is_blockwise:
            current = {index: graph.add("fold", (step, *index), fold.joined, [ref], axis)
                       for index, ref in current.items()}  # fmt: skip
        current = graph.trees(f"tree-{axis}", current, (axis,), fold.joined, axis)
    return current


# --- Scans: an aggregate of each chunk, a chain of prefixes in order, a scan of each chunk.


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
    x_arg, scan_axis = x_arg.line(axis)
    other_axes = tuple(a for a in range(x_arg.first.ndim) if a != scan_axis)
    initial = parse_init(init, x_arg, other_axes, func_name)
    options = {"axis": scan_axis, "reverse": reverse, "dtype": dtype}
    call = getattr(ga, func_name)
    dtypes, form = _inputs.probe_dtypes(call, x_arg.small(), initial.small, local_op, **options)
    if init is None and func_name == "exclusive_scan":  # every chunk must start from it
        initial = parse_init(local_op.identity_for(dtypes[0]), x_arg, other_axes, func_name)
    content = x_arg, initial, frozen, scan_axis, reverse, dtypes
    graph = Graph(func_name, *content)
    fold = Fold(graph.shared("op", frozen), (scan_axis,), dtypes, x_arg.form)
    for row in blocks(x_arg.first, other_axes):
        _add_line(graph, call, x_arg, initial, fold, row, reverse)
    chunks = x_arg.first.chunks
    return packed(form, graph.results(chunks, dtypes, x_arg, initial.source))


def _add_line(
    graph: Graph, call: Any, x: Input, initial: InitArgument, fold: Fold, row: Index, reverse: bool
) -> None:
    """Add the tasks of the chunks along one line, which starts at chunk `row`."""
    (axis,) = fold.axes
    count = x.first.numblocks[axis]
    init = initial.chunk((*row[:axis], *row[axis + 1 :]))
    prefix: TaskRef | None = None
    for step in range(count):
        chunk_number = count - 1 - step if reverse else step
        index = (*row[:axis], chunk_number, *row[axis + 1 :])
        chunk = x.chunk(index)
        graph.add("", index, fold.scanned, call, chunk, prefix, init, reverse)
        if step < count - 1:
            total = graph.add("aggregate", index, fold.of_chunk, chunk, fold.axes, reverse)
            prefix = graph.add("prefix", index, fold.linked, prefix, total, init)
