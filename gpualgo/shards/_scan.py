"""Scans: each shard's aggregate, their prefixes on the first device, each shard from its own."""

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
    leaves_of,
    on_each,
    refuse,
    refuse_sharded,
    taken,
    together,
)
from gpualgo.shards._devices import moved_all
from gpualgo.shards._reduce import at_place


def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine each element with all before it: ``y[i] = init op x[0] op x[1] op … op x[i]``.

    Parameters are those of `gpualgo.inclusive_scan`, with sharded arrays for arrays; the result is
    cut as x is. An `init` with a start for each line lies on the first device.

    Notes
    -----
    Along the axis that is cut each device but the last reads its shard twice, others once, and
    writes it once. One number from each, or a row, goes to the first device; their prefixes come
    back, and are read where the scan runs. Nothing waits.
    """
    return _scan(ga.inclusive_scan, x, init, op, axis, reverse, dtype)


def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Combine all elements before each: ``y[0] = init``, ``y[i] = init op x[0] op … op x[i-1]``.

    As `inclusive_scan`; without `init` it starts from op's identity, as `gpualgo.exclusive_scan`
    does.
    """
    return _scan(ga.exclusive_scan, x, init, op, axis, reverse, dtype)


def _scan(call: Any, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any) -> Any:
    where = call.__name__
    source = taken(x, where)
    refuse_sharded(init, where, "init")
    reverse = checks.flag(reverse, "reverse", where)
    line = checks.axis_of(checks.plain_axis(axis, where), source.first.ndim, where)
    if line is None:
        source, line = source.flat(where), 0
    first, places, full = source.first, source.places, source.full
    order = full[::-1] if reverse else full
    options = {"axis": line, "reverse": reverse, "dtype": dtype}
    begins: dict[int, Any] = {}
    if line != first.axis:
        if starts.are_arrays(init, where, one_is_value=True):
            refuse(where, "init is an array, and lines lie on several devices", "pass one value")
    elif first.size and len(order) > 1:
        place = places[order[0]]
        begin = at_place(init, place, source)
        dtypes, _ = asked(call, place, source.on(order[0]), begin, op, **options)
        if init is None and call is ga.exclusive_scan:
            init = as_operator(op, where, 2).identity_for(dtypes[0])
        begins = _prefixes(source, order, init, op, line, reverse, dtypes)
        options["dtype"] = source.packed(dtypes)
    found = on_each(
        places, source.seats,
        lambda seat: _from(call, source, seat, begins.get(seat), init, op, options),
    )  # fmt: skip
    return built(found, places, first.axis)


def _prefixes(
    source: Argument, order: list[int], init: Any, op: Any, line: int, reverse: bool, dtypes: Dtypes
) -> dict[int, list[Any]]:
    """Return what comes before each shard but the first, an array for each number."""
    place, acc = source.places[0], source.packed(dtypes)
    parts = on_each(
        source.places, order[:-1],
        lambda seat: ga.reduce(_along(source, seat, line, reverse), None, op, axis=line, dtype=acc),
    )  # fmt: skip
    with place.running():
        x = source.packed(together(parts, place, source.first.library))
        begin = at_place(init, place, source)
        found, _ = leaves_of(ga.inclusive_scan(x, begin, op, axis=0, dtype=acc))
    moves = [(source.places[seat], x[i : i + 1]) for i, seat in enumerate(order[1:]) for x in found]
    moved = iter(moved_all(moves, source.first.library, are_ours=True))
    return {seat: [next(moved) for _ in found] for seat in order[1:]}


def _along(source: Argument, seat: int, line: int, reverse: bool) -> Any:
    """Return a shard in the order in which it is gone through."""
    if not reverse:
        return source.on(seat)
    back = (*(slice(None),) * line, slice(None, None, -1))
    parts = [x.shards[seat] for x in source.arrays]
    if source.first.library.name == "torch":  # whose tensors have no negative strides
        parts = [ga.lazy.asarray(part) for part in parts]
    return source.packed([part[back] for part in parts])


def _from(
    call: Any, source: Argument, seat: int, begin: list[Any] | None, init: Any, op: Any,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the scan of a shard, from what comes before it."""
    place, x = source.places[seat], source.on(seat)
    if begin is None:
        return call(x, at_place(init, place, source), op, **options)
    if source.first.ndim > 1:
        rows = source.packed([part.reshape(tuple(part.shape[1:])) for part in begin])
        return call(x, rows, op, **options)
    if source.is_on_host:
        return call(x, source.packed([part[0] for part in begin]), op, **options)
    if source.form is None:
        return call(x, begin[0], op, **options)
    # Numbers of a tuple that lie on a GPU stand for a row each: so here for one row.
    wide = source.packed([shard.shards[seat].reshape((1, -1)) for shard in source.arrays])
    found, form = leaves_of(call(wide, source.packed(begin), op, **{**options, "axis": 1}))
    assert form is not None
    return form.packed([part.reshape(-1) for part in found])
