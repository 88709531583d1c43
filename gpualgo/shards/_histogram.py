"""`histogram`: counts each shard and adds the counts on the first device."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._arrays.view import view_of
from gpualgo._base.records import MAX_FIELDS
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._pipeline import checks
from gpualgo.shards import _devices
from gpualgo.shards._arguments import Argument, infer_result, parse_argument, stacked
from gpualgo.shards._devices import Device, all_on_host, can_read, on_host, peer_view, reading

_NAME = "histogram"


def histogram(
    x: Any, bins: Any, range: Any = None, *, weights: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return how many samples of a sharded array are in each bin, as `gpualgo.histogram` does.

    Parameters are those of `gpualgo.histogram`; `x` and `weights` are sharded alike, or `weights`
    is a number. The result is an array on the first device; if the sharded axis is not counted
    over, the result is sharded along it. Counts and integer sums equal those of one device; sums of
    other weights are rounded once per shard and once per addition.

    Notes
    -----
    Each device reads its shard once; its counts are copied to the first device. The host waits only
    for the minimum and maximum, without `range`, and for edges on a GPU.
    """
    x_arg = parse_argument(x, _NAME)
    first, places = x_arg.first, x_arg.places
    is_number = weights is None or is_scalar(weights)
    w_arg = weights if is_number else parse_argument(weights, _NAME, "weights", first)
    axes = checks.axes_of(checks.plain_axes(axis, _NAME), first.ndim, _NAME)
    bins = _edges(bins)
    ranges = _ranges(x_arg, bins, range)

    def options(i: int) -> dict[str, Any]:
        w = w_arg.on(i) if isinstance(w_arg, Argument) else w_arg
        return {"weights": w, "axis": axes, "dtype": dtype}

    (acc_dtype, *_), _ = infer_result(
        ga.histogram, places[0], x_arg.on(0), bins, ranges, **options(0)
    )
    if weights is None:
        arguments.counter_dtype(acc_dtype, math.prod(first.shape[a] for a in axes))
    parts = x_arg.run(lambda i: ga.histogram(x_arg.on(i), bins, ranges, **options(i)))
    if first.axis not in axes:
        return x_arg.reduced(parts, axes, False)
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= MAX_FIELDS and can_read(places[:1], parts):
        return _sum_by_peer_reads(parts, places[0], first.library, acc_dtype)
    with places[0].running():
        stack = stacked(parts, places[0], first.library)
        return ga.reduce(stack, None, operator.add, axis=0, dtype=acc_dtype)


def _sum_by_peer_reads(parts: list[Any], device: Device, library: Any, dtype: Any) -> Any:
    """Add counters in one kernel on a device, which reads them from the memory of the others."""
    stream = _devices.stream_at(device, library)
    with reading([device], parts, library), device.running():
        target = device.empty(view_of(parts[0], "counters").shape, dtype, library)
        views = tuple(peer_view(part, device, library) for part in parts)
        ga.copy(_summed(views, _NAME, dtype), out=peer_view(target, device, library), stream=stream)
    return target


def _sum_of(*args: Any) -> Any:
    *parts, dtype = args
    return functools.reduce(lambda a, b: ga.lazy.transform(operator.add, a, b, dtype=dtype), parts)


_summed = ExpressionCache(_sum_of)


def _edges(bins: Any) -> Any:
    """Return bins with their edges as host arrays, which every device can read."""
    if isinstance(bins, tuple):
        return tuple(map(_edges, bins))
    if isinstance(bins, ga.lazy.LazyArray):
        bins = ga.copy(bins)
    return on_host(bins) if hasattr(bins, "__cuda_array_interface__") else bins


def _ranges(x_arg: Argument, bins: Any, ranges: Any) -> Any:
    """Return ranges, with those that depend on the data filled in."""
    if x_arg.form is None:
        if ranges is None and _is_number(bins):
            return _data_range(x_arg, 0, "x")
        return ranges
    dims = len(x_arg.arrays)
    dim_bins = list(bins) if isinstance(bins, tuple) else [bins] * dims
    if ranges is not None and (not isinstance(ranges, (tuple, list)) or len(ranges) != dims):
        return ranges  # the call raises an error
    dim_ranges = [None] * dims if ranges is None else list(ranges)
    names = x_arg.form.names
    return tuple(
        _data_range(x_arg, i, f"x[{names[i]}]") if limits is None and _is_number(edges) else limits
        for i, (edges, limits) in enumerate(zip(dim_bins, dim_ranges, strict=False))
    )


def _is_number(bins: Any) -> bool:
    try:
        return operator.index(bins) > 0
    except TypeError:
        return False


def _data_range(x_arg: Argument, dim: int, name: str) -> tuple[Any, Any]:
    """Return the minimum and maximum of a dimension; waits for them."""
    x = x_arg.arrays[dim]
    full = [i for i, shard in enumerate(x.shards) if 0 not in tuple(shard.shape)]
    if not full:
        return 0, 1
    extremes = x_arg.run(lambda i: ga.minmax(x.shards[i]), full)
    values = all_on_host([value for pair in extremes for value in pair])
    low, high = (np.stack(values[side::2]) for side in (0, 1))
    least, greatest = low.min(), high.max()  # NaN propagates
    if isinstance(least, np.bool_):
        least, greatest = np.uint8(least), np.uint8(greatest)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        raise ValueError(
            f"histogram: the range [{least}, {greatest}] of {name} is not finite; "
            "pass range=, outside of which samples are not counted"
        )
    return least, greatest
