"""`reduce`: reduces each shard, then the results in order on the first device."""

from __future__ import annotations

import operator
from typing import Any

import gpualgo as ga
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, per_row_init
from gpualgo.shards._arguments import (
    Argument,
    Dtypes,
    build_result,
    infer_result,
    on_each,
    parse_argument,
    refuse,
    refuse_sharded,
    stack_results,
)
from gpualgo.shards._devices import Device
from gpualgo.shards._moving import can_read, local_stream, peer_view, reading, stream_at

_NAME = "reduce"


def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of a sharded array combined: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters are those of `gpualgo.reduce`, with sharded arrays for arrays. If the sharded axis is
    reduced, the result is an array on the first device, where an `init` of several numbers must be,
    too; otherwise the result is sharded like x.

    Notes
    -----
    Each device reads its shard once; its result, one number or row, is copied to the first device,
    where results are combined in the order of the shards. If `op` does not commute and axes before
    the sharded axis are reduced too, more rows are copied. The host does not wait.
    """
    x_arg = parse_argument(x, _NAME)
    first = x_arg.first
    refuse_sharded(init, _NAME, "init")
    keepdims = checks.flag_argument(keepdims, "keepdims", _NAME)
    axes = checks.axes_of(checks.plain_axes(axis, _NAME), first.ndim, _NAME)
    if first.axis not in axes:
        return _reduce_unsharded(x_arg, init, op, axes, keepdims, dtype)
    device, full = x_arg.places[0], x_arg.full
    if len(full) <= 1 or first.size == 0:
        (stacks,) = on_each(
            x_arg.places[:1], [0],
            lambda _: ga.reduce(_only_shard(x_arg, full), init, op, axis=axes, keepdims=keepdims,
                                dtype=dtype),
        )  # fmt: skip
        return stacks
    first_full = x_arg.places[full[0]]
    dtypes, _ = infer_result(
        ga.reduce, first_full, x_arg.on(full[0]), at_place(init, first_full, x_arg), op, axis=axes,
        keepdims=keepdims, dtype=dtype,
    )  # fmt: skip
    acc = x_arg.packed(dtypes)
    late_axes = () if commutes(op) else tuple(a for a in axes if a < first.axis)
    early_axes = tuple(a for a in axes if a not in late_axes)
    stacks = aggregates_at(device, x_arg, full, op, early_axes, dtypes)
    remaining = tuple(a - sum(b < a for b in early_axes) for a in late_axes)
    with device.running():
        x = x_arg.packed(stacks)
        result = ga.reduce(x, None if remaining else init, op, axis=0, dtype=acc)
        if remaining:
            result = ga.reduce(result, init, op, axis=remaining, dtype=acc)
    return kept_axes(result, axes, first.shape) if keepdims else result


def aggregates_at(
    place: Device, source: Argument, seats: list[int], op: Any, axes: tuple[int, ...],
    dtypes: Dtypes,
) -> list[Any]:  # fmt: skip
    """Return the reductions of shards along axes, stacked on a device.

    Devices with peer access write their results there; otherwise results are copied.
    """
    first, library, acc = source.first, source.first.library, source.packed(dtypes)
    devices_ = [source.places[i] for i in seats]
    shape = (len(seats), *(n for a, n in enumerate(first.shape) if a not in axes))
    stacks = [place.empty(shape, dtype, library) for dtype in dtypes]
    if not can_read(devices_, stacks):
        return stack_results(aggregates(source, seats, op, axes, dtypes), place, library)

    def reduce_into(i: int) -> None:
        device, stream = source.places[i], stream_at(source.places[i], library)
        shards = [x.shards[i] for x in source.arrays]
        x, out = (
            source.packed([peer_view(part, device, library) for part in parts])
            for parts in (shards, [x[seats.index(i)] for x in stacks])
        )
        with local_stream(device, shards, library):
            ga.reduce(x, None, op, axis=axes, dtype=acc, out=out, stream=stream)

    with reading(devices_, stacks, library):
        on_each(source.places, seats, reduce_into)
    return stacks


def aggregates(
    source: Argument, seats: list[int], op: Any, axes: tuple[int, ...], dtypes: Dtypes
) -> list[Any]:
    acc = source.packed(dtypes)
    return on_each(
        source.places, seats,
        lambda i: ga.reduce(source.on(i), None, op, axis=axes, dtype=acc),
    )  # fmt: skip


def _reduce_unsharded(
    x_arg: Argument, init: Any, op: Any, axes: tuple[int, ...], keepdims: bool, dtype: Any
) -> Any:
    """Reduce along axes that are not sharded."""
    if per_row_init.are_arrays(init, _NAME, one_is_value=False):
        refuse(_NAME, "init is an array, and the result would be sharded", "pass one value")
    options = {"axis": axes, "keepdims": keepdims, "dtype": dtype}
    results = on_each(
        x_arg.places, x_arg.seats, lambda i: ga.reduce(x_arg.on(i), init, op, **options)
    )
    shard_axis = x_arg.first.axis
    return build_result(
        results,
        x_arg.places,
        shard_axis if keepdims else shard_axis - sum(a < shard_axis for a in axes),
    )


def _only_shard(x_arg: Argument, full: list[int]) -> Any:
    """Return the only shard that has elements, on the first device."""
    device, library = x_arg.places[0], x_arg.first.library
    i = full[0] if full else 0
    return x_arg.packed([device.moved(x.shards[i], library) for x in x_arg.arrays])


def at_place(init: Any, place: Any, source: Argument) -> Any:
    """Return init with its arrays moved to a device."""
    if isinstance(init, tuple):
        items = [at_place(item, place, source) for item in init]
        return getattr(type(init), "_make", tuple)(items)
    if hasattr(init, "__cuda_array_interface__") or type(init).__module__.startswith("torch"):
        return place.moved(init, source.first.library)
    return init


def commutes(op: Any) -> bool:
    return as_operator(op, _NAME, 2).commutative


def kept_axes(found: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Insert the reduced axes, with extent 1."""
    if isinstance(found, tuple):
        items = [kept_axes(item, axes, shape) for item in found]
        return getattr(type(found), "_make", tuple)(items)
    return found.reshape(tuple(1 if a in axes else n for a, n in enumerate(shape)))
