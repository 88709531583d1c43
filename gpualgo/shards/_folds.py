"""Reductions, scans, searches and tables: a result of each shard, combined on the first device."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.segments import problem as of_segments
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._arrays.view import view_of
from gpualgo._base.records import MAX_FIELDS
from gpualgo._distributed import fields_of, map_fields, scan_from, unknown_ranges, with_ranges
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import are_arrays
from gpualgo.shards import _arguments, _devices
from gpualgo.shards._arguments import Argument, Dtypes, infer_result, parse_argument, refuse
from gpualgo.shards._devices import Device
from gpualgo.shards._shards import ShardedArray

# --- `histogram`: counts each shard and adds the counts on the first device.


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
    where = "histogram"
    x_arg = parse_argument(x, where)
    first, places = x_arg.first, x_arg.places
    is_number = weights is None or is_scalar(weights)
    w_arg = weights if is_number else parse_argument(weights, where, "weights", first)
    axes = x_arg.axes(axis)
    bins = _edges(bins)
    ranges, unknown = unknown_ranges(bins, range, len(x_arg.arrays), x_arg.form is not None)
    names = ["x"] if x_arg.form is None else [f"x[{name}]" for name in x_arg.form.names]
    known = {dim: _data_range(x_arg.arrays[dim], names[dim]) if first.size else (0, 1)
             for dim in unknown}  # fmt: skip
    ranges = with_ranges(ranges, known, x_arg.form is not None)

    def options(i: int) -> dict[str, Any]:
        w = w_arg.on(i) if isinstance(w_arg, Argument) else w_arg
        return {"weights": w, "axis": axes, "dtype": dtype}

    acc_dtype, *_ = infer_result(ga.histogram, places[0], x_arg.on(0), bins, ranges, **options(0))
    if weights is None:
        arguments.counter_dtype(acc_dtype, math.prod(first.shape[a] for a in axes))
    parts = x_arg.run(lambda i: ga.histogram(x_arg.on(i), bins, ranges, **options(i)))
    if first.axis not in axes:
        return x_arg.reduced(parts, axes, False)
    if 1 < len(parts) <= MAX_FIELDS and _devices.can_read(places[:1], parts):
        return _sum_by_peer_reads(parts, places[0], first.library, acc_dtype)
    return together(x_arg, parts, lambda x: ga.reduce(x, None, axis=0, dtype=acc_dtype))


def _sum_by_peer_reads(parts: list[Any], device: Device, library: Any, dtype: Any) -> Any:
    """Add counters in one kernel on a device, which reads them from the memory of the others."""
    stream = _devices.stream_at(device, library)
    with _devices.reading([device], parts, library), device.running():
        target = device.empty(view_of(parts[0], "counters").shape, dtype, library)
        views = tuple(_devices.peer_view(part, device, library) for part in parts)
        out = _devices.peer_view(target, device, library)
        ga.copy(_summed(views, "histogram", dtype), out=out, stream=stream)
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
    return _devices.on_host(bins) if hasattr(bins, "__cuda_array_interface__") else bins


def _data_range(x: ShardedArray, name: str) -> tuple[Any, Any]:
    """Return the minimum and maximum of a dimension; waits for them."""
    low, high = _devices.all_on_host(minmax(x))
    return arguments.finite_ends(low[()], high[()], name)


# --- `reduce`: reduces each shard, then the results in order on the first device.


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
    where = "reduce"
    x_arg = parse_argument(x, where)
    first = x_arg.first
    _arguments.refuse_sharded(init, where, "init")
    keepdims = checks.flag_argument(keepdims, "keepdims", where)
    axes = x_arg.axes(axis)
    options = {"axis": axes, "keepdims": keepdims, "dtype": dtype}
    if first.axis not in axes:
        if are_arrays(init, where, one_is_value=False):
            refuse(where, "init is an array, and the result would be sharded", "pass one value")
        results = x_arg.run(lambda i: ga.reduce(x_arg.on(i), init, op, **options))
        return x_arg.reduced(results, axes, keepdims)
    device, full = x_arg.places[0], x_arg.full
    if len(full) <= 1 or first.size == 0:
        return x_arg.run(lambda _: ga.reduce(_only_shard(x_arg, full), init, op, **options), [0])[0]
    i = full[0]
    given = x_arg.on(i), x_arg.moved(init, i), op
    dtypes = infer_result(ga.reduce, x_arg.places[i], *given, **options)
    acc = x_arg.packed(dtypes)
    late_axes = (
        () if as_operator(op, where, 2).commutative else tuple(a for a in axes if a < first.axis)
    )
    early_axes = tuple(a for a in axes if a not in late_axes)
    stacks = _aggregates(x_arg, full, op, early_axes, dtypes)
    remaining = tuple(a - sum(b < a for b in early_axes) for a in late_axes)
    with device.running():
        x = x_arg.packed(stacks)
        result = ga.reduce(x, None if remaining else init, op, axis=0, dtype=acc)
        if remaining:
            result = ga.reduce(result, init, op, axis=remaining, dtype=acc)
    kept = tuple(1 if a in axes else n for a, n in enumerate(first.shape))
    return map_fields(lambda x: x.reshape(kept), result) if keepdims else result


def _aggregates(
    source: Argument, seats: list[int], op: Any, axes: tuple[int, ...], dtypes: Dtypes
) -> list[Any]:
    """Return the reductions of shards along axes, stacked on the first device.

    Devices with peer access write their results there; otherwise results are copied.
    """
    first, library, acc = source.first, source.first.library, source.packed(dtypes)
    devices_ = [source.places[i] for i in seats]
    shape = (len(seats), *(n for a, n in enumerate(first.shape) if a not in axes))
    stacks = [source.places[0].empty(shape, dtype, library) for dtype in dtypes]
    if not _devices.can_read(devices_, stacks):
        parts = source.run(lambda i: ga.reduce(source.on(i), None, op, axis=axes, dtype=acc), seats)
        return source.stacked(parts)

    def reduce_into(i: int) -> None:
        device, stream = source.places[i], _devices.stream_at(source.places[i], library)
        shards = [x.shards[i] for x in source.arrays]
        x, out = (
            source.packed([_devices.peer_view(part, device, library) for part in parts])
            for parts in (shards, [x[seats.index(i)] for x in stacks])
        )
        with _devices.local_stream(device, shards, library):
            ga.reduce(x, None, op, axis=axes, dtype=acc, out=out, stream=stream)

    with _devices.reading(devices_, stacks, library):
        source.run(reduce_into, seats)
    return stacks


def _only_shard(x_arg: Argument, full: list[int]) -> Any:
    """Return the only shard that has elements, on the first device."""
    device, library = x_arg.places[0], x_arg.first.library
    i = full[0] if full else 0
    return x_arg.packed([device.moved(x.shards[i], library) for x in x_arg.arrays])


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
    _arguments.refuse_sharded(init, func_name, "init")
    reverse = checks.flag_argument(reverse, "reverse", func_name)
    x_arg, scan_axis = x_arg.line(axis)
    first, order = x_arg.first, x_arg.full[:: -1 if reverse else 1]
    options = {"axis": scan_axis, "reverse": reverse, "dtype": dtype}
    prefixes: dict[int, Any] = {}
    if scan_axis != first.axis:
        if are_arrays(init, func_name, one_is_value=True):
            refuse(func_name, "init is an array, and rows are on several devices", "pass one value")
    elif first.size and len(order) > 1:
        i = order[0]
        given = x_arg.on(i), x_arg.moved(init, i), op
        dtypes = infer_result(call, x_arg.places[i], *given, **options)
        if init is None and call is ga.exclusive_scan:
            init = as_operator(op, func_name, 2).identity_for(dtypes[0])
        prefixes = _prefixes(x_arg, order, init, op, scan_axis, reverse, dtypes)
        options["dtype"] = x_arg.packed(dtypes)

    def scanned(i: int) -> Any:
        if i not in prefixes:
            return call(x_arg.on(i), x_arg.moved(init, i), op, **options)
        parts = [x.shards[i] for x in x_arg.arrays]
        return scan_from(call, x_arg.form, parts, prefixes[i], op, **options)

    return x_arg.mapped(scanned)


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
        x, start = x_arg.packed(x_arg.stacked(parts)), x_arg.moved(init, 0)
        parts_, _ = fields_of(ga.inclusive_scan(x, start, op, axis=0, dtype=acc))
    moves = [(x_arg.places[i], x[row : row + 1]) for row, i in enumerate(order[1:]) for x in parts_]
    moved = iter(_devices.to_devices(moves, x_arg.first.library, are_ours=True))
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


# --- `count`, `find` and extremes: a result of each shard, combined on the first device.


def folded(
    x_arg: Argument, axes: Sequence[int], keepdims: bool, local: Callable[[int], Any],
    combine: Callable[..., Any], seats: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Return the results of a call on each shard, which reduces axes.

    If one of these is the sharded axis, results of some shards, or all, are combined: `combine`
    takes them stacked, an array for each field.
    """
    if x_arg.first.axis not in axes:
        return x_arg.reduced(x_arg.run(local), axes, keepdims)
    return together(x_arg, x_arg.run(local, seats), combine)


