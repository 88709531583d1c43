"""Stable LSD radix sort on CPU cores; keys are compared as unsigned codes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_fast_path, cpu_numpy, cpu_rows
from gpualgo._algorithms.radix_sort import cpu_parameters as rk
from gpualgo._algorithms.radix_sort import cpu_rows as rows
from gpualgo._algorithms.radix_sort import cpu_strategy as ways
from gpualgo._algorithms.radix_sort.cpu_entries import entry, invoke
from gpualgo._algorithms.radix_sort.cpu_orders import Order
from gpualgo._algorithms.radix_sort.cpu_rows import launch as rows_launch
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import scratch
from gpualgo._pipeline.routines import Routine, bytes_of, compiled, of_numpy
from gpualgo._pipeline.run import HAS_RANGES

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.problem import Sort
    from gpualgo._pipeline.problem import Prepared


WORD_SIZES = (1, 2, 4, 8, 16)  # sizes of values that are moved together with their keys
LONG_ROW = 1 << 17  # from this many keys on, all cores sort one row together
_LONG_FOR_TWO = 1 << 19  # the same where each row would get at most two threads
_LINE_BYTES = 1 << 23  # rows of at least this size, with values, are written past the caches
_LINE_BITS, _CACHE_BITS = 11, 8  # widest digit of a pass, with and without write-combining
_PARTS_PER_THREAD = 4
_PART_KEYS = 1 << 15  # fewer keys do not repay separate counters

Array = np.ndarray[Any, Any]


def radix_sort(
    keys: Array, values: Array | None, out_keys: Array, out_values: Array | None, axis: int,
    descending: bool, begin_bit: int, end_bit: int,
) -> None:  # fmt: skip
    """Write keys, and values with them, sorted along axis, to outputs that may be the inputs.

    All arrays have one shape and any strides; values and out_values have one dtype. Arguments are
    already checked.
    """
    order = Order(keys.dtype, descending, begin_bit, end_bit)
    if values is None and cpu_numpy.is_sorted_by_numpy(keys, axis, order):
        if cpu_numpy.is_dense(keys, out_keys, axis):
            cpu_numpy.sort(keys, out_keys, descending)
        else:
            cpu_numpy.sort_copies(keys, out_keys, axis, descending)
    elif values is None or out_values is None:
        _sort(as_bytes(keys), None, as_bytes(out_keys), None, axis, order)
    elif order.is_whole and cpu_rows.is_nearly_sorted(keys, axis, descending):
        cpu_rows.sort_pairs(
            keys, as_bytes(values), out_keys, as_bytes(out_values), axis, descending
        )
    elif values.itemsize in WORD_SIZES:
        _sort(
            as_bytes(keys), as_bytes(values), as_bytes(out_keys), as_bytes(out_values), axis, order
        )
    else:
        indices = np.empty(keys.shape, np.int64)
        _sort(as_bytes(keys), None, as_bytes(out_keys), as_bytes(indices), axis, order)
        as_bytes(out_values)[...] = np.take_along_axis(as_bytes(values), indices, axis)


def argsort(keys: Array, out: Array, axis: int, descending: bool) -> None:
    """Write the stable order of keys along axis to out, whose integer dtype holds it."""
    if cpu_numpy.is_ordered_by_numpy(keys, descending) or cpu_rows.takes(keys, axis, descending):
        cpu_rows.order(keys, out, axis, descending)
        return
    order = Order(keys.dtype, descending, 0, 8 * keys.itemsize)
    _sort(as_bytes(keys), None, None, as_bytes(out), axis, order)


def routines(problem: Sort, arrays: Sequence[Array], results: Sequence[Array]) -> list[Routine]:
    """Return the routines of a sort or argsort of unordered keys, without reading any key."""
    axis, sources = problem.axis, list(arrays)
    if axis is None:
        axis, sources = 0, [x.reshape(-1) for x in sources]
    keys, work = sources[0], bytes_of(arrays, results)
    length = keys.shape[axis]
    if problem.index_dtype is None and len(sources) == 1:
        order = Order(keys.dtype, problem.descending, problem.begin_bit, problem.end_bit)
        if cpu_numpy.is_sorted_by_numpy(keys, axis, order):
            return cpu_numpy.routines(keys, axis)
    is_by_numpy = keys.dtype in cpu_rows.NARROW_DTYPES or cpu_numpy.is_ordered_by_numpy(
        keys, problem.descending
    )
    if problem.index_dtype is not None and is_by_numpy:
        return [of_numpy("argsort", keys.size, keys.size // max(1, length), work)]
    return [routine_of(keys.size, length, work)]


def routine_of(size: int, length: int, work: int) -> Routine:
    """Return the routine of a digit sort of rows; threads share long rows."""
    is_one_thread = _is_one_thread_per_row(length, size // max(1, length))
    return compiled("radix_sort", size, length if is_one_thread else _PART_KEYS, work)


def _is_one_thread_per_row(length: int, num_rows: int) -> bool:
    """Return whether one thread sorts each row."""
    return length < LONG_ROW or (length < _LONG_FOR_TWO and 2 * num_rows >= threads.num_threads())


def as_bytes(array: Array) -> Array:
    """Return array viewed as raw bytes (void dtype) of the same item size."""
    return array.view(f"V{array.itemsize}")


def _sort(
    keys: Array, values: Array | None, out_keys: Array | None, out_values: Array | None, axis: int,
    order: Order,
) -> None:  # fmt: skip
    """Sort rows along axis; without values, move positions; without out_keys, write values only."""
    if axis != keys.ndim - 1:
        keys = np.moveaxis(keys, axis, -1)
        others = (values, out_keys, out_values)
        values, out_keys, out_values = (
            a if a is None else np.moveaxis(a, axis, -1) for a in others
        )
    sort(keys, values, out_keys, out_values, order)


def sort(
    keys: Array, values: Array | None, out_keys: Array | None, out_values: Array | None,
    order: Order,
) -> None:  # fmt: skip
    """Sort rows of raw bytes along the last axis, as `_sort` does."""
    arrays = [keys, values, out_keys, out_values]
    *outer, length = keys.shape
    if _is_one_thread_per_row(length, prod(outer)):
        rows.sort(arrays, order.numbers())
        return
    for index in np.ndindex(*outer):
        _LongRow([a if a is None else a[index] for a in arrays], order).sort()


class _Column:
    """Keys or values of a long row, and the buffers that passes read and write."""

    def __init__(self, source: Array | None, target: Array | None, size: int, length: int) -> None:
        self.target, self.size, self.length = target, size, length
        self.out = target if target is not None and _is_dense(target) else None
        self.temp: Array | None = None
        self.source = source  # None: positions
        if source is not None and not _is_dense(source):
            self.source = self.make_out()
            cpu_numpy.copy_rows(self.source, source, 64 * self.source.nbytes)

    @property
    def first(self) -> int:
        """Return the address that the first pass reads; 0 if it generates positions."""
        return 0 if self.source is None else address(self.source)

    def make_out(self) -> Array:
        """Return the buffer of the last pass: the target if it is dense."""
        if self.out is None:
            self.out = np.empty(self.length, f"V{self.size}")
        return self.out

    def _make_temp(self) -> Array:
        if self.temp is None:
            self.temp = np.empty(self.length, f"V{self.size}")
        return self.temp

    def route(self, passes: int) -> list[int]:
        """Return the address where the first pass reads and those where each pass writes."""
        # From the last pass to the first. Address 0: the output is not wanted.
        addresses = [0] if self.target is None else []
        for remaining in range(len(addresses), passes):
            addresses.append(address(self._make_temp() if remaining % 2 else self.make_out()))
        if self.source is not None and addresses[-1] == self.first:  # in place, or packed there
            source, self.source = self.source, self._make_temp()
            cpu_numpy.copy_rows(self.source, source, 64 * self.source.nbytes)
        return [self.first, *reversed(addresses)]

    def finish(self, is_sorted: bool) -> None:
        """Copy the result to the target; if `is_sorted`, the source is the result."""
        if self.target is None:
            return
        result = self.source if is_sorted else self.make_out()
        if result is None:
            result = np.arange(self.length, dtype=f"u{self.size}").view(f"V{self.size}")
        if address(result) != address(self.target) or not _is_dense(self.target):
            cpu_numpy.copy_rows(self.target, result, 64 * self.target.nbytes)


def _is_dense(array: Array) -> bool:
    """Return whether a row is contiguous and aligned, as line writes require."""
    return array.strides[0] == array.itemsize and address(array) % array.itemsize == 0


class _LongRow:
    """One row, sorted by all cores pass by pass."""

    def __init__(self, arrays: list[Array | None], order: Order) -> None:
        keys, values, out_keys, out_values = arrays
        assert keys is not None
        n = len(keys)
        self.order, self.length = order, n
        self.keys, self.values = _Column(keys, out_keys, order.size, n), None
        self.value_size = 0
        if out_values is not None:
            self.value_size = out_values.itemsize
            self.values = _Column(values, out_values, self.value_size, n)
        self.bytes = n * (order.size + self.value_size)
        self.table = np.zeros(rk.SIZE, np.int64)
        self.table[rk.CODES :] = order.numbers()
        self.table[rk.LENGTH] = n
        self._split(_PART_KEYS)

    def _split(self, part_keys: int) -> None:
        """Split the row into parts of at least `part_keys` keys."""
        parts = min(_PARTS_PER_THREAD * threads.num_threads(), self.length // part_keys)
        self.parts = max(1, parts, self.length >> 31)  # counters in a kernel have 32 bits
        self.table[rk.PARTS] = self.parts

    def sort(self) -> None:
        order = self.order
        if order.size <= 2 and self.values is None and not order.is_float and order.is_whole:
            self._count_and_fill()
            return
        is_large = self.bytes >= _LINE_BYTES
        digits = _digits(self._survey(), _LINE_BITS if is_large else _CACHE_BITS)
        if digits:
            self._sort_by(digits, is_large)
        self.keys.finish(not digits)
        if self.values is not None:
            self.values.finish(not digits)

    def _sort_by(self, digits: list[tuple[int, int]], is_large: bool) -> None:
        passes = len(digits)
        keys = self.keys.route(passes)
        values = [0] * (passes + 1) if self.values is None else self.values.route(passes)
        for i, (shift, bits) in enumerate(digits):
            self.table[[rk.KEYS, rk.VALUES]] = keys[i], values[i]
            self.table[[rk.OUT_KEYS, rk.OUT_VALUES]] = keys[i + 1], values[i + 1]
            self._count(shift, bits)
            self._move(is_large, 1 << bits)

    def _run(self, kernel_address: int, scratch_bytes: int = 0) -> None:
        self.table[rk.ENTRY] = kernel_address
        table, kernel = address(self.table), invoke()

        def body(first: int, last: int) -> None:
            memory = scratch(scratch_bytes)
            kernel(table, address(memory), first, last)

        threads.run(body, self.parts, self.bytes)

    def _survey(self) -> int:
        """Return the bits in which codes differ; 0 if the row is already in order."""
        survey = np.empty((self.parts, 2), np.uint64)
        self.table[[rk.KEYS, rk.SURVEY]] = self.keys.first, address(survey)
        self._run(entry("survey"), rk.CODES_BYTES + 8)
        differ, falls = np.bitwise_or.reduce(survey)
        return int(differ) if falls else 0

    def _count(self, shift: int, bits: int) -> None:
        """Count digits and compute each part's first index in each bucket."""
        self.counts = np.empty((self.parts, 1 << bits), np.int64)
        self.table[[rk.COUNTS, rk.SHIFT, rk.BUCKETS]] = address(self.counts), shift, 1 << bits
        self._run(entry("count"), rk.CODES_BYTES + (8 << bits))
        self.table[rk.ENTRY] = entry("place")
        invoke()(address(self.table), 0, 0, 1)

    def _move(self, is_large: bool, buckets: int) -> None:
        sizes = (self.order.size, self.value_size)
        if is_large:
            self._run(entry("line", *sizes), rk.scratch_bytes(buckets))
        else:
            self._run(entry("scatter", *sizes), rk.CODES_BYTES)

    def _count_and_fill(self) -> None:
        """Counting sort of integers of one or two bytes."""
        size = self.order.size
        self._split(_PART_KEYS if size == 1 else _PART_KEYS << 4)
        self.table[rk.KEYS] = self.keys.first
        self._count(0, 8 * size)
        self.table[rk.OUT_KEYS] = address(self.keys.make_out())
        self._run(entry("fill", size))
        self.keys.finish(False)


