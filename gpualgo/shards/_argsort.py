"""Orders of sharded keys: places are sorted along, those of each shard on its device."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._lazy.kept import Kept
from gpualgo.shards._arguments import Argument, asked, built, on_each
from gpualgo.shards._devices import Place
from gpualgo.shards._shards import ShardedArray
from gpualgo.shards._sort import Order, line_of, long_row, one_row

SMALL = np.dtype(np.int32)  # of places in a shard, where these are few enough


def argsort(keys: Any, *, descending: Any = False, axis: Any = -1, dtype: Any = None) -> Any:
    """Return the stable order of keys: ``keys[p[0]] ≤ keys[p[1]] ≤ …``, equal keys as they come.

    Parameters and result are those of `gpualgo.argsort`, with sharded arrays for arrays: along the
    axis that is cut places in the whole array. Cost and memory are those of `radix_sort` with
    places for values.
    """
    where, order = "argsort", Order(descending, (0, None))
    taken_keys, line = line_of(keys, where, "keys", axis)
    first = taken_keys.first
    options = {"descending": descending, "axis": line, "dtype": dtype}
    (found,), _ = asked(ga.argsort, taken_keys.places[0], taken_keys.on(0), **options)
    length = first.shape[line]
    if length > int(np.iinfo(found).max) + 1:
        raise ValueError(
            f"argsort: dtype {found} is too narrow for indices below {length}; pass a wider dtype="
        )
    if line != first.axis:
        found_rows = on_each(
            first.places, taken_keys.seats,
            lambda seat: ga.argsort(taken_keys.on(seat), **options),
        )  # fmt: skip
        return built(found_rows, first.places, first.axis)
    one_row(taken_keys, line, where)
    starts, library = first.starts, first.library
    # Places in a shard take half the bytes on their way; merges read them as those in the array.
    own = SMALL if max(first.lengths) <= np.iinfo(SMALL).max else np.dtype(np.int64)
    moved = on_each(
        first.places, taken_keys.seats,
        lambda seat: _positions(first.places[seat], first.lengths[seat], own, library),
    )  # fmt: skip
    beside = Argument((ShardedArray(moved, first.places, 0),), None, "values")

    def placed(seat: int, values: list[Any]) -> list[Any]:
        return [_in_array((values[0],), where, starts[seat], found)]

    pieces = long_row(taken_keys, beside, order, placed)
    return built([values[0] for _, values in pieces], first.places, 0)


def _shifted(places: Any, start: int, dtype: np.dtype[Any]) -> Any:
    return ga.lazy.transform(lambda place: place + start, places, dtype=dtype)


# Places in a shard as those in the whole array, computed where they are read.
_in_array = Kept(_shifted)


@functools.lru_cache(64)
def _counted(length: int, dtype: Any, device: str) -> Any:
    """Return numbers from 0 on, which take no memory: equal ones are known again."""
    return ga.lazy.arange(length, dtype=dtype, device=device)


def _positions(place: Place, length: int, dtype: Any, library: Any) -> Any:
    """Return the places of a shard's elements in it."""
    if place.number == CPU:
        return np.arange(length, dtype=dtype)
    target = place.empty((length,), dtype, library)
    if length:
        numbers = _counted(length, dtype, place.name)
        view = view_of(target, "places")
        stream = int(view.library.stream(view.device))
        known = DeviceArray(
            view.ptr, view.shape, view.strides, view.dtype, view.device, stream, False, target
        )  # as nothing that is read is of the library
        ga.copy(numbers, out=known, stream=stream)
    return target
