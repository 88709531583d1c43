"""Joint and weighted histograms on the CPU, and how the kernels of all histograms find bins."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import problem as at
from gpualgo._algorithms.histogram.bins import UNMADE, Bins
from gpualgo._algorithms.histogram.problem import MOST, UPPER, Histogram
from gpualgo._base import dtypes, records, threads
from gpualgo._cpu.image import Loaded
from gpualgo._cpu.kernels import compute_code, get_entry, get_kernel
from gpualgo._cpu.layout import ScratchLayout, field_arguments, is_dense, merge, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import START, Plan, bytes_of, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array, Problem

# --- Bins on CPU cores: the stage that finds the slots of samples, and its lookup table.

_FEW_PATTERNS = 1 << 14  # for fewer 16-bit samples, a table of all patterns takes longer
_MAX_CELLS = 1 << 20
_EXACT = 1 << 53  # float64 represents all integers below it


@dataclass
class Finder:
    """How slots are found: a stage, its table, and the bins of slots if slots are not bins."""

    dtype: np.dtype[Any]  # samples are converted to it first
    slots: int
    stage: int
    table: Array | None = None
    bin_of_slot: Array | None = None
    keep: tuple[Array, ...] = ()  # arrays that the table points to

    @property
    def num_bytes(self) -> int:
        arrays = (self.table, self.bin_of_slot, *self.keep)
        return sum(array.nbytes for array in arrays if array is not None)


def finder_for(problem: Problem, bins: Bins, num_samples: int) -> Finder | None:
    """Return the cached finder of a problem's bins; None if no sample can be in a bin."""
    if bins.finder is UNMADE:
        is_few = bins.sample_dtype.itemsize == 2 and num_samples < _FEW_PATTERNS
        bins.finder = finder = _finder(bins, is_few)
        problem.hold(0 if finder is None else finder.num_bytes)
    result: Finder | None = bins.finder
    return result


def exact_finder_for(problem: Problem, bins: Bins, num_samples: int) -> Finder | None:
    """Return a finder whose slots are the bins, and one more slot for other samples."""
    finder = finder_for(problem, bins, num_samples)
    if finder is None or finder.bin_of_slot is None:
        return finder
    stage = _stage("by_pattern", np.dtype(np.uint8))
    slot_of_value = np.where(finder.bin_of_slot < 0, np.int32(bins.num_bins), finder.bin_of_slot)
    return Finder(finder.dtype, bins.num_bins + 1, stage, slot_of_value)


def _finder(bins: Bins, is_few: bool) -> Finder | None:
    dtype, slots = bins.sample_dtype, bins.num_bins + 1
    if dtype.itemsize == 1:
        stage = _stage("by_value", np.dtype(np.uint8))
        return Finder(dtype, 256, stage, bin_of_slot=bins.of_patterns())
    if dtype.itemsize == 2 and not is_few:
        stage = _stage("by_pattern", np.dtype(np.uint16))
        patterns = bins.of_patterns()
        slot_of_pattern = np.where(patterns < 0, np.int32(bins.num_bins), patterns)
        return Finder(dtype, slots, stage, slot_of_pattern)
    lower, upper = bins.thresholds()
    if not lower.size:
        return None
    if dtype.itemsize == 2:
        dtype = np.dtype(np.float32 if dtypes.kind(dtype) == "f" else np.int32)
        lower, upper = lower.astype(dtype), upper.astype(dtype)
    if bins.is_affine and _is_exact_in_float64(dtype, bins):
        origin, scale, slack = bins.slack(np.dtype(np.float64))
        if slack < 1:
            narrow = bins.work_dtype == np.float32, bins.edge_dtype == np.float32
            stage = _stage("even", dtype, *map(bool, narrow))
            head = (origin, scale, bins.num_bins - 1, bins.num_bins)
            table = np.array([*head, bins.start, bins.step, lower[0], upper], np.float64)
            return Finder(dtype, slots, stage, table)
    return _search(dtype, slots, lower, upper)