def together(x_arg: Argument, parts: Sequence[Any], combine: Callable[..., Any]) -> Any:
    """Return what `combine` makes of results of shards, stacked on the first device."""
    if len(x_arg.places) == 1:
        return parts[0]
    with x_arg.places[0].running():
        return combine(*x_arg.stacked(parts))


def count(x: Any, predicate: Any, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the number of elements for which a predicate is true, as `gpualgo.count` does.

    Along the sharded axis the result is an array on the first device.
    """
    x_arg, arguments_of = _arguments.parse_predicate("count", x, predicate)
    axes, keepdims = x_arg.axes(axis), checks.flag_argument(keepdims, "keepdims", "count")

    def local(i: int) -> Any:
        return ga.count(*arguments_of(i), axis=axes, keepdims=keepdims)

    return folded(x_arg, axes, keepdims, local, lambda x: ga.reduce(x, None, axis=0))


def find(x: Any, predicate: Any, *, axis: Any = None) -> Any:
    """Return the index of the first element for which a predicate is true; -1 if there is none.

    As `gpualgo.find`. Along the sharded axis the result is an array on the first device. The host
    does not wait.
    """
    x_arg, arguments_of = _arguments.parse_predicate("find", x, predicate, is_flat=axis is None)
    x_arg, search_axis = x_arg.line(axis)
    starts = x_arg.first.starts if search_axis == x_arg.first.axis else (0,) * len(x_arg.places)

    def local(i: int) -> Any:
        return _global_index(ga.find(*arguments_of(i), axis=search_axis), starts[i])

    return folded(x_arg, [search_axis], False, local, lambda x: ga.reduce(x, None, _first, axis=0))


def _global_index(index: Any, start: int) -> Any:
    """Convert indices into a shard, or -1, to indices into the whole array."""
    if not start:
        return index
    if isinstance(index, (np.ndarray, np.generic)):
        host: Any = np.asarray(index)
        return host + start * (host >= 0)
    return ga.transform(_from_start, index, start)


def _from_start(a: Any, b: Any) -> Any:
    return a + b if a >= 0 else a


def _first(a: Any, b: Any) -> Any:
    return a if a >= 0 else b


def minmax(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the smallest and the largest element, as `gpualgo.minmax` does.

    Along the sharded axis the result is an array on the first device.
    """
    x_arg = parse_argument(x, "minmax")
    axes, keepdims = x_arg.axes(axis), checks.flag_argument(keepdims, "keepdims", "minmax")

    def local(i: int) -> Any:
        return ga.minmax(x_arg.on(i), axes, keepdims=keepdims)

    def combine(low: Any, high: Any) -> Any:
        return ga.MinMax(ga.minmax(low, 0).min, ga.minmax(high, 0).max)

    return folded(x_arg, axes, keepdims, local, combine, x_arg.full or [0])


def argmin(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the index of the smallest element: its first occurrence, or the first NaN.

    As `gpualgo.argmin`; along the sharded axis, for a single row, the result is an array on the
    first device.
    """
    return _extreme(ga.argmin, x, axis, keepdims)


def argmax(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the index of the largest element: its first occurrence, or the first NaN.

    As `argmin`.
    """
    return _extreme(ga.argmax, x, axis, keepdims)


def _extreme(function: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    func_name = function.__name__
    x_arg = parse_argument(x, func_name)
    source, search_axis = x_arg.line(axis)
    keepdims = checks.flag_argument(keepdims, "keepdims", func_name)
    first, seats = source.first, source.full or [0]
    if search_axis == first.axis and first.ndim > 1:
        infer_result(function, source.places[seats[0]], source.on(seats[0]), search_axis)
        source.require_one_row(search_axis)
    is_whole = search_axis != first.axis or len(source.places) == 1

    def local(i: int) -> Any:
        if is_whole:
            return function(x_arg.on(i), axis, keepdims=keepdims)
        x = source.on(i)
        index = function(x)
        return taken_at(x, index), _global_index(index, first.starts[i])

    def combine(values: Any, indices: Any) -> Any:
        index = taken_at(indices, function(values))
        return index.reshape((1,) * x_arg.first.ndim) if keepdims else index

    return folded(source, [search_axis], keepdims, local, combine, seats)


# --- `top_k`: the top k of each shard, then the top k of those on the first device.


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`. Along the sharded axis, for a single row,
    the result is on the first device; along other axes it is sharded like x.

    Notes
    -----
    Each device reads its shard once; its k elements are copied to the first device. The host does
    not wait.
    """
    x_arg, k_axis = parse_argument(x, "top_k").line(axis)
    first, device = x_arg.first, x_arg.places[0]
    options: dict[str, Any] = {"axis": k_axis, "mode": mode}
    k = checks.integer(k, "k", "top_k")
    if k_axis != first.axis:
        return x_arg.mapped(lambda i: ga.top_k(x_arg.on(i), k, **options))
    length = first.shape[k_axis]
    infer_result(ga.top_k, device, x_arg.on(0), max(0, min(k, first.lengths[0])), **options)
    if not 0 <= k <= length:
        raise ValueError(
            f"top_k: k is {k}, and there are {length} elements to choose from; pass 0 to {length}"
        )
    x_arg.require_one_row(k_axis)

    def local(i: int) -> Any:
        values, indices = ga.top_k(x_arg.on(i), min(k, first.lengths[i]), **options)
        return values, _global_index(indices, first.starts[i])

    parts = x_arg.run(local)
    if len(parts) == 1:
        return ga.TopK(*parts[0])
    with device.running():
        values, indices = (_devices.one_after_another(fields, device, first.library)
                           for fields in zip(*parts, strict=True))  # fmt: skip
        chosen = ga.top_k(values, k, mode=mode)
        return ga.TopK(chosen.values, taken_at(indices, chosen.indices))


def taken_at(x: Any, indices: Any) -> Any:
    """Return x[indices], on the device of x."""
    if isinstance(x, np.ndarray):
        return x[indices]
    return ga.copy(ga.lazy.take(x, indices))


# --- Sums of groups: each shard has a table of all results, in which groups may have no element.


def reduce_by_index(
    indices: Any, x: Any, size: int, init: Any = None, op: Any = operator.add, *, dtype: Any = None
) -> Any:
    """Return the elements of each index combined: ``result[k] = init op x[i] op x[j] op …``.

    Parameters are those of `gpualgo.reduce_by_index`, with arrays that are sharded alike; arrays of
    several dimensions must be sharded along the first. `op` needs an identity, also with `init`. An
    `init` for each result must be on the first device, where the result is, too.

    Notes
    -----
    Each device reads its shard once; a table of all results is copied from each to the first
    device. The host does not wait, except for indices on the host.
    """
    where = "reduce_by_index"
    k_arg = parse_argument(indices, where, "indices")
    x_arg = parse_argument(x, where, "x", k_arg.first)
    k_arg, x_arg = k_arg.flat(), x_arg.flat()
    given = [(k_arg.on(i), x_arg.on(i), size) for i in x_arg.seats]
    return _combined(ga.reduce_by_index, x_arg, given.__getitem__, init, op, dtype)


def segmented_reduce(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None
) -> Any:
    """Return each segment's elements combined: ``init op x[offsets[s]] op … op x[offsets[s+1]-1]``.

    Parameters are those of `gpualgo.segmented_reduce`, with a sharded array `x`; `offsets` is an
    array on one device or the host. `op` needs an identity, also with `init`. An `init` for each
    segment must be on the first device, where the result is, too.

    Notes
    -----
    Each device reads the parts of segments that are in its shard; a table of all results is copied
    from each to the first device. The host waits for offsets that are on a device.
    """
    where = "segmented_reduce"
    x_arg = parse_argument(x, where)
    _arguments.refuse_sharded(offsets, where, "offsets")
    first = x_arg.first
    found = of_segments.view(offsets, where, None, (x_arg.on(0),))
    of_segments.check(found, where)
    of_segments.check_values(found, first.shape[0], where)
    bounds = np.clip(_devices.on_host(found.owner), 0, first.shape[0]).astype(np.int64)

    def given(i: int) -> tuple[Any, ...]:
        own = np.clip(bounds - first.starts[i], 0, first.lengths[i])
        return x_arg.on(i), x_arg.places[i].moved(own, first.library)

    return _combined(ga.segmented_reduce, x_arg, given, init, op, dtype)


def _combined(
    function: Any, x_arg: Argument, given: Callable[[int], tuple[Any, ...]], init: Any, op: Any,
    dtype: Any,
) -> Any:  # fmt: skip
    """Return the tables of shards combined in order; `given`: a shard's arguments before init."""
    _arguments.refuse_sharded(init, function.__name__, "init")
    device, own = x_arg.places[0], given(0)
    dtypes = infer_result(function, device, *own, init, op, dtype=dtype)
    if len(x_arg.places) == 1:
        return x_arg.run(lambda _: function(*own, init, op, dtype=dtype))[0]
    acc, operation = x_arg.packed(dtypes), as_operator(op, function.__name__, 2)
    if operation.identity is None and operation.identity_for(dtypes[0]) is None:
        refuse(
            function.__name__, "op has no identity, and a shard may have no element of a group",
            "pass gpualgo.Operator(op, identity=…)",
        )  # fmt: skip
    parts = x_arg.run(lambda i: function(*given(i), None, op, dtype=acc))
    with device.running():
        return ga.reduce(x_arg.packed(x_arg.stacked(parts)), init, op, axis=0, dtype=acc)


# --- `searchsorted`: an element's position is the sum of its positions in all shards.


def searchsorted(
    a: Any, v: Any, *, side: Any = "left", less: Any = None, descending: Any = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the indices r at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Parameters are those of `gpualgo.searchsorted`. One of `a` and `v` is sharded, the other one is
    on the first device, or on the host if the shards are. If `v` is sharded, so is the result;
    otherwise it is on the first device.

    Notes
    -----
    The array that is not sharded is copied to each device. If `a` is sharded, each device counts
    the elements of its shard that come before those of `v`, and the counts are added on the first
    device. The host does not wait.
    """
    where = "searchsorted"
    options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
    if not _arguments.is_sharded(a):
        v_arg = parse_argument(v, where, "v")

        def found(i: int) -> Any:
            return ga.searchsorted(v_arg.moved(a, i), v_arg.on(i), **options)

        return v_arg.mapped(found)
    if _arguments.is_sharded(v):
        refuse(where, "a and v are both sharded", "pass one of them as an array of one device")
    a_arg = parse_argument(a, where, "a")
    length = math.prod(a_arg.first.shape)
    (kind,) = infer_result(ga.searchsorted, a_arg.places[0], a_arg.on(0), v, **options)
    if length > np.iinfo(kind).max:
        raise ValueError(f"{where}: dtype {kind} does not hold indices up to {length}")

    def local(i: int) -> Any:
        return ga.searchsorted(a_arg.on(i), a_arg.moved(v, i), **options)

    return together(a_arg, a_arg.run(local), lambda x: ga.reduce(x, None, axis=0))
