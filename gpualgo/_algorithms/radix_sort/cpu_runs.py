"""Orders that NumPy's stable sort finds sooner than digits do: of narrow integers, and of runs.

NumPy counts integers of one and two bytes. The others it merges run by run (timsort), so that keys
nearly in order cost it little more than a copy, where passes over digits cost what they always do.
How many levels of merges it takes is estimated from a few keys: three of them at equal distances,
1, 2, 4, … apart, turn where they rise and then fall, or fall and then rise. Each distance stands
for a level. Of keys in no order two thirds turn at all distances; of keys in ten rows that rise,
only at those distances that reach from one row into another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_ways as ways
from gpualgo._algorithms.radix_sort.cpu_entries import kernel
from gpualgo._algorithms.radix_sort.cpu_merge_parameters import MANY
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import of_rows, unchecked
from gpualgo._cpu.kernels import Kernel

_MOST_ROWS = 16  # that are looked at
_STEP_KEYS = 1 << 13

COUNTED = frozenset(map(np.dtype, ("?", "i1", "u1", "i2", "u2")))
_MERGED = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))

Array = np.ndarray[Any, Any]


def takes(keys: Array, axis: int, descending: bool) -> bool:
    """Return whether NumPy finds the stable order of keys along an axis sooner."""
    return keys.dtype in COUNTED or is_nearly_sorted(keys, axis, descending)


def is_nearly_sorted(keys: Array, axis: int, descending: bool) -> bool:
    """Return whether a merge sort of runs takes less time than passes over digits."""
    length, size = keys.shape[axis], keys.size
    if keys.dtype not in _MERGED or not size:
        return False
    look = unchecked(_kernel(keys.dtype, descending))
    if keys.ndim == 1:
        return look(address(keys), keys.strides[0], length, 1) < MANY
    rows = _rows(keys, axis)
    *outer, _ = rows.shape
    count, first, levels = prod(outer), address(rows), 0
    picked = min(count, _MOST_ROWS, 1 + (size >> 12))
    for i in range(picked):
        at, left = first, i * count // picked
        for extent, stride in zip(reversed(outer), rows.strides[-2::-1], strict=True):
            left, place = divmod(left, extent)
            at += place * stride
        levels += look(at, rows.strides[-1], length, 1)
    return bool(levels < MANY * picked)


def _rows(array: Array, axis: int) -> Array:
    """Return an array with the axis that is sorted along as the last one."""
    return array if axis in (-1, array.ndim - 1) else np.moveaxis(array, axis, -1)


def row_order(dtype: np.dtype[Any]) -> Callable[[Array, bool], Array | None]:
    """Return what finds the order of a row without gaps; None: digits are the faster way."""
    most, looks = ways.most_ordered(dtype), []
    if dtype not in COUNTED:
        looks = [of_rows(_kernel(dtype, falls)) for falls in (False, True)]

    def by_numpy(keys: Array, descending: bool) -> Array | None:
        is_few = len(keys) <= most and not descending
        if not is_few and looks and looks[descending](keys, keys) >= MANY:
            return None
        return (turned(keys) if descending else keys).argsort(kind="stable")

    return by_numpy


@cache  # a function of a row has its kernel's address alone
def _kernel(dtype: np.dtype[Any], descending: bool) -> Kernel:
    return kernel("levels", dtype.kind, dtype.itemsize, int(descending))


def turned(keys: Array, room: Array | None = None) -> Array:
    """Return keys whose order is the descending one: equal keys stay equal, and NaNs NaNs.

    They are written to the memory of `room` if they fit there.
    """
    turn = np.negative if keys.dtype.kind == "f" else np.invert
    if room is None or not room.flags.c_contiguous or room.nbytes < keys.nbytes:
        return np.asarray(turn(keys))
    made = room.reshape(-1).view(keys.dtype)[: keys.size].reshape(keys.shape)
    return np.asarray(turn(keys, out=made))


def order(keys: Array, out: Array, axis: int, descending: bool) -> None:
    """Write the stable order of keys along an axis to out: NumPy's, rows shared by threads."""
    if keys.ndim == 1:
        found = (turned(keys, out) if descending else keys).argsort(kind="stable")

        def part(first: int, last: int) -> None:
            out[first:last] = found[first:last]

        threads.run(part, len(out), 2 * out.nbytes)
        return
    rows, targets = _rows(keys, axis), _rows(out, axis)
    if rows.ndim > 2:
        longest = int(np.argmax(rows.shape[:-1]))
        rows, targets = np.moveaxis(rows, longest, 0), np.moveaxis(targets, longest, 0)
    order_runs = _order_of_runs(rows, targets, descending)
    step = max(1, _STEP_KEYS * len(rows) // keys.size)  # of few keys, whose order stays in a cache

    def body(first: int, last: int) -> None:
        for i in range(order_runs(first, last), last, step):
            taken = rows[i : min(i + step, last)]
            found = (turned(taken) if descending else taken).argsort(axis=-1, kind="stable")
            targets[i : min(i + step, last)] = found

    is_known = keys.dtype in _MERGED and not descending
    threads.run(body, len(rows), (2 if is_known else 8) * keys.nbytes)


def _order_of_runs(rows: Array, order: Array, descending: bool) -> Callable[[int, int], int]:
    """Return f(first, last), which orders rows up to the first that is more than one run.

    It returns the index of that row. Narrow keys, which NumPy counts, are left to NumPy.
    """
    is_taken = rows.ndim == 2 and rows.dtype in _MERGED
    if not (is_taken and order.dtype == np.int64 and order.strides[1] == 8):
        return lambda first, _: first
    run = kernel("one_run", rows.dtype.kind, rows.itemsize, int(descending))
    words = (address(rows), *rows.strides, rows.shape[1], address(order), order.strides[0])
    table = np.array(words, np.int64)
    return lambda first, last: first + unchecked(run)(address(table), 0, first, last)


def sort_pairs(
    keys: Array, values: Array, out_keys: Array, out_values: Array, axis: int, descending: bool
) -> None:
    """Write keys, and values with them, in the order that NumPy finds, to outputs."""
    found = np.empty(keys.shape, np.int64)
    order(keys, found, axis, descending)
    for source, out in ((keys, out_keys), (values, out_values)):
        is_row = source.ndim == 1
        out[...] = source[found] if is_row else np.take_along_axis(source, found, axis)
