"""Stable LSD radix sort of rows on CPU cores; keys are compared as unsigned codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_numpy, problem
from gpualgo._algorithms.radix_sort import digits as rk
from gpualgo._algorithms.radix_sort.digits import flipped_bits, opposite_signs
from gpualgo._base import dtypes, threads
from gpualgo._cpu.kernels import get_entry, named
from gpualgo._cpu.launch import Launch, run_tasks
from gpualgo._cpu.layout import is_dense, merge, packer, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Routine, compiled

Array: TypeAlias = np.ndarray[Any, Any]
Words: TypeAlias = Sequence[Any]  # keys, values and outputs: arrays, 0 for one that is absent

WORD_SIZES = (1, 2, 4, 8, 16)  # sizes of values that are moved together with their keys


def as_bytes(array: Array) -> Array:
    """Return array viewed as raw bytes (void dtype) of the same item size."""
    return array.view(f"V{array.itemsize}")


# --- The order of keys, as kernel parameters, and kernels.

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000,
             "float64": 0x7FF0000000000000}  # fmt: skip


class Order:
    """Order of keys, which may be words of several numbers, and the bits compared."""

    def __init__(
        self, dtype: problem.Dtype, descending: problem.Descending, begin: int = 0,
        end: int | None = None,
    ) -> None:  # fmt: skip
        self.size, self.descending = dtype.itemsize, descending is True
        self.used = (1 << (problem.used_bits(dtype) if end is None else end)) - (1 << begin)
        # Bits of a key that are inverted before its code is computed.
        self.flip = flipped_bits(dtype, descending) | opposite_signs(dtype, descending)
        numbers = problem.numbers(dtype, descending)
        self.floats = [
            (number.shift, number.bits, _INFINITY[str(dtypes.name_of(number.dtype))])
            for number in numbers if dtypes.kind(number.dtype) == "f"
        ]  # fmt: skip

    @property
    def is_whole(self) -> bool:
        return self.used == (1 << 8 * self.size) - 1

    def numbers(self) -> list[int]:
        """Return the kernels' parameters from slot CODES on, as signed words."""
        codes = entry("codes", self.size, *self.floats)
        numbers = [codes, self.size, self.flip, self.used]
        return [number - (number >> 63 << 64) for number in numbers]


def entry(name: str, *options: int | tuple[int, ...]) -> int:
    """Return the address of a kernel of `cpu_kernels`; `invoke` calls it without the GIL."""
    return get_entry(*named("radix_sort", f"{name}_kernel", *options))


# --- Sort by digits: one thread sorts a row within its caches, or all cores sort a long row.

LONG_ROW = 1 << 17  # from this many keys on, all cores sort one row together
_LONG_FOR_TWO = 1 << 19  # the same where each row would get at most two threads
_WIDEST = 9  # bits of a digit: a pass over a long row writes to up to 512 buckets
_PARTS_PER_THREAD = 4
_PART_KEYS = 1 << 15  # fewer keys do not repay separate counters


def routine_of(size: int, length: int, work: int) -> Routine:
    """Return the routine of a digit sort of rows; threads share long rows."""
    is_one_thread = _is_one_thread_per_row(length, size // max(1, length))
    return compiled("radix_sort", size, length if is_one_thread else _PART_KEYS, work)


def _is_one_thread_per_row(length: int, num_rows: int) -> bool:
    return length < LONG_ROW or (length < _LONG_FOR_TWO and 2 * num_rows >= threads.num_threads())


def by_digits(
    arrays: Sequence[Array | None], order: Order, axis: int = -1
) -> Callable[[Words], None]:
    """Return the function that sorts rows of these layouts along an axis.

    `arrays`: keys, values, output keys, output values, of any dtypes of the right sizes and with
    any strides. Without values, positions in the row are moved; an absent output is not written.
    The function takes arrays, and 0 for one that is absent.
    """
    rows = _rows(arrays, axis)
    if rows[0] is not None and rows[0].shape[-1] < LONG_ROW:
        return _launch(rows, order)

    def sort(arrays: Words) -> None:
        rows = _rows(arrays, axis)
        keys = rows[0]
        assert keys is not None
        *outer, length = keys.shape
        if _is_one_thread_per_row(length, prod(outer)):
            _launch(rows, order)([0 if a is None else a for a in rows])
            return
        for index in np.ndindex(*outer):
            _LongRow([a if a is None else a[index] for a in rows], order).sort()

    return sort


def _rows(arrays: Words, axis: int) -> list[Array | None]:
    """Return arrays as raw bytes with an axis moved last."""
    return [
        np.moveaxis(as_bytes(a), axis, -1) if isinstance(a, np.ndarray) else None for a in arrays
    ]


def _launch(arrays: Sequence[Array | None], order: Order) -> Launch:
    """Return the launch that sorts rows along the last axis, one thread each."""
    keys, _, _, out_values = arrays
    assert keys is not None
    *outer, length = keys.shape
    strides = [(0,) * keys.ndim if a is None else a.strides for a in arrays]
    dims = list(zip(outer, *strides, strict=False))
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1])))
    packs = [
        0
        if a is None or is_dense([(length, a.strides[-1])], 0, a.itemsize)
        else packer(a.itemsize, a.strides[-1], a.size)
        for a in arrays
    ]
    sizes = (keys.itemsize, 0 if out_values is None else out_values.itemsize)
    entries = [entry(name) for name in ("survey", "count", "place")]
    entries += [entry("scatter", *sizes), entry("take", *sizes)]
    head = [0] * rk.CODES
    head[rk.LENGTH] = length
    head[rk.ENTRY] = entry("row")
    arguments = table(
        head, order.numbers(), entries, [sizes[1]], packs, [s[-1] for s in strides], [len(dims)],
        *zip(*dims, strict=True),
    )  # fmt: skip
    num_bytes = rk.BUFFERS + 2 * length * sum(sizes) + 4 * 64
    slots = rk.KEYS, rk.VALUES, rk.OUT_KEYS, rk.OUT_VALUES
    return Launch(
        cpu_numpy.kernel("invoke"), arguments, slots, num_bytes, prod(outer), keys.size * sum(sizes)
    )


