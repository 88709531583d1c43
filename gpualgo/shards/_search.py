"""`count`, `find`, `minmax`, `argmin` and `argmax`: what each shard tells, on the first device."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._operators.predicates import is_function
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import (
    Argument,
    asked,
    built,
    on_each,
    refuse,
    stacked,
    taken,
    together,
)
from gpualgo.shards._reduce import kept_axes
from gpualgo.shards._top_k import shifted, taken_at


def count(x: Any, predicate: Any, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Count the elements for which a predicate is true, as `gpualgo.count` does.

    Along the axis that is cut the result is an array on the first device. Nothing waits.
    """
    source, call = _asked("count", x, predicate)
    axes = checks.axes_of(checks.plain_axes(axis, "count"), source.first.ndim, "count")
    keepdims = checks.flag(keepdims, "keepdims", "count")
    parts = on_each(
        source.places, source.seats, lambda seat: call(seat, axis=axes, keepdims=keepdims)
    )
    own = source.first.axis
    if own not in axes:
        return built(parts, source.places, own if keepdims else own - sum(a < own for a in axes))
    return _folded(source, parts, operator.add)


def find(x: Any, predicate: Any, *, axis: Any = None) -> Any:
    """Find the first element for which a predicate is true: its index, or -1; as `gpualgo.find`.

    Along the axis that is cut the result is an array on the first device. Nothing waits.
    """
    source, call = _asked("find", x, predicate)
    source, line = _line(source, axis, "find")
    if axis is None:
        source, call = _asked("find", *_flat_pair(x, predicate))
    parts = on_each(source.places, source.seats, lambda seat: call(seat, axis=line))
    if line != source.first.axis:
        own = source.first.axis
        return built(parts, source.places, own - (line < own))
    if len(parts) == 1:
        return parts[0]
    starts = source.first.starts
    parts = on_each(source.places, source.seats, lambda seat: _found(parts[seat], starts[seat]))
    return _folded(source, parts, _first_found)


def _found(index: Any, start: int) -> Any:
    if isinstance(index, (np.ndarray, np.generic)):
        known = np.asarray(index)
        return np.where(known >= 0, known + start, known)
    return ga.transform(_from_start, index, start) if start else index


def _from_start(a: Any, b: Any) -> Any:
    return a + b if a >= 0 else a


def _first_found(a: Any, b: Any) -> Any:
    return a if a >= 0 else b


def _flat_pair(x: Any, predicate: Any) -> tuple[Any, Any]:
    """Return what is searched in one dimension."""
    source = taken(x, "find").flat("find")
    if is_function(predicate, "find"):
        return source.packed(source.arrays), predicate
    return source.packed(source.arrays), taken(predicate, "find", "predicate").flat("find").first


def _asked(where: str, x: Any, predicate: Any) -> tuple[Argument, Any]:
    """Return what is looked at, and the call on a shard."""
    source, function = taken(x, where), getattr(ga, where)
    if is_function(predicate, where):
        return source, lambda seat, **options: function(source.on(seat), predicate, **options)
    mark = taken(predicate, where, "predicate", source.first)
    return source, lambda seat, **options: function(source.on(seat), mark.on(seat), **options)


def _line(source: Argument, axis: Any, where: str) -> tuple[Argument, int]:
    line = checks.axis_of(checks.plain_axis(axis, where), source.first.ndim, where)
    return (source.flat(where), 0) if line is None else (source, line)


def _folded(source: Argument, parts: list[Any], op: Any) -> Any:
    """Return results of shards as one, in their order, on the first device."""
    if len(parts) == 1:
        return parts[0]
    place = source.places[0]
    with place.running():
        return ga.reduce(stacked(parts, place, source.first.library), None, op, axis=0)


def minmax(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Find the least and the greatest element, as `gpualgo.minmax` does.

    Along the axis that is cut the result is an array on the first device. Nothing waits.
    """
    where = "minmax"
    source = taken(x, where)
    axes = checks.axes_of(checks.plain_axes(axis, where), source.first.ndim, where)
    keepdims = checks.flag(keepdims, "keepdims", where)
    own, shape = source.first.axis, source.first.shape
    if own not in axes:
        parts = on_each(
            source.places, source.seats,
            lambda seat: ga.minmax(source.on(seat), axes, keepdims=keepdims),
        )  # fmt: skip
        return built(parts, source.places, own if keepdims else own - sum(a < own for a in axes))
    seats = source.full or [0]
    parts = on_each(source.places, seats, lambda seat: ga.minmax(source.on(seat), axes))
    place = source.places[0]
    with place.running():
        low, high = together(parts, place, source.first.library)
        found = ga.MinMax(ga.minmax(low, 0).min, ga.minmax(high, 0).max)
    return kept_axes(found, axes, shape) if keepdims else found


def argmin(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Find the least element: the index of the first of them, or of the first NaN.

    As `gpualgo.argmin`; along the axis that is cut, of one row, the result is an array on the first
    device. Nothing waits.
    """
    return _extreme(ga.argmin, x, axis, keepdims)


def argmax(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Find the greatest element: the index of the first of them, or of the first NaN.

    As `argmin`.
    """
    return _extreme(ga.argmax, x, axis, keepdims)


def _extreme(function: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    where = function.__name__
    whole = taken(x, where)
    source, line = _line(whole, axis, where)
    keepdims = checks.flag(keepdims, "keepdims", where)
    first = source.first
    if line != first.axis:
        parts = on_each(
            source.places, source.seats,
            lambda seat: function(source.on(seat), line, keepdims=keepdims),
        )  # fmt: skip
        return built(parts, source.places, first.axis - (line < first.axis and not keepdims))
    if first.ndim > 1:
        seat = (source.full or [0])[0]
        asked(function, source.places[seat], source.on(seat), line, keepdims=keepdims)
        refuse(
            where, f"the rows along axis {line} are cut, in shape {first.shape}",
            "pass gpualgo.distribute(x, axis=…) with another axis",
        )  # fmt: skip
    seats, starts, place = source.full or [0], first.starts, source.places[0]
    parts = on_each(source.places, seats, lambda seat: _extreme_of(function, source, seat))
    indices = on_each(
        source.places, seats, lambda seat: shifted(parts[seats.index(seat)][1], starts[seat])
    )
    with place.running():
        values = stacked([own[0] for own in parts], place, first.library)
        chosen = function(values.reshape(-1))
        found = taken_at(stacked(indices, place, first.library).reshape(-1), chosen)
    return found.reshape((1,) * whole.first.ndim) if keepdims else found


def _extreme_of(function: Any, source: Argument, seat: int) -> tuple[Any, Any]:
    """Return a shard's extreme element and its index."""
    x = source.on(seat)
    index = function(x)
    return taken_at(x, index), index
