"""`reduce`: each shard, then what they come to, in order, on the first device."""

from __future__ import annotations

import operator
from typing import Any

import gpualgo as ga
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, starts
from gpualgo.shards._arguments import (
    Argument,
    Dtypes,
    asked,
    built,
    on_each,
    refuse,
    refuse_sharded,
    taken,
    together,
)
from gpualgo.shards._devices import Place
from gpualgo.shards._reading import as_at, at_home, can_read, reading, stream_at

_WHERE = "reduce"


def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine the elements of a sharded array: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters are those of `gpualgo.reduce`, with sharded arrays for arrays. Along the axis that is
    cut the result is an array on the first device, where an `init` of several numbers lies as well;
    along others alone it is sharded as x is.

    Notes
    -----
    Each device reads its shard once; one number from each, or a row, goes to the first device, and
    is combined there in the order of the shards. Nothing waits. Where op does not commute and axes
    before the one that is cut are reduced, too, so many rows go there.
    """
    source = taken(x, _WHERE)
    first = source.first
    refuse_sharded(init, _WHERE, "init")
    keepdims = checks.flag(keepdims, "keepdims", _WHERE)
    axes = checks.axes_of(checks.plain_axes(axis, _WHERE), first.ndim, _WHERE)
    if first.axis not in axes:
        return _apart(source, init, op, axes, keepdims, dtype)
    place, full = source.places[0], source.full
    if len(full) <= 1 or first.size == 0:
        (whole,) = on_each(
            source.places[:1], [0],
            lambda _: ga.reduce(_whole(source, full), init, op, axis=axes, keepdims=keepdims,
                                dtype=dtype),
        )  # fmt: skip
        return whole
    where = source.places[full[0]]
    dtypes, _ = asked(
        ga.reduce, where, source.on(full[0]), at_place(init, where, source), op, axis=axes,
        keepdims=keepdims, dtype=dtype,
    )  # fmt: skip
    acc = source.packed(dtypes)
    late = () if commutes(op) else tuple(a for a in axes if a < first.axis)
    early = tuple(a for a in axes if a not in late)
    whole = aggregates_at(place, source, full, op, early, dtypes)
    rest = tuple(a - sum(b < a for b in early) for a in late)
    with place.running():
        x = source.packed(whole)
        found = ga.reduce(x, None if rest else init, op, axis=0, dtype=acc)
        if rest:
            found = ga.reduce(found, init, op, axis=rest, dtype=acc)
    return kept_axes(found, axes, first.shape) if keepdims else found


def aggregates_at(
    place: Place, source: Argument, seats: list[int], op: Any, axes: tuple[int, ...],
    dtypes: Dtypes,
) -> list[Any]:  # fmt: skip
    """Return what shards come to along axes, one after another at a place.

    Each device writes its own there, where it reaches that; else they are copied.
    """
    first, library, acc = source.first, source.first.library, source.packed(dtypes)
    others = [source.places[seat] for seat in seats]
    shape = (len(seats), *(n for a, n in enumerate(first.shape) if a not in axes))
    whole = [place.empty(shape, dtype, library) for dtype in dtypes]
    if not can_read(others, whole):
        return together(aggregates(source, seats, op, axes, dtypes), place, library)

    def written(seat: int) -> None:
        own, stream = source.places[seat], stream_at(source.places[seat], library)
        shards = [x.shards[seat] for x in source.arrays]
        x, out = (
            source.packed([as_at(part, own, library) for part in parts])
            for parts in (shards, [x[seats.index(seat)] for x in whole])
        )
        with at_home(own, shards, library):
            ga.reduce(x, None, op, axis=axes, dtype=acc, out=out, stream=stream)

    with reading(others, whole, library):
        on_each(source.places, seats, written)
    return whole


def aggregates(
    source: Argument, seats: list[int], op: Any, axes: tuple[int, ...], dtypes: Dtypes
) -> list[Any]:
    """Return what shards come to along axes."""
    acc = source.packed(dtypes)
    return on_each(
        source.places, seats,
        lambda seat: ga.reduce(source.on(seat), None, op, axis=axes, dtype=acc),
    )  # fmt: skip


def _apart(
    source: Argument, init: Any, op: Any, axes: tuple[int, ...], keepdims: bool, dtype: Any
) -> Any:
    """Return reductions along axes that no device has a part of alone."""
    if starts.are_arrays(init, _WHERE, one_is_value=False):
        refuse(_WHERE, "init is an array, and the result would be sharded", "pass one value")
    options = {"axis": axes, "keepdims": keepdims, "dtype": dtype}
    found = on_each(
        source.places, source.seats, lambda seat: ga.reduce(source.on(seat), init, op, **options)
    )
    own = source.first.axis
    return built(found, source.places, own if keepdims else own - sum(a < own for a in axes))


def _whole(source: Argument, full: list[int]) -> Any:
    """Return all elements, of which one shard at most has any, on the first device."""
    place, library = source.places[0], source.first.library
    seat = full[0] if full else 0
    return source.packed([place.moved(x.shards[seat], library) for x in source.arrays])


def at_place(init: Any, place: Any, source: Argument) -> Any:
    """Return init with its arrays at a place."""
    if isinstance(init, tuple):
        items = [at_place(item, place, source) for item in init]
        return getattr(type(init), "_make", tuple)(items)
    if hasattr(init, "__cuda_array_interface__") or type(init).__module__.startswith("torch"):
        return place.moved(init, source.first.library)
    return init


def commutes(op: Any) -> bool:
    """Return whether elements may be combined in any order."""
    return as_operator(op, _WHERE, 2).commutative


def kept_axes(found: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return results with the axes that were reduced, of extent one."""
    if isinstance(found, tuple):
        items = [kept_axes(item, axes, shape) for item in found]
        return getattr(type(found), "_make", tuple)(items)
    return found.reshape(tuple(1 if a in axes else n for a, n in enumerate(shape)))