class _Column:
    """Keys or values of a long row, and the two buffers that passes write in turn."""

    def __init__(self, source: Array | None, target: Array | None, size: int, length: int) -> None:
        self.source, self.target = source, target  # None: positions; the result is not wanted
        self.temp, self.out = (np.empty(length, f"V{size}") for _ in range(2))
        if target is not None and target.flags.c_contiguous:
            self.out = target
        if source is not None and not source.flags.c_contiguous:
            self._read_from(self.out)

    @property
    def first(self) -> int:
        """Return the address that the first pass reads; 0 if it generates positions."""
        return 0 if self.source is None else address(self.source)

    def _read_from(self, buffer: Array) -> None:
        assert self.source is not None
        cpu_numpy.copy_rows(buffer, self.source, 64 * buffer.nbytes)
        self.source = buffer

    def route(self, passes: int) -> list[int]:
        """Return the address where the first pass reads and those where each pass writes."""
        addresses = [address(self.temp if i % 2 else self.out) for i in reversed(range(passes))]
        if addresses[0] == self.first:  # in place, or copied there
            self._read_from(self.temp)
        if self.target is None:
            addresses[-1] = 0
        return [self.first, *addresses]

    def finish(self, is_sorted: bool) -> None:
        """Copy the result to the target; if `is_sorted`, the source is the result."""
        if self.target is None:
            return
        result = self.source if is_sorted else self.out
        if result is None:
            result = np.arange(len(self.out), dtype=f"u{self.out.itemsize}").view(self.out.dtype)
        if address(result) != address(self.target) or not self.target.flags.c_contiguous:
            cpu_numpy.copy_rows(self.target, result, 64 * self.target.nbytes)


class _LongRow:
    """One row, sorted by all cores pass by pass."""

    def __init__(self, arrays: list[Array | None], order: Order) -> None:
        keys, values, out_keys, out_values = arrays
        assert keys is not None
        n = self.length = len(keys)
        self.order, self.columns = order, [_Column(keys, out_keys, order.size, n)]
        self.sizes = order.size, 0 if out_values is None else out_values.itemsize
        if out_values is not None:
            self.columns.append(_Column(values, out_values, out_values.itemsize, n))
        self.bytes = n * sum(self.sizes)
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
        order, is_sorted = self.order, False
        if order.size <= 2 and len(self.columns) == 1 and not order.floats and order.is_whole:
            self._count_and_fill()
        elif digits := _digits(self._survey(), _WIDEST):
            routes = [column.route(len(digits)) for column in self.columns]
            for i, (shift, bits) in enumerate(digits):
                for k, route in enumerate(routes):
                    self.table[[rk.KEYS + k, rk.OUT_KEYS + k]] = route[i : i + 2]
                self._count(shift, bits)
                self._run(entry("scatter", *self.sizes), rk.CODES_BYTES)
        else:
            is_sorted = True
        for column in self.columns:
            column.finish(is_sorted)

    def _run(self, kernel_address: int, scratch_bytes: int = 0) -> None:
        self.table[rk.ENTRY] = kernel_address
        run_tasks(cpu_numpy.kernel("invoke"), self.table, self.parts, self.bytes, scratch_bytes)

    def _survey(self) -> int:
        """Return the bits in which codes differ; 0 if the row is already in order."""
        survey = np.empty((self.parts, 2), np.uint64)
        self.table[[rk.KEYS, rk.SURVEY]] = self.columns[0].first, address(survey)
        self._run(entry("survey"), rk.CODES_BYTES + 8)
        differ, falls = np.bitwise_or.reduce(survey)
        return int(differ) if falls else 0

    def _count(self, shift: int, bits: int) -> None:
        """Count digits and compute each part's first index in each bucket."""
        self.counts = np.empty((self.parts, 1 << bits), np.int64)
        self.table[[rk.COUNTS, rk.SHIFT, rk.BUCKETS]] = address(self.counts), shift, 1 << bits
        self._run(entry("count"), rk.CODES_BYTES + (8 << bits))
        self.table[rk.ENTRY] = entry("place")
        run_tasks(cpu_numpy.kernel("invoke"), self.table, 1, 0)

    def _count_and_fill(self) -> None:
        """Counting sort of integers of one or two bytes."""
        (keys,), size = self.columns, self.order.size
        self._split(_PART_KEYS if size == 1 else _PART_KEYS << 4)
        self.table[[rk.KEYS, rk.OUT_KEYS]] = keys.first, address(keys.out)
        self._count(0, 8 * size)
        self._run(entry("fill", size))


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