def _digits(differ: int, widest: int) -> list[tuple[int, int]]:
    """Return (shift, bits) of the fewest digits that cover all bits set in differ."""
    digits = []
    while differ:
        low = (differ & -differ).bit_length() - 1
        span = differ.bit_length() - low
        bits = -(-span // -(-span // widest))
        digits.append((low, bits))
        differ = differ >> low + bits << low + bits
    return digits


# --- CPU sort prepared for arrays of fixed layouts, for repeated calls.


def prepared(
    keys: Array, values: Array | None, out_keys: Array | None, out_values: Array | None, axis: int,
    order: Order,
) -> Prepared | None:  # fmt: skip
    """Return a function that sorts arrays of these layouts.

    None if threads share rows, or values do not travel with their keys.
    """
    if (
        out_keys is not None
        and out_values is None
        and cpu_numpy.is_sorted_by_numpy(keys, axis, order)
    ):
        descending = order.descending
        if not cpu_numpy.is_dense(keys, out_keys, axis):
            return lambda arrays, results, _: cpu_numpy.sort_copies(
                arrays[0].reshape(results[0].shape), results[0], axis, descending
            )
        if keys.ndim > 1:
            return lambda arrays, results, _: cpu_numpy.sort(
                arrays[0].reshape(results[0].shape), results[0], descending
            )
        sort = cpu_numpy.row_sort(len(keys), keys.dtype, order.descending)
        takes_short_rows = ways.is_by_numpy(keys.dtype, cpu_fast_path.MOST_KEYS - 1, 1)
        if takes_short_rows and not (order.descending or HAS_RANGES):
            cpu_fast_path.register_sort(
                keys.dtype, sort.kernels, cpu_numpy.sorted_row, cpu_numpy.sorted_into
            )
        by_numpy = sort.fresh
        return lambda arrays, results, _: by_numpy(_row(arrays[0]), results[0])
    is_order = out_keys is None
    if is_order and ways.max_ordered_keys(keys.dtype) and not HAS_RANGES:
        cpu_fast_path.register_argsort(keys.dtype)
    if out_values is not None and out_values.itemsize not in WORD_SIZES:
        return None
    inputs = (keys, values, out_keys, out_values)
    moved = [a if a is None else np.moveaxis(as_bytes(a), axis, -1) for a in inputs]
    if keys.shape[axis] >= LONG_ROW:
        return None
    launch = rows_launch(moved, order.numbers())
    shape, descending = keys.shape, order.descending
    if is_order:

        def write_order(arrays: Any, results: Any, _: Any) -> None:
            rows = arrays[0].reshape(shape)
            if cpu_numpy.is_ordered_by_numpy(rows, descending) or cpu_rows.takes(
                rows, axis, descending
            ):
                cpu_rows.order(rows, results[0], axis, descending)
            else:
                launch((arrays[0], 0, 0, results[0]))

        return write_order
    if values is None:
        return lambda arrays, results, _: launch((arrays[0], 0, results[0], 0))

    def sort_pairs(arrays: Any, results: Any, _: Any) -> None:
        rows = arrays[0].reshape(shape)
        if order.is_whole and cpu_rows.is_nearly_sorted(rows, axis, descending):
            items = as_bytes(arrays[1]).reshape(shape)
            cpu_rows.sort_pairs(rows, items, results[0], as_bytes(results[1]), axis, descending)
        else:
            launch((*arrays, *results))

    return sort_pairs


def _row(array: Array) -> Array:
    """Return an array flattened without a copy."""
    return array if array.ndim == 1 else array.reshape(-1)