def _stage(name: str, dtype: np.dtype[Any], *options: bool) -> int:
    def generate() -> Any:
        from gpualgo._algorithms.histogram import cpu_kernels
        from gpualgo._cpu.packing import storage

        return getattr(cpu_kernels, name)(storage(dtype), *options)

    return get_entry(("histogram", name, dtype, options), generate)


def _is_exact_in_float64(dtype: np.dtype[Any], bins: Bins) -> bool:
    if dtype.kind == "f" or dtype.itemsize < 8:
        return True
    return max(abs(int(bins.lo)), abs(int(bins.hi))) < _EXACT


def _search(dtype: np.dtype[Any], slots: int, lower: Array, upper: Any) -> Finder:
    """Return the finder that looks up a sample's cell and searches from its first bin."""
    values = lower.astype(np.float64) + 0.0
    num_cells = min(_MAX_CELLS, 1 << (4 * lower.size - 1).bit_length())
    by_value, by_bits = _cells_by_value(values, num_cells), _cells_by_bits(values, num_cells)
    levels = [int(np.bincount(cells).max()).bit_length() for *_, cells in (by_value, by_bits)]
    is_by_bits = levels[1] < levels[0]
    origin, scale, cells = by_bits if is_by_bits else by_value
    first = np.searchsorted(cells, np.arange(num_cells)) - 1
    start = np.maximum(first, 0).astype(np.int32)
    greatest = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    padding = np.full(1 << min(levels), greatest, dtype)
    stored = np.concatenate([lower, padding])
    table = np.zeros(9)
    table[:4] = origin, scale, num_cells - 1, slots - 1
    if is_by_bits:
        table[:2].view(np.int64)[:] = origin, scale
    table[4:8].view(np.int64)[:] = address(start), address(stored), lower.size, min(levels)
    table[UPPER:].view(dtype)[0] = upper
    stage = _stage("search", dtype, is_by_bits)
    return Finder(dtype, slots, stage, table, keep=(start, stored))


def _cells_by_value(values: Array, num_cells: int) -> tuple[float, float, Array]:
    """Return origin, scale and the cell of each threshold, computed as the kernel does."""
    finite = values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        origin = float(finite[0]) if finite.size else 0.0
        scale = float(num_cells / (finite[-1] - origin)) if finite.size else 0.0
        scale = scale if np.isfinite(scale) else 0.0
        cells = (values - origin) * scale
    return origin, scale, np.where(cells > 0, np.minimum(cells, num_cells - 1), 0).astype(np.int64)


def _cells_by_bits(values: Array, num_cells: int) -> tuple[int, int, Array]:
    """Return the first cell, the shift and the cell of each threshold, as the kernel does."""
    bits = values.view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    span = int(ordered[-1]) - int(ordered[0])
    shift = max(1, span.bit_length() - num_cells.bit_length() + 1)
    cells = ordered >> shift
    first = int(cells[0])
    return first, shift, np.minimum(cells - first, num_cells - 1)


# --- Counts and sums: tables of shares, joined in order.

SHARE, MOST_SHARES = 1 << 16, 16  # samples per share of a row, at least; shares of a row
_FEW_ROWS = 64  # more rows have one share each
_DOUBLE, _COMPLEX, _COUNT = np.dtype(np.float64), np.dtype(np.complex128), np.dtype(np.int64)


