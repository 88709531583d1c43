"""Argsort of sharded keys: a sort by key whose values are the global indices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.shards._arguments import Argument, build_result, infer_result, on_each
from gpualgo.shards._devices import Device
from gpualgo.shards._shards import ShardedArray
from gpualgo.shards._sort import Order, line_of, long_row, one_row

SMALL = np.dtype(np.uint32)  # dtype of indices while they fit


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the indices p that sort sharded keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters and result are those of `gpualgo.argsort`, with sharded arrays for arrays; along the
    sharded axis the result holds indices into the whole array. Cost and memory are those of
    `radix_sort` with indices as values.
    """
    func_name, order = "argsort", Order(descending, (0, None))
    key_arg, sort_axis = line_of(keys, func_name, "keys", axis)
    first = key_arg.first
    options = {"descending": descending, "axis": sort_axis, "dtype": dtype}
    (dtype_,), _ = infer_result(ga.argsort, key_arg.places[0], key_arg.on(0), **options)
    length = first.shape[sort_axis]
    if length > int(np.iinfo(dtype_).max) + 1:
        raise ValueError(
            f"argsort: dtype {dtype_} is too narrow for indices below {length}; pass a wider dtype="
        )
    if sort_axis != first.axis:
        rows = on_each(
            first.places, key_arg.seats,
            lambda i: ga.argsort(key_arg.on(i), **options),
        )  # fmt: skip
        return build_result(rows, first.places, first.axis)
    one_row(key_arg, sort_axis, func_name)
    starts, library = first.starts, first.library
    # 32-bit indices halve the bytes sent between devices.
    index_dtype = SMALL if length <= int(np.iinfo(SMALL).max) + 1 else np.dtype(np.int64)
    index_dtype = dtype_ if dtype_.itemsize == index_dtype.itemsize else index_dtype
    index_shards = on_each(
        first.places, key_arg.seats,
        lambda i: _global_indices(
            first.places[i], starts[i], first.lengths[i], index_dtype, library
        ),
    )  # fmt: skip
    index_arg = Argument((ShardedArray(index_shards, first.places, 0),), None, "values")
    pieces = [values for _, values in long_row(key_arg, index_arg, order, dtype_)]
    if any(part.dtype != dtype_ for (part,) in pieces):
        pieces = on_each(
            first.places, key_arg.seats,
            lambda i: [ga.copy(_cast(tuple(pieces[i]), func_name, dtype_))],
        )  # fmt: skip
    return build_result([indices for (indices,) in pieces], first.places, 0)


def _lazy_cast(indices: Any, dtype: np.dtype[Any]) -> Any:
    return ga.lazy.transform(lambda place: place, indices, dtype=dtype)


_cast = ExpressionCache(_lazy_cast)


@functools.lru_cache(64)
def _range(begin: int, length: int, dtype: Any, device: Any) -> Any:
    """Return a lazy range, which takes no memory; cached, so that equal ranges are one object."""
    return ga.lazy.arange(begin, begin + length, dtype=dtype, device=device)


def _global_indices(device: Device, begin: int, length: int, dtype: Any, library: Any) -> Any:
    """Return the global indices of a shard's elements."""
    if device.number == CPU:
        return np.arange(begin, begin + length, dtype=dtype)
    target = device.empty((length,), dtype, library)
    if length:
        numbers = _range(begin, length, dtype, device.name)
        view = view_of(target, "places")
        stream = int(view.library.stream(view.device))
        wrapped = DeviceArray(
            view.ptr, view.shape, view.strides, view.dtype, view.device, stream, False, target
        )  # no input belongs to the target's library
        ga.copy(numbers, out=wrapped, stream=stream)
    return target
