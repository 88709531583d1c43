"""`reduce`, scans and `histogram`: a result of each shard, combined on the first device."""

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
from gpualgo._distributed import unknown_ranges, with_ranges
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import are_arrays
from gpualgo.shards import _devices
from gpualgo.shards._arguments import (
    Argument,
    Dtypes,
    fields_of,
    infer_result,
    parse_argument,
    refuse,
    refuse_sharded,
    stack_results,
    stacked,
)
from gpualgo.shards._devices import (
    Device,
    all_on_host,
    can_read,
    local_stream,
    on_host,
    peer_view,
    reading,
    to_devices,
)

# --- `histogram`: counts each shard and adds the counts on the first device.

_HISTOGRAM = "histogram"


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
    x_arg = parse_argument(x, _HISTOGRAM)
    first, places = x_arg.first, x_arg.places
    is_number = weights is None or is_scalar(weights)
    w_arg = weights if is_number else parse_argument(weights, _HISTOGRAM, "weights", first)
    axes = checks.axes_of(checks.plain_axes(axis, _HISTOGRAM), first.ndim, _HISTOGRAM)
    bins = _edges(bins)
    ranges, unknown = unknown_ranges(bins, range, len(x_arg.arrays), x_arg.form is not None)
    names = ["x"] if x_arg.form is None else [f"x[{name}]" for name in x_arg.form.names]
    known = {dim: _data_range(x_arg, dim, names[dim]) for dim in unknown}
    ranges = with_ranges(ranges, known, x_arg.form is not None)

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
        ga.copy(
            _summed(views, _HISTOGRAM, dtype), out=peer_view(target, device, library), stream=stream
        )
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


def _data_range(x_arg: Argument, dim: int, name: str) -> tuple[Any, Any]:
    """Return the minimum and maximum of a dimension; waits for them."""
    x = x_arg.arrays[dim]
    full = [i for i, shard in enumerate(x.shards) if 0 not in tuple(shard.shape)]
    if not full:
        return 0, 1
    extremes = x_arg.run(lambda i: ga.minmax(x.shards[i]), full)
    values = all_on_host([value for pair in extremes for value in pair])
    low, high = (np.stack(values[side::2]) for side in (0, 1))
    return arguments.finite_ends(low.min(), high.max(), name)  # NaN propagates


# --- `reduce`: reduces each shard, then the results in order on the first device.

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
    options = {"axis": axes, "keepdims": keepdims, "dtype": dtype}
    if first.axis not in axes:
        if are_arrays(init, _NAME, one_is_value=False):
            refuse(_NAME, "init is an array, and the result would be sharded", "pass one value")
        results = x_arg.run(lambda i: ga.reduce(x_arg.on(i), init, op, **options))
        return x_arg.reduced(results, axes, keepdims)
    device, full = x_arg.places[0], x_arg.full
    if len(full) <= 1 or first.size == 0:
        return x_arg.run(lambda _: ga.reduce(_only_shard(x_arg, full), init, op, **options), [0])[0]
    first_full = x_arg.places[full[0]]
    local_init = at_place(init, first_full, x_arg)
    dtypes, _ = infer_result(ga.reduce, first_full, x_arg.on(full[0]), local_init, op, **options)
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
        parts = source.run(lambda i: ga.reduce(source.on(i), None, op, axis=axes, dtype=acc), seats)
        return stack_results(parts, place, library)

    def reduce_into(i: int) -> None:
        device, stream = source.places[i], _devices.stream_at(source.places[i], library)
        shards = [x.shards[i] for x in source.arrays]
        x, out = (
            source.packed([peer_view(part, device, library) for part in parts])
            for parts in (shards, [x[seats.index(i)] for x in stacks])
        )
        with local_stream(device, shards, library):
            ga.reduce(x, None, op, axis=axes, dtype=acc, out=out, stream=stream)

    with reading(devices_, stacks, library):
        source.run(reduce_into, seats)
    return stacks


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


# --- Scans: an aggregate of each shard, prefixes on the first device, a scan of each shard.