def plan_of(problem: Histogram, arrays: Sequence[Array], op: Operator | None) -> Plan:
    """Return the plan of counts, or with an array of weights of sums.

    The result has any strides. The arrays have one shape and any strides: the samples, or the
    inputs of op's source, which computes samples; then the weights. A weight that is one number is
    the initial value. Each array is read once. Some sample may be in each dimension's bins.
    """
    shape, element = arrays[0].shape, problem.element
    finders: list[Any] = [exact_finder_for(problem, bins, arrays[0].size) for bins in problem.bins]
    routine = compiled("histogram", arrays[0].size, MOST, bytes_of(arrays))
    sums = problem.dtype if problem.has_array else None
    is_converted = problem.has_array and problem.dtype != arrays[-1].dtype
    # Other conversions round once, as the kernel reads the weights.
    is_converted &= problem.dtype.itemsize < 4 and problem.dtype.kind not in "iu"

    def converted(arrays: Sequence[Array]) -> Sequence[Array]:
        with np.errstate(all="ignore"):
            return [*arrays[:-1], arrays[-1].astype(problem.dtype)] if is_converted else arrays

    arrays = converted(arrays)
    starts = [address(x) for x in arrays]
    # Samples in memory order.
    kept = [i for i in range(len(shape)) if i not in problem.axes]
    counted = sorted(problem.axes, key=lambda i: -sum(abs(x.strides[i]) for x in arrays))
    arrays = [x.transpose(kept + counted) for x in arrays]
    compute = None
    if op is not None and isinstance(element, records.Computed):
        names = [str(i) for i in range(len(finders))]
        sample = records.record(names, [finder.dtype for finder in finders])
        compute = compute_code(op.source, element, sample, at.JOINT_MOST)
    else:
        arrays = [x.view(np.uint8) if x.dtype.kind == "b" else x for x in arrays]
    job = _Job(arrays, starts, len(kept), finders, sums, compute)
    is_number = problem.has_weights and not problem.has_array

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        with np.errstate(all="ignore"):
            found = job.run([address(x) for x in converted(arrays)]).reshape(results[0].shape)
            results[0][...] = _times(init, found, problem.dtype) if is_number else found

    return Plan(run, [routine])


def _times(init: int, counts: Array, dtype: np.dtype[Any]) -> Array:
    """Return counts times the weight at an address, rounded once."""
    weight = np.frombuffer(ctypes.string_at(init, dtype.itemsize), dtype)[0]
    if dtype.kind in "iu":
        return counts * np.asarray(weight).astype(np.int64)
    if dtype.kind == "c":
        result = np.empty(counts.shape, _COMPLEX)
        result.real, result.imag = (np.where(counts, counts * np.float64(x), 0.0) + 0.0
                                    for x in (weight.real, weight.imag))  # fmt: skip
        return result
    return np.where(counts, counts * np.float64(weight), 0.0) + 0.0


