"""`count`, `find`, extremes and `top_k`: per shard, then combined on the first device."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._operators.operator import is_function
from gpualgo._pipeline import checks
from gpualgo.shards._arguments import Argument, infer_result, parse_argument, stack_results, stacked
from gpualgo.shards._devices import one_after_another
from gpualgo.shards._folds import kept_axes

# --- `top_k`: the top k of each shard, then the top k of those on the first device.

_NAME = "top_k"


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`. Along the sharded axis, for a single row,
    the result is on the first device; along other axes it is sharded like x.

    Notes
    -----
    Each device reads its shard once; its k elements are copied to the first device. The host does
    not wait.
    """
    x_arg, k_axis = parse_argument(x, _NAME).line(axis, _NAME)
    first, devices = x_arg.first, x_arg.places
    options: dict[str, Any] = {"axis": k_axis, "mode": mode}
    k = checks.integer(k, "k", _NAME)
    if k_axis != first.axis:
        results = x_arg.run(lambda i: ga.top_k(x_arg.on(i), k, **options))
        return x_arg.built(results, first.axis)
    length = first.shape[k_axis]
    infer_result(ga.top_k, devices[0], x_arg.on(0), max(0, min(k, first.lengths[0])), **options)
    if not 0 <= k <= length:
        raise ValueError(
            f"{_NAME}: k is {k}, and there are {length} elements to choose from; pass 0 to {length}"
        )
    x_arg.require_one_row(k_axis, _NAME)
    results = x_arg.run(lambda i: ga.top_k(x_arg.on(i), min(k, first.lengths[i]), **options))
    if len(devices) == 1:
        return results[0]
    starts, device, library = first.starts, devices[0], first.library
    indices = x_arg.run(lambda i: shifted(results[i][1], starts[i]))
    with device.running():
        values = one_after_another([part[0] for part in results], device, library)
        all_indices = one_after_another(indices, device, library)
        chosen = ga.top_k(values, k, mode=mode)
        return ga.TopK(chosen.values, taken_at(all_indices, chosen.indices))


def shifted(indices: Any, start: int) -> Any:
    """Convert indices into a shard to indices into the whole array."""
    if isinstance(indices, (np.ndarray, np.generic)):
        return np.asarray(indices) + start
    return ga.transform(_plus, indices, start) if start else indices


def _plus(a: Any, b: Any) -> Any:
    return a + b


def taken_at(x: Any, indices: Any) -> Any:
    """Return x[indices], on the device of x."""
    if isinstance(x, np.ndarray):
        return x[indices]
    return ga.copy(ga.lazy.take(x, indices))


