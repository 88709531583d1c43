"""Sort of many rows, or one short row: one thread sorts a row within its caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_parameters as rk
from gpualgo._algorithms.radix_sort import cpu_strategy as ways
from gpualgo._algorithms.radix_sort.cpu_entries import entry, invoke, kernel
from gpualgo._algorithms.radix_sort.cpu_merge_parameters import DIGIT_SORT_COST
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import row_function, status_function
from gpualgo._cpu.kernels import Kernel
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import is_dense, merge, packer, table


def sort(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> None:
    """Sort rows of raw bytes with any strides along the last axis.

    `arrays`: keys, values, output keys, output values. Without values, positions in the row are
    moved; an output that is None is not written.
    """
    launch(arrays, numbers)([0 if a is None else address(a) for a in arrays])


def launch(arrays: Sequence[np.ndarray[Any, Any] | None], numbers: Sequence[int]) -> Launch:
    """Return the launch that sorts rows of these layouts; it takes addresses, 0 for None."""
    keys, _, _, out_values = arrays
    assert keys is not None
    *outer, length = keys.shape
    shape = keys.shape
    strides = [(0,) * len(shape) if a is None else a.strides for a in arrays]
    dims = list(zip(outer, *strides, strict=False))
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1])))
    packs = [
        0 if a is None or is_dense([(length, a.strides[-1])], 0, a.itemsize) else packer(a.itemsize)
        for a in arrays
    ]
    sizes = (keys.itemsize, 0 if out_values is None else out_values.itemsize)
    head = [0] * rk.CODES
    head[rk.LENGTH] = length
    head[rk.ENTRY] = entry("row")
    arguments = table(
        head, numbers, _entries(*sizes), [sizes[1]], packs, [s[-1] for s in strides], [len(dims)],
        *zip(*dims, strict=True),
    )  # fmt: skip
    num_bytes = rk.BUFFERS + 2 * length * sum(sizes) + 4 * 64
    slots = rk.KEYS, rk.VALUES, rk.OUT_KEYS, rk.OUT_VALUES
    return Launch(invoke(), arguments, slots, num_bytes, prod(outer), keys.size * sum(sizes))


def _entries(size: int, value_size: int) -> list[int]:
    """Return the addresses of the kernels that the row kernel calls."""
    return [
        entry("survey"),
        entry("count"),
        entry("place"),
        entry("scatter", size, value_size),
        entry("take", size, value_size),
    ]


# --- Orders that NumPy's stable argsort finds faster than the digit sort: narrow integers, and
# runs.
#
# NumPy counts integers of one and two bytes. It merges other keys run by run (timsort), so
# nearly sorted keys cost little more than a copy. The number of merge levels is estimated
# from a sample. Three keys at equal distances (1, 2, 4, …) "turn" if they rise and then fall,
# or fall and then rise; each distance stands for one level. In random keys two thirds turn at
# all distances; in ten rising rows, only distances that reach from one row into another do.

_MOST_ROWS = 16  # sampled
_STEP_KEYS = 1 << 13

NARROW_DTYPES = frozenset(map(np.dtype, ("?", "i1", "u1", "i2", "u2")))
_MERGED = frozenset(map(np.dtype, ("i4", "u4", "f4", "i8", "u8", "f8")))

Array = np.ndarray[Any, Any]


def takes(keys: Array, axis: int, descending: bool) -> bool:
    """Return whether NumPy finds the stable order of keys along an axis faster."""
    return keys.dtype in NARROW_DTYPES or is_nearly_sorted(keys, axis, descending)


def is_nearly_sorted(keys: Array, axis: int, descending: bool) -> bool:
    """Return whether a merge sort of runs is faster than passes over digits."""
    length, size = keys.shape[axis], keys.size
    if keys.dtype not in _MERGED or not size:
        return False
    levels_kernel = _kernel(keys.dtype, descending)  # held: functions know its address only
    estimate = status_function(levels_kernel)
    if keys.ndim == 1:
        return estimate(address(keys), keys.strides[0], length, 1) < DIGIT_SORT_COST
    rows = _rows(keys, axis)
    *outer, _ = rows.shape
    count, first, levels = prod(outer), address(rows), 0
    picked = min(count, _MOST_ROWS, 1 + (size >> 12))
    for i in range(picked):
        start, index = first, i * count // picked
        for extent, stride in zip(reversed(outer), rows.strides[-2::-1], strict=True):
            index, coordinate = divmod(index, extent)
            start += coordinate * stride
        levels += estimate(start, rows.strides[-1], length, 1)
    return bool(levels < DIGIT_SORT_COST * picked)


def _rows(array: Array, axis: int) -> Array:
    """Return an array with the sorted axis moved last."""
    return array if axis in (-1, array.ndim - 1) else np.moveaxis(array, axis, -1)


def row_order(dtype: np.dtype[Any]) -> Callable[[Array, bool], Array | None]:
    """Return the function that orders a contiguous row; it returns None if digits are faster."""
    most, kernels = ways.max_ordered_keys(dtype), []
    if dtype not in NARROW_DTYPES:
        kernels = [_kernel(dtype, is_descending) for is_descending in (False, True)]
    estimates = list(map(row_function, kernels))

    def by_numpy(keys: Array, descending: bool, held: Any = kernels) -> Array | None:
        is_few = len(keys) <= most and not descending
        if not is_few and estimates and estimates[descending](keys, keys) >= DIGIT_SORT_COST:
            return None
        return (reversed_keys(keys) if descending else keys).argsort(kind="stable")

    return by_numpy


def _kernel(dtype: np.dtype[Any], descending: bool) -> Kernel:
    return kernel("levels", dtype.kind, dtype.itemsize, int(descending))


def reversed_keys(keys: Array, room: Array | None = None) -> Array:
    """Return keys whose ascending order is the descending order of `keys`; NaNs stay NaNs.

    They are written to the memory of `room` if they fit there.
    """
    negate = np.negative if keys.dtype.kind == "f" else np.invert
    if room is None or not room.flags.c_contiguous or room.nbytes < keys.nbytes:
        return np.asarray(negate(keys))
    negated = room.reshape(-1).view(keys.dtype)[: keys.size].reshape(keys.shape)
    return np.asarray(negate(keys, out=negated))


def order(keys: Array, out: Array, axis: int, descending: bool) -> None:
    """Write the stable order of keys along an axis to out: NumPy's argsort, rows on threads."""
    if keys.ndim == 1:
        indices = (reversed_keys(keys, out) if descending else keys).argsort(kind="stable")

        def part(first: int, last: int) -> None:
            out[first:last] = indices[first:last]

        threads.run(part, len(out), 2 * out.nbytes)
        return
    rows, targets = _rows(keys, axis), _rows(out, axis)
    if rows.ndim > 2:
        longest = int(np.argmax(rows.shape[:-1]))
        rows, targets = np.moveaxis(rows, longest, 0), np.moveaxis(targets, longest, 0)
    order_runs = _order_of_runs(rows, targets, descending)
    step = max(1, _STEP_KEYS * len(rows) // keys.size)  # few keys: their order stays in cache

    def body(first: int, last: int) -> None:
        for i in range(order_runs(first, last), last, step):
            block = rows[i : min(i + step, last)]
            indices = (reversed_keys(block) if descending else block).argsort(
                axis=-1, kind="stable"
            )
            targets[i : min(i + step, last)] = indices

    # Merges of runs read keys about twice; counting narrow keys, or reversing keys, takes longer.
    reads = 2 if keys.dtype in _MERGED and not descending else 8
    threads.run(body, len(rows), reads * keys.nbytes)


def _order_of_runs(rows: Array, order: Array, descending: bool) -> Callable[[int, int], int]:
    """Return f(first, last), which orders leading rows that are a single run.

    It returns the index of the first other row. Narrow keys, which NumPy counts, are delegated to
    NumPy.
    """
    is_supported = rows.ndim == 2 and rows.dtype in _MERGED
    if not (is_supported and order.dtype == np.int64 and order.strides[1] == 8):
        return lambda first, _: first
    run = kernel("one_run", rows.dtype.kind, rows.itemsize, int(descending))
    arguments = (address(rows), *rows.strides, rows.shape[1], address(order), order.strides[0])
    table = np.array(arguments, np.int64)
    return lambda first, last: first + status_function(run)(address(table), 0, first, last)


def sort_pairs(
    keys: Array, values: Array, out_keys: Array, out_values: Array, axis: int, descending: bool
) -> None:
    """Write keys and values to the outputs in the order that NumPy finds."""
    indices = np.empty(keys.shape, np.int64)
    order(keys, indices, axis, descending)
    for source, out in ((keys, out_keys), (values, out_values)):
        is_row = source.ndim == 1
        out[...] = source[indices] if is_row else np.take_along_axis(source, indices, axis)