class _Job:
    """One pass over arrays: their layout, tables and tasks; addresses are added by each call."""

    def __init__(
        self, arrays: Sequence[Array], starts: Sequence[int], kept: int, finders: list[Finder],
        sums: np.dtype[Any] | None, compute: Loaded | None,
    ) -> None:  # fmt: skip
        """`starts`: the addresses that calls give, for these arrays."""
        self.finders, self.sums, self.compute = finders, sums, compute
        shape = arrays[0].shape
        self.offsets = [address(x) - start for x, start in zip(arrays, starts, strict=True)]
        rows, self.length = prod(shape[:kept]), prod(shape[kept:])
        slots = prod(finder.slots - 1 for finder in finders) + 1
        strides = [*zip(*(x.strides for x in arrays), strict=True)]
        self.outer = merge([(shape[i], *strides[i]) for i in range(kept)])
        self.inner = merge([(shape[i], *strides[i]) for i in range(kept, len(shape))])
        kind = "i" if sums is None else sums.kind
        self.table = _COUNT if kind in "iu" else _COMPLEX if kind == "c" else _DOUBLE
        # The order of float additions depends on lengths only, not on the number of threads.
        shares = threads.num_threads() if kind in "iu" else MOST_SHARES
        shares = min(shares, self.length // max(SHARE, 4 * slots)) if rows < _FEW_ROWS else 1
        split = -(-self.length // max(1, shares))
        self.split = -(-split // at.JOINT_MOST) * at.JOINT_MOST
        self.tables = (max(1, -(-self.length // self.split)), rows, slots)
        self.num_bytes = sum(x.nbytes for x in arrays)
        self.arguments, self.slots_of_arrays = self._arguments(arrays)
        self.kernel = self._kernel()

    def _add(self) -> int:
        """Return the address of the function that adds a run's weights to a table."""
        sums, read = self.sums, self._dtype_of_weights
        name = "ones" if sums is None else "integers" if self.table == _COUNT else "floats"

        def generate() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_kernels
            from gpualgo._cpu.packing import storage

            if name == "ones":
                return cpu_kernels.add_ones()
            number = np.dtype(f"f{read.itemsize // 2}") if read.kind == "c" else read
            return cpu_kernels.add_weights(storage(number), 2 if read.kind == "c" else 1)

        return get_entry(("histogram", "add", name, read), generate)

    @property
    def _dtype_of_weights(self) -> np.dtype[Any]:
        """The dtype that weights are read as."""
        if self.sums is None or self.sums.kind in "iu":
            return _COUNT
        return self.sums if self.sums.itemsize >= 4 else np.dtype(np.float32)

    def _kernel(self) -> Any:
        def generate() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_kernels

            return cpu_kernels.joint_kernel()

        return get_kernel(("histogram", "joint"), generate)

    def _arguments(self, arrays: Sequence[Array]) -> tuple[Array, list[int]]:
        """Return the argument table without the addresses of arrays, and these addresses' slots."""
        room, (_, rows, slots) = ScratchLayout(), self.tables
        room.take(2 * at.JOINT_SLOT_BYTES)
        fields: list[Sequence[int]] = []
        for k, (x, dtype) in enumerate(zip(arrays, self._read_dtypes(arrays), strict=True)):
            dims = [(dim[0], dim[1 + k]) for dim in self.inner]
            is_direct = is_dense(dims, 0, x.itemsize)
            strides = [*(dim[1 + k] for dim in self.outer), *(dim[1] for dim in dims)]
            of_x = field_arguments(0, x.dtype, dtype, is_direct, at.JOINT_MOST, room)
            fields.append([*of_x, *strides])
        addresses = room.take(8 * max(len(arrays), len(self.finders)))
        compute = 0 if self.compute is None else self.compute.address
        sample_bytes = sum(finder.dtype.itemsize for finder in self.finders)
        computed = room.take(at.JOINT_MOST * sample_bytes) if compute else 0
        self.scratch_bytes = room.take(8)
        row_bytes = slots * self.table.itemsize
        head: list[Sequence[int]] = [
            (len(self.finders), self.length, rows, self.split, self._add()),
            (0, row_bytes, rows * row_bytes),  # tables
            (len(self.outer), len(self.inner)),
            (len(arrays), addresses, compute, computed),
            *(self._stage(finder) for finder in self.finders),
            [dim[0] for dim in self.outer],
            [dim[0] for dim in self.inner],
        ]
        first, step = sum(map(len, head)), len(fields[0])
        return table(*head, *fields), [first + START + step * k for k in range(len(arrays))]

    def _stage(self, finder: Finder) -> tuple[int, int, int]:
        return finder.stage, 0 if finder.table is None else address(finder.table), finder.slots - 1

    def _read_dtypes(self, arrays: Sequence[Array]) -> list[np.dtype[Any]]:
        dtypes = [x.dtype for x in arrays]
        if self.compute is None:
            dtypes[: len(self.finders)] = [finder.dtype for finder in self.finders]
        if self.sums is not None:
            is_unsigned = dtypes[-1].kind == "u" and self.table == _COUNT
            dtypes[-1] = np.dtype(np.uint64) if is_unsigned else self._dtype_of_weights
        return dtypes

    def run(self, starts: Sequence[int]) -> Array:
        """Return the counts or sums of each row, of arrays that start at these addresses."""
        tables = np.zeros(self.tables, self.table)
        arguments = self.arguments.copy()
        arguments[self.slots_of_arrays] = [*map(operator.add, starts, self.offsets)]
        arguments[at.JOINT_TABLES] = address(tables)
        args_address, kernel, scratch = address(arguments), self.kernel, self.scratch_bytes

        def add(memory: Array, first: int, last: int) -> None:
            kernel(args_address, address(memory), first, last)

        shares, rows, _ = self.tables
        threads.run_with_own(
            lambda: np.empty(scratch, np.uint8), add, shares * rows, self.num_bytes
        )
        for share in tables[1:]:
            tables[0] += share
        total: Array = tables[0, :, :-1]
        return total
