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

SMALL = np.dtype(np.uint32)  # of places, where these are few enough


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
    # Places take half the bytes on their way where that is enough.
    own = SMALL if length <= int(np.iinfo(SMALL).max) + 1 else np.dtype(np.int64)
    own = found if found.itemsize == own.itemsize else own
    moved = on_each(
        first.places, taken_keys.seats,
        lambda seat: _positions(
            first.places[seat], starts[seat], first.lengths[seat], own, library
        ),
    )  # fmt: skip
    beside = Argument((ShardedArray(moved, first.places, 0),), None, "values")
    pieces = [values for _, values in long_row(taken_keys, beside, order)]
    if own != found:
        pieces = on_each(
            first.places, taken_keys.seats,
            lambda seat: [ga.copy(_as_wide(tuple(pieces[seat]), where, found))],
        )  # fmt: skip
    return built([places for (places,) in pieces], first.places, 0)


def _widened(places: Any, dtype: np.dtype[Any]) -> Any:
    return ga.lazy.transform(lambda place: place, places, dtype=dtype)


_as_wide = Kept(_widened)


@functools.lru_cache(64)
def _counted(begin: int, length: int, dtype: Any, device: str) -> Any:
    """Return numbers one after another, which take no memory: equal ones are known again."""
    return ga.lazy.arange(begin, begin + length, dtype=dtype, device=device)


def _positions(place: Place, begin: int, length: int, dtype: Any, library: Any) -> Any:
    """Return the places of a shard's elements in the whole array."""
    if place.number == CPU:
        return np.arange(begin, begin + length, dtype=dtype)
    target = place.empty((length,), dtype, library)
    if length:
        numbers = _counted(begin, length, dtype, place.name)
        view = view_of(target, "places")
        stream = int(view.library.stream(view.device))
        known = DeviceArray(
            view.ptr, view.shape, view.strides, view.dtype, view.device, stream, False, target
        )  # as nothing that is read is of the library
        ga.copy(numbers, out=known, stream=stream)
    return target
