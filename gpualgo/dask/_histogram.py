"""`histogram`: each chunk's counts, added up in a tree; without a range two passes."""

from __future__ import annotations

import math
import operator
from itertools import product
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.transform.scalars import is_scalar
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._values import Source, added, given, on_host, packed

_WHERE = "histogram"


def histogram(
    x: Any, bins: Any, range: Any = None, *, weights: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Count the samples of a dask array in bins: ``result[i] = #{x : edges[i] <= x < edges[i+1]}``.

    Parameters and result are those of `gpualgo.histogram`, with dask arrays for arrays and for
    `weights`; `bins` and `range` are no dask arrays. Counts, and sums of integers, are those of a
    single machine; sums of other weights are rounded once for each chunk and once for each addition
    of two. Chunks of unknown size are taken.

    Notes
    -----
    With `range` or edges x is read once, by a task for each chunk. Without it the least and the
    greatest sample are looked for first: all chunks are kept between the two passes, on disk where
    memory does not hold them, so that `range` is worth giving. A worker holds the chunks that it
    works on, and bins for each.
    """
    source = _inputs.taken(x, _WHERE)
    bins = _settled(bins)
    beside = weights if weights is None or is_scalar(weights) else _weights(weights, source)
    axes = checks.axes_of(checks.plain_axes(axis, _WHERE), source.first.ndim, _WHERE)
    dims = 1 if source.form is None else len(source.arrays)
    ranges, unknown = _ranges(bins, range, dims, source.form is not None)
    small = beside.small() if isinstance(beside, Input) else beside
    options = {"axis": axes, "dtype": dtype}
    (found,), _ = _inputs.told(ga.histogram, source.small(), bins, ranges, weights=small, **options)
    if weights is None:
        _check_counters(found.dtype, source, axes)
    content = beside.content if isinstance(beside, Input) else (type(beside).__name__, beside)
    graph = Graph(_WHERE, source.content, bins, range, content, axes, found.dtype)
    ends = _ends(graph, source, unknown) if unknown else None
    held = graph.shared("bins", bins, _bytes(bins))
    groups: dict[Index, list[TaskRef]] = {}
    for index in blocks(source.first):
        args = source.chunk(index), source.source, *_beside(beside, index), index
        ref = graph.add("chunk", index, chunk, *args, held, ranges, ends, axes, found.dtype)
        groups.setdefault(tuple(i for a, i in enumerate(index) if a not in axes), []).append(ref)
    shape = found.shape[source.first.ndim - len(axes) :]
    for kept, refs in groups.items():
        graph.alias("", (*kept, *(0,) * len(shape)), graph.tree("tree", kept, refs, added))
    chunks = tuple(c for a, c in enumerate(source.first.chunks) if a not in axes)
    chunks = (*chunks, *((extent,) for extent in shape))
    sources = *source.arrays, *(beside.arrays if isinstance(beside, Input) else ())
    return _results.arrays(graph, "", source.first, chunks, (found.dtype,), sources)[0]


def _settled(bins: Any) -> Any:
    """Return bins that nobody else changes; what is none is refused later."""
    if isinstance(bins, tuple):
        return tuple(map(_settled, bins))
    if isinstance(bins, np.ndarray) or hasattr(bins, "__cuda_array_interface__"):
        return np.array(on_host(bins))
    return list(bins) if isinstance(bins, list) else bins


def _bytes(bins: Any) -> int:
    return sum(np.asarray(one).nbytes for one in (bins if isinstance(bins, tuple) else (bins,)))


def _weights(weights: Any, x: Input) -> Input:
    """Return weights, broadcast to the samples' shape and cut as these are."""
    beside = _inputs.taken(weights, _WHERE, "weights", like=x.first)
    if _inputs.same_chunks(beside, x):
        return beside
    if beside.first.ndim > x.first.ndim:
        raise ValueError(
            f"histogram: weights have shape {beside.first.shape} and x {x.first.shape}, to which "
            "they do not broadcast"
        )
    return beside.broadcast(x.first)


def _ranges(bins: Any, ranges: Any, dims: int, is_joint: bool) -> tuple[Any, list[int]]:
    """Return ranges with (0, 1) for those that samples decide, and which these are."""

    def is_number(one: Any) -> bool:
        try:
            return operator.index(one) > 0
        except TypeError:
            return False

    each = list(bins) if isinstance(bins, tuple) else [bins] * dims
    if not is_joint:
        unknown = [0] if ranges is None and is_number(bins) else []
        return ((0, 1) if unknown else ranges), unknown
    if ranges is not None and (not isinstance(ranges, (tuple, list)) or len(ranges) != dims):
        return ranges, []  # which is refused
    own = [None] * dims if ranges is None else list(ranges)
    unknown = [
        i for i, (one, ends) in enumerate(zip(each, own, strict=False))
        if ends is None and is_number(one)
    ]  # fmt: skip
    return tuple((0, 1) if i in unknown else ends for i, ends in enumerate(own)), unknown


def _check_counters(dtype: Any, x: Input, axes: tuple[int, ...]) -> None:
    """Raise ValueError for counters that do not hold the number of samples, where it is known."""
    samples = math.prod(x.first.shape[axis] for axis in axes)
    if not math.isnan(samples):
        arguments.counter_dtype(dtype, samples)


def _ends(graph: Graph, x: Input, unknown: list[int]) -> TaskRef:
    """Add the tasks that find the least and the greatest sample of some dimensions."""
    refs = [
        graph.add("ends", index, ends_of, x.chunk(index), x.source, index, unknown)
        for index in product(*map(range, x.first.numblocks))
    ]
    last = graph.tree("ends-tree", (), refs, widest)
    names = [x.source[1][i][0] for i in unknown]
    return graph.add("range", (), ranges_of, last, unknown, names)


def _beside(weights: Any, index: Index) -> tuple[Any, Any]:
    """Return what a task is given for weights: chunks and what they are, or a number."""
    if isinstance(weights, Input):
        return weights.chunk(index), weights.source
    return [], weights


# --- within tasks -------------------------------------------------------------------------------


def ends_of(chunks: list[Any], source: Source, index: Index, dims: list[int]) -> Any:
    """Return the least and the greatest number of some dimensions; None without any."""
    parts = given(chunks, source, index)
    if not parts[0].size:
        return None
    found = []
    for dim in dims:
        low, high = (on_host(end)[()] for end in ga.minmax(parts[dim]))
        is_bool = isinstance(low, np.bool_)
        found.append((np.uint8(low), np.uint8(high)) if is_bool else (low, high))
    return found


def widest(several: list[Any]) -> Any:
    """Return the least and the greatest of several ends; NaN where there is one."""
    known = [ends for ends in several if ends is not None]
    if not known:
        return None
    return [
        (np.min(np.array([low for low, _ in pairs])), np.max(np.array([high for _, high in pairs])))
        for pairs in zip(*known, strict=True)
    ]


def ranges_of(found: Any, dims: list[int], names: list[str]) -> dict[int, Any]:
    """Return the ranges of some dimensions."""
    ranges: dict[int, Any] = {}
    for place, (dim, name) in enumerate(zip(dims, names, strict=True)):
        low, high = (0, 1) if found is None else found[place]
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"histogram: the range [{low}, {high}] of {name} is not finite; "
                "pass range=, outside of which samples are not counted"
            )
        ranges[dim] = low, high
    return ranges


def chunk(
    chunks: list[Any], source: Source, beside: list[Any], weights: Any, index: Index, bins: Any,
    ranges: Any, ends: dict[int, Any] | None, axes: Index, dtype: Any,
) -> Any:  # fmt: skip
    """Return a chunk's counts."""
    parts = given(chunks, source, index)
    if beside:
        (weights,) = given(beside, weights, index)
    if ends is not None and source[2] is None:
        ranges = ends[0]
    elif ends is not None:
        ranges = tuple(ends.get(dim, own) for dim, own in enumerate(ranges))
    x = packed(source[2], parts)
    return ga.histogram(x, bins, ranges, weights=weights, axis=axes, dtype=dtype)
