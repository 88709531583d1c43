"""`histogram`: counts each chunk and adds the counts in a tree; two passes without a range."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs
from gpualgo.dask._graph import Graph, Index, result_arrays
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._tasks import ChunkArg, element_of, on_host, parts_of, sum_arrays


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
    bins = _snapshot(bins)
    w_arg = weights if weights is None or is_scalar(weights) else _weights(weights, x_arg)
    axes = checks.axes_of(checks.plain_axes(axis, "histogram"), x_arg.first.ndim, "histogram")
    dims = 1 if x_arg.form is None else len(x_arg.arrays)
    ranges, unknown = _ranges(bins, range, dims, x_arg.form is not None)
    small = w_arg.small() if isinstance(w_arg, Input) else w_arg
    (probe,), _ = _inputs.probe_call(
        ga.histogram, x_arg.small(), bins, ranges, weights=small, axis=axes, dtype=dtype
    )
    num_samples = math.prod(x_arg.first.shape[axis] for axis in axes)
    if weights is None and not math.isnan(num_samples):
        arguments.counter_dtype(probe.dtype, num_samples)  # raises if it cannot hold the number
    content = w_arg.content if isinstance(w_arg, Input) else (type(w_arg).__name__, w_arg)
    graph = Graph("histogram", x_arg.content, bins, range, content, axes, probe.dtype)
    limits = _data_limits(graph, x_arg, unknown) if unknown else None
    bins_arg = graph.shared("bins", bins, _num_bytes(bins))
    groups: dict[Index, list[TaskRef]] = {}
    for index in blocks(x_arg.first):
        chunks = x_arg.chunk(index), w_arg.chunk(index) if isinstance(w_arg, Input) else w_arg
        options = bins_arg, ranges, limits, axes, probe.dtype
        ref = graph.add("chunk", index, count_chunk, *chunks, *options)
        groups.setdefault(tuple(i for a, i in enumerate(index) if a not in axes), []).append(ref)
    shape = probe.shape[x_arg.first.ndim - len(axes) :]
    for row, refs in groups.items():
        graph.alias("", (*row, *(0,) * len(shape)), graph.tree("tree", row, refs, sum_arrays))
    other_chunks = (c for a, c in enumerate(x_arg.first.chunks) if a not in axes)
    result_chunks = (*other_chunks, *((extent,) for extent in shape))
    sources = x_arg, w_arg if isinstance(w_arg, Input) else None
    return result_arrays(graph, x_arg.first, result_chunks, (probe.dtype,), *sources)[0]


def _snapshot(bins: Any) -> Any:
    """Return bins as copies that the caller cannot change; invalid bins unchanged."""
    if isinstance(bins, tuple):
        return tuple(map(_snapshot, bins))
    if isinstance(bins, np.ndarray) or hasattr(bins, "__cuda_array_interface__"):
        return np.array(on_host(bins))
    return list(bins) if isinstance(bins, list) else bins


def _num_bytes(bins: Any) -> int:
    return sum(np.asarray(edges).nbytes for edges in (bins if isinstance(bins, tuple) else (bins,)))


def _weights(weights: Any, x: Input) -> Input:
    """Return weights with the shape and chunks of the samples."""
    w_arg = _inputs.parse_argument(weights, "histogram", "weights", like=x.first)
    if _inputs.equal_chunks(w_arg.first.chunks, x.first.chunks):
        return w_arg
    if w_arg.first.ndim > x.first.ndim:
        raise ValueError(
            f"histogram: weights have shape {w_arg.first.shape} and x {x.first.shape}, to which "
            "they do not broadcast"
        )
    return w_arg.broadcast(x.first)


def _ranges(bins: Any, ranges: Any, dims: int, is_joint: bool) -> tuple[Any, list[int]]:
    """Return ranges, with (0, 1) for those taken from the data, and the dimensions of those."""

    def is_number(bins_of_dim: Any) -> bool:
        try:
            return operator.index(bins_of_dim) > 0
        except TypeError:
            return False

    dim_bins = list(bins) if isinstance(bins, tuple) else [bins] * dims
    if not is_joint:
        unknown = [0] if ranges is None and is_number(bins) else []
        return ((0, 1) if unknown else ranges), unknown
    if ranges is not None and (not isinstance(ranges, (tuple, list)) or len(ranges) != dims):
        return ranges, []  # the call raises an error
    dim_ranges = [None] * dims if ranges is None else list(ranges)
    unknown = [
        i for i, (bins_of_dim, limits) in enumerate(zip(dim_bins, dim_ranges, strict=False))
        if limits is None and is_number(bins_of_dim)
    ]  # fmt: skip
    return tuple((0, 1) if i in unknown else limits for i, limits in enumerate(dim_ranges)), unknown


def _data_limits(graph: Graph, x: Input, unknown: list[int]) -> TaskRef:
    """Add the tasks that find the range of the data in some dimensions."""
    refs = [graph.add("ends", index, ends_of, x.chunk(index), unknown) for index in blocks(x.first)]
    root = graph.tree("ends-tree", (), refs, widest)
    names = [x.source[1][i][0] for i in unknown]
    return graph.add("range", (), ranges_of, root, unknown, names)


# --- within tasks -------------------------------------------------------------------------------


def ends_of(x: ChunkArg, dims: list[int]) -> Any:
    """Return the minimum and maximum of some dimensions; None for an empty chunk."""
    parts = parts_of(x)
    if not parts[0].size:
        return None
    extremes = []
    for dim in dims:
        low, high = (on_host(value)[()] for value in ga.minmax(parts[dim]))
        is_bool = isinstance(low, np.bool_)
        extremes.append((np.uint8(low), np.uint8(high)) if is_bool else (low, high))
    return extremes


def widest(several: list[Any]) -> Any:
    """Combine minima and maxima; NaN propagates."""
    known = [ends for ends in several if ends is not None]
    if not known:
        return None
    return [
        (np.min(np.array([low for low, _ in pairs])), np.max(np.array([high for _, high in pairs])))
        for pairs in zip(*known, strict=True)
    ]


def ranges_of(extremes: Any, dims: list[int], names: list[str]) -> dict[int, Any]:
    """Return the ranges of some dimensions; raise ValueError unless they are finite."""
    ranges: dict[int, Any] = {}
    for position, (dim, name) in enumerate(zip(dims, names, strict=True)):
        low, high = (0, 1) if extremes is None else extremes[position]
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"histogram: the range [{low}, {high}] of {name} is not finite; "
                "pass range=, outside of which samples are not counted"
            )
        ranges[dim] = low, high
    return ranges


def count_chunk(
    x: ChunkArg, weights: Any, bins: Any, ranges: Any, ends: dict[int, Any] | None, axes: Index,
    dtype: Any,
) -> Any:  # fmt: skip
    if isinstance(weights, list):
        (weights,) = parts_of(weights)
    if ends is not None:
        is_joint = x[0][2] is not None
        ranges = tuple(ends.get(i, r) for i, r in enumerate(ranges)) if is_joint else ends[0]
    return ga.histogram(element_of(x), bins, ranges, weights=weights, axis=axes, dtype=dtype)