def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return each element combined with all before it: ``y[i] = init op x[0] op … op x[i]``.

    Parameters are those of `gpualgo.inclusive_scan`, with sharded arrays for arrays; the result is
    sharded like x. An `init` with a value for each row must be on the first device.

    Notes
    -----
    Along the sharded axis each device but the last reads its shard twice, along other axes once,
    and writes it once. The aggregate of each shard, one number or row, is copied to the first
    device, and its prefix is copied back. The host does not wait.
    """
    return _scan(ga.inclusive_scan, x, init, op, axis, reverse, dtype)


def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return all before each element, combined: ``y[0] = init``, ``y[i] = init op … op x[i-1]``.

    As `inclusive_scan`; the default of `init` is the operator's identity, as for
    `gpualgo.exclusive_scan`.
    """
    return _scan(ga.exclusive_scan, x, init, op, axis, reverse, dtype)


def _scan(call: Any, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any) -> Any:
    func_name = call.__name__
    x_arg = parse_argument(x, func_name)
    refuse_sharded(init, func_name, "init")
    reverse = checks.flag_argument(reverse, "reverse", func_name)
    x_arg, scan_axis = x_arg.line(axis, func_name)
    first, devices, full = x_arg.first, x_arg.places, x_arg.full
    order = full[::-1] if reverse else full
    options = {"axis": scan_axis, "reverse": reverse, "dtype": dtype}
    prefixes: dict[int, Any] = {}
    if scan_axis != first.axis:
        if are_arrays(init, func_name, one_is_value=True):
            refuse(func_name, "init is an array, and rows are on several devices", "pass one value")
    elif first.size and len(order) > 1:
        device = devices[order[0]]
        local_init = at_place(init, device, x_arg)
        dtypes, _ = infer_result(call, device, x_arg.on(order[0]), local_init, op, **options)
        if init is None and call is ga.exclusive_scan:
            init = as_operator(op, func_name, 2).identity_for(dtypes[0])
        prefixes = _prefixes(x_arg, order, init, op, scan_axis, reverse, dtypes)
        options["dtype"] = x_arg.packed(dtypes)
    results = x_arg.run(lambda i: _scan_shard(call, x_arg, i, prefixes.get(i), init, op, options))
    return x_arg.built(results, first.axis)


def _prefixes(
    x_arg: Argument, order: list[int], init: Any, op: Any, axis: int, reverse: bool, dtypes: Dtypes
) -> dict[int, list[Any]]:
    """Return the prefix of each shard but the first, an array for each field."""
    device, acc = x_arg.places[0], x_arg.packed(dtypes)
    options = {"axis": axis, "dtype": acc}
    parts = x_arg.run(
        lambda i: ga.reduce(_scan_order(x_arg, i, axis, reverse), None, op, **options), order[:-1]
    )
    with device.running():
        x = x_arg.packed(stack_results(parts, device, x_arg.first.library))
        local_init = at_place(init, device, x_arg)
        parts_, _ = fields_of(ga.inclusive_scan(x, local_init, op, axis=0, dtype=acc))
    moves = [(x_arg.places[i], x[row : row + 1]) for row, i in enumerate(order[1:]) for x in parts_]
    moved = iter(to_devices(moves, x_arg.first.library, are_ours=True))
    return {i: [next(moved) for _ in parts_] for i in order[1:]}


def _scan_order(x_arg: Argument, i: int, axis: int, reverse: bool) -> Any:
    """Return a shard in scan order."""
    if not reverse:
        return x_arg.on(i)
    backwards = (*(slice(None),) * axis, slice(None, None, -1))
    parts = [x.shards[i] for x in x_arg.arrays]
    if x_arg.first.library.name == "torch":  # torch has no negative strides
        parts = [ga.lazy.asarray(part) for part in parts]
    return x_arg.packed([part[backwards] for part in parts])


def _scan_shard(
    call: Any, x_arg: Argument, i: int, prefix: list[Any] | None, init: Any, op: Any,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """Scan a shard, starting from its prefix."""
    device, x = x_arg.places[i], x_arg.on(i)
    if prefix is None:
        return call(x, at_place(init, device, x_arg), op, **options)
    if x_arg.first.ndim > 1:
        rows = x_arg.packed([part.reshape(tuple(part.shape[1:])) for part in prefix])
        return call(x, rows, op, **options)
    if x_arg.is_on_host:
        return call(x, x_arg.packed([part[0] for part in prefix]), op, **options)
    if x_arg.form is None:
        return call(x, prefix[0], op, **options)
    # A tuple init of GPU arrays has one value per row, so scan one row of a 2-D array.
    row = x_arg.packed([shard.shards[i].reshape((1, -1)) for shard in x_arg.arrays])
    results, form = fields_of(call(row, x_arg.packed(prefix), op, **{**options, "axis": 1}))
    assert form is not None
    return form.packed([part.reshape(-1) for part in results])
