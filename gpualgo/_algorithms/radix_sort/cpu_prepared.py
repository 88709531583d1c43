"""CPU sort prepared for arrays of fixed layouts, for repeated calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu, cpu_again, cpu_numpy, cpu_runs
from gpualgo._algorithms.radix_sort import cpu_ways as ways
from gpualgo._algorithms.radix_sort.cpu_orders import Order
from gpualgo._algorithms.radix_sort.cpu_rows import launch as rows_launch
from gpualgo._pipeline.run import HAS_RANGES

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

Array = np.ndarray[Any, Any]


def prepared(
    keys: Array, values: Array | None, out_keys: Array | None, out_values: Array | None, axis: int,
    order: Order,
) -> Prepared | None:  # fmt: skip
    """Return a function that sorts arrays of these layouts.

    None if threads share rows, or values do not travel with their keys.
    """
    if out_keys is not None and out_values is None and cpu_numpy.takes(keys, out_keys, axis, order):
        if keys.ndim > 1:
            descending = order.descending
            return lambda arrays, results, _: cpu_numpy.sort(
                arrays[0].reshape(results[0].shape), results[0], descending
            )
        sort = cpu_numpy.row_sort(len(keys), keys.dtype, order.descending)
        takes_short_rows = ways.is_by_numpy(keys.dtype, cpu_again.MOST_KEYS - 1, 1)
        if takes_short_rows and not (order.descending or HAS_RANGES):
            cpu_again.add(keys.dtype, sort.kernels, cpu_numpy.sorted_row, cpu_numpy.sorted_into)
        by_numpy = sort.fresh
        return lambda arrays, results, _: by_numpy(_row(arrays[0]), results[0])
    is_order = out_keys is None
    if is_order and ways.most_ordered(keys.dtype) and not HAS_RANGES:
        cpu_again.add_order(keys.dtype)
    if out_values is not None and out_values.itemsize not in cpu.WORD_SIZES:
        return None
    inputs = (keys, values, out_keys, out_values)
    moved = [a if a is None else np.moveaxis(cpu.as_bytes(a), axis, -1) for a in inputs]
    if keys.shape[axis] >= cpu.LONG_ROW:
        return None
    launch = rows_launch(moved, order.numbers())
    shape, descending = keys.shape, order.descending
    if is_order:

        def write_order(arrays: Any, results: Any, _: Any) -> None:
            rows = arrays[0].reshape(shape)
            if cpu_numpy.orders(rows, descending) or cpu_runs.takes(rows, axis, descending):
                cpu_runs.order(rows, results[0], axis, descending)
            else:
                launch((arrays[0], 0, 0, results[0]))

        return write_order
    if values is None:
        return lambda arrays, results, _: launch((arrays[0], 0, results[0], 0))

    def sort_pairs(arrays: Any, results: Any, _: Any) -> None:
        rows = arrays[0].reshape(shape)
        if order.is_whole and cpu_runs.is_nearly_sorted(rows, axis, descending):
            items = cpu.as_bytes(arrays[1]).reshape(shape)
            cpu_runs.sort_pairs(rows, items, results[0], cpu.as_bytes(results[1]), axis, descending)
        else:
            launch((*arrays, *results))

    return sort_pairs


def _row(array: Array) -> Array:
    """Return an array flattened without a copy."""
    return array if array.ndim == 1 else array.reshape(-1)
