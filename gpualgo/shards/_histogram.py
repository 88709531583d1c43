"""`histogram`: each shard's counts, added up on the first device."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.transform.scalars import is_scalar
from gpualgo._arrays.view import view_of
from gpualgo._base.records import MAX_FIELDS
from gpualgo._lazy.kept import Kept
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import (
    Argument,
    asked,
    built,
    on_each,
    stacked,
    taken,
)
from gpualgo.shards._devices import Place, all_on_host, on_host
from gpualgo.shards._reading import as_at, can_read, reading, stream_at

_WHERE = "histogram"


def histogram(
    x: Any, bins: Any, range: Any = None, *, weights: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Count the samples of a sharded array in bins, as `gpualgo.histogram` does.

    Parameters are those of `gpualgo.histogram`, with sharded arrays that are cut alike for `x` and
    `weights`, which may be a number as well. The result is an array on the first device; where the
    axis that is cut stays, it is sharded along it. Counts, and sums of integers, are those of one
    device; sums of other weights are rounded once for each shard, and once for each addition.

    Notes
    -----
    Each device reads its shard once; its counters go to the first device. Nothing waits, but for
    the least and the greatest sample where no `range` is given, and for edges on a GPU.
    """
    source = taken(x, _WHERE)
    first, places = source.first, source.places
    beside = weights if weights is None or is_scalar(weights) else _weights(weights, source)
    axes = checks.axes_of(checks.plain_axes(axis, _WHERE), first.ndim, _WHERE)
    bins = _edges(bins)
    ranges = _ranges(source, bins, range)

    def options(seat: int) -> dict[str, Any]:
        own = beside.on(seat) if isinstance(beside, Argument) else beside
        return {"weights": own, "axis": axes, "dtype": dtype}

    (found, *_), _ = asked(ga.histogram, places[0], source.on(0), bins, ranges, **options(0))
    if weights is None:
        arguments.counter_dtype(found, math.prod(first.shape[a] for a in axes))
    parts = on_each(
        places, source.seats,
        lambda seat: ga.histogram(source.on(seat), bins, ranges, **options(seat)),
    )  # fmt: skip
    if first.axis not in axes:
        return built(parts, places, first.axis - sum(a < first.axis for a in axes))
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= MAX_FIELDS and can_read(places[:1], parts):
        return _sum_there(parts, places[0], first.library, found)
    with places[0].running():
        whole = stacked(parts, places[0], first.library)
        return ga.reduce(whole, None, operator.add, axis=0, dtype=found)


def _sum_there(parts: list[Any], place: Place, library: Any, dtype: Any) -> Any:
    """Return the sum of all counters, which a kernel at a place reads where they lie."""
    stream = stream_at(place, library)
    with reading([place], parts, library), place.running():
        target = place.empty(view_of(parts[0], "counters").shape, dtype, library)
        seen = tuple(as_at(part, place, library) for part in parts)
        ga.copy(_summed(seen, _WHERE, dtype), out=as_at(target, place, library), stream=stream)
    return target


def _sum_of(*given: Any) -> Any:
    *parts, dtype = given
    return functools.reduce(lambda a, b: ga.lazy.transform(operator.add, a, b, dtype=dtype), parts)


_summed = Kept(_sum_of)


def _edges(bins: Any) -> Any:
    """Return bins whose edges, if any, can be read by every device."""
    if isinstance(bins, tuple):
        return tuple(map(_edges, bins))
    if isinstance(bins, ga.lazy.LazyArray):
        bins = ga.copy(bins)
    return on_host(bins) if hasattr(bins, "__cuda_array_interface__") else bins


def _weights(weights: Any, source: Argument) -> Argument:
    return taken(weights, _WHERE, "weights", source.first)


def _ranges(source: Argument, bins: Any, ranges: Any) -> Any:
    """Return ranges in which those that samples decide are known."""
    if source.form is None:
        if ranges is None and _is_number(bins):
            return _ends(source, 0, "x")
        return ranges
    dims = len(source.arrays)
    each = list(bins) if isinstance(bins, tuple) else [bins] * dims
    if ranges is not None and (not isinstance(ranges, (tuple, list)) or len(ranges) != dims):
        return ranges  # which is refused
    own = [None] * dims if ranges is None else list(ranges)
    names = source.form.names
    return tuple(
        _ends(source, i, f"x[{names[i]}]") if ends is None and _is_number(one) else ends
        for i, (one, ends) in enumerate(zip(each, own, strict=False))
    )


def _is_number(one: Any) -> bool:
    try:
        return operator.index(one) > 0
    except TypeError:
        return False


def _ends(source: Argument, dim: int, name: str) -> tuple[Any, Any]:
    """Return the least and the greatest sample of a dimension, once they are there."""
    x = source.arrays[dim]
    full = [seat for seat, shard in enumerate(x.shards) if 0 not in tuple(shard.shape)]
    if not full:
        return 0, 1
    found = on_each(x.places, full, lambda seat: ga.minmax(x.shards[seat]))
    ends = all_on_host([end for pair in found for end in pair])
    low, high = (np.stack(ends[side::2]) for side in (0, 1))
    least, greatest = low.min(), high.max()  # NaN where there is one
    if isinstance(least, np.bool_):
        least, greatest = np.uint8(least), np.uint8(greatest)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        raise ValueError(
            f"histogram: the range [{least}, {greatest}] of {name} is not finite; "
            "pass range=, outside of which samples are not counted"
        )
    return least, greatest