def count(x: Any, predicate: Any, *, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the number of elements for which a predicate is true, as `gpualgo.count` does.

    Along the sharded axis the result is an array on the first device. The host does not wait.
    """
    x_arg, call = _parse("count", x, predicate)
    axes = checks.axes_of(checks.plain_axes(axis, "count"), x_arg.first.ndim, "count")
    keepdims = checks.flag_argument(keepdims, "keepdims", "count")
    parts = x_arg.run(lambda i: call(i, axis=axes, keepdims=keepdims))
    if x_arg.first.axis not in axes:
        return x_arg.reduced(parts, axes, keepdims)
    return _combined(x_arg, parts, operator.add)


def find(x: Any, predicate: Any, *, axis: Any = None) -> Any:
    """Return the index of the first element for which a predicate is true; -1 if there is none.

    As `gpualgo.find`. Along the sharded axis the result is an array on the first device. The host
    does not wait.
    """
    x_arg, call = _parse("find", x, predicate)
    x_arg, search_axis = x_arg.line(axis, "find")
    if axis is None:
        x_arg, call = _parse("find", *_flat_pair(x, predicate))
    parts = x_arg.run(lambda i: call(i, axis=search_axis))
    if search_axis != x_arg.first.axis:
        return x_arg.reduced(parts, [search_axis], False)
    if len(parts) == 1:
        return parts[0]
    starts = x_arg.first.starts
    parts = x_arg.run(lambda i: _global_index(parts[i], starts[i]))
    return _combined(x_arg, parts, _first_found)


def _global_index(index: Any, start: int) -> Any:
    if isinstance(index, (np.ndarray, np.generic)):
        host_index = np.asarray(index)
        return np.where(host_index >= 0, host_index + start, host_index)
    return ga.transform(_from_start, index, start) if start else index


def _from_start(a: Any, b: Any) -> Any:
    return a + b if a >= 0 else a


def _first_found(a: Any, b: Any) -> Any:
    return a if a >= 0 else b


def _flat_pair(x: Any, predicate: Any) -> tuple[Any, Any]:
    """Return x and the predicate flattened."""
    x_arg = parse_argument(x, "find").flat("find")
    if not is_function(predicate, "find"):
        predicate = parse_argument(predicate, "find", "predicate").flat("find").first
    return x_arg.packed(x_arg.arrays), predicate


def _parse(func_name: str, x: Any, predicate: Any) -> tuple[Argument, Any]:
    """Return the parsed argument, and a function that makes the call on a shard."""
    x_arg, function = parse_argument(x, func_name), getattr(ga, func_name)
    if is_function(predicate, func_name):
        return x_arg, lambda i, **options: function(x_arg.on(i), predicate, **options)
    mask = parse_argument(predicate, func_name, "predicate", x_arg.first)
    return x_arg, lambda i, **options: function(x_arg.on(i), mask.on(i), **options)


def _combined(source: Argument, parts: list[Any], op: Any) -> Any:
    """Combine results of shards in order, on the first device."""
    if len(parts) == 1:
        return parts[0]
    device = source.places[0]
    with device.running():
        return ga.reduce(stacked(parts, device, source.first.library), None, op, axis=0)


def minmax(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the smallest and the largest element, as `gpualgo.minmax` does.

    Along the sharded axis the result is an array on the first device. The host does not wait.
    """
    func_name = "minmax"
    x_arg = parse_argument(x, func_name)
    axes = checks.axes_of(checks.plain_axes(axis, func_name), x_arg.first.ndim, func_name)
    keepdims = checks.flag_argument(keepdims, "keepdims", func_name)
    if x_arg.first.axis not in axes:
        parts = x_arg.run(lambda i: ga.minmax(x_arg.on(i), axes, keepdims=keepdims))
        return x_arg.reduced(parts, axes, keepdims)
    parts = x_arg.run(lambda i: ga.minmax(x_arg.on(i), axes), x_arg.full or [0])
    device = x_arg.places[0]
    with device.running():
        low, high = stack_results(parts, device, x_arg.first.library)
        result = ga.MinMax(ga.minmax(low, 0).min, ga.minmax(high, 0).max)
    return kept_axes(result, axes, x_arg.first.shape) if keepdims else result


def argmin(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """Return the index of the smallest element: its first occurrence, or the first NaN.

    As `gpualgo.argmin`; along the sharded axis, for a single row, the result is an array on the
    first device. The host does not wait.
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
    source, search_axis = x_arg.line(axis, func_name)
    keepdims = checks.flag_argument(keepdims, "keepdims", func_name)
    first = source.first
    if search_axis != first.axis:
        parts = source.run(lambda i: function(source.on(i), search_axis, keepdims=keepdims))
        return source.reduced(parts, [search_axis], keepdims)
    seats, starts, device = source.full or [0], first.starts, source.places[0]
    if first.ndim > 1:
        i = seats[0]
        infer_result(function, source.places[i], source.on(i), search_axis, keepdims=keepdims)
        source.require_one_row(search_axis, func_name)
    parts = source.run(lambda i: _extreme_of(function, source, i), seats)
    indices = source.run(lambda i: shifted(parts[seats.index(i)][1], starts[i]), seats)
    with device.running():
        values = stacked([part[0] for part in parts], device, first.library)
        chosen = function(values.reshape(-1))
        index = taken_at(stacked(indices, device, first.library).reshape(-1), chosen)
    return index.reshape((1,) * x_arg.first.ndim) if keepdims else index


def _extreme_of(function: Any, source: Argument, i: int) -> tuple[Any, Any]:
    """Return a shard's extreme element and its index."""
    x = source.on(i)
    index = function(x)
    return taken_at(x, index), index
