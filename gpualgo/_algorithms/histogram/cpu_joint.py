"""Joint and weighted histograms on the CPU, and how the kernels of all histograms find bins.

Sums are exact (see sums.py), so the result depends neither on the split nor on the order.
"""

from __future__ import annotations

import mmap
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import sums as jk
from gpualgo._algorithms.histogram.bins import UNMADE, Bins
from gpualgo._algorithms.histogram.problem import MOST, UPPER, Histogram
from gpualgo._algorithms.histogram.sums import Sum, sum_of
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


# --- A thread's sums of a joint or weighted histogram on the CPU, and their merge.

MANY = 1 << 28  # samples after which carries are propagated; words have room for 2^29
_MAP_NORESERVE = 0x4000  # Linux's; mmap has no name for it


class Tables:
    """A thread's memory, and the sums in it as [part][digit][slot of all rows]."""

    def __init__(self, memory: Array, at: int, parts: int, planes: int, span: int) -> None:
        self.memory, self.num_samples = memory, 0
        words = memory[at:].view(np.int64)
        self.head = words[: jk.HEAD]
        self.sums = words[jk.HEAD :].reshape(parts, planes, -1)
        self.is_float, self.span = planes > 1, span

    def join(self, other: Tables) -> None:
        if not self.is_float:
            self.sums += other.sums
            return
        if self.num_samples + other.num_samples >= MANY:
            self.carry()
            other.carry()
        low, high = int(other.head[jk.LOW]), int(other.head[jk.HIGH])
        if high >= low:
            self.sums[:, low : high + self.span] += other.sums[:, low : high + self.span]
        if other.head[jk.SPECIALS]:
            self.sums[:, -1] |= other.sums[:, -1]
            self.head[jk.SPECIALS] = 1
        self._reach(low, high)

    def carry(self) -> None:
        """Propagate carries, leaving less than 32 bits in each word."""
        self.num_samples = 0
        if not self.is_float:
            return
        low, high = int(self.head[jk.LOW]), int(self.head[jk.HIGH])
        last = self.sums.shape[1] - 2  # the highest digit
        for digit in range(low, min(high + self.span, last)):
            word = self.sums[:, digit]
            self.sums[:, digit + 1] += word >> 32
            word &= 0xFFFF_FFFF
        if high >= low:
            self._reach(low, min(high + 1, last + 1 - self.span))

    def _reach(self, low: int, high: int) -> None:
        self.head[jk.LOW] = min(low, int(self.head[jk.LOW]))
        self.head[jk.HIGH] = max(high, int(self.head[jk.HIGH]))


def unreserved(num_bytes: int) -> Array:
    """Return zeroed bytes whose memory is allocated and accounted for when touched."""
    if sys.platform != "linux":
        return np.zeros(num_bytes, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, num_bytes, flags), np.uint8)
    except OSError:
        raise MemoryError(f"histogram: no {num_bytes} bytes of address space") from None


_SPLIT = 16 * jk.MOST
_SHARED_BYTES = 1 << 22  # of each thread's planes for all rows, limited to those weights reach
_PLANES = 4  # planes that weights usually reach
_LARGE_BYTES = 1 << 30  # larger tables of a thread use unreserved memory, mostly untouched


class _Computation(NamedTuple):
    """What is computed from a run of samples."""

    finders: list[Finder]  # one per dimension
    sums: Sum | None  # of weights
    compute: Loaded | None  # computes samples


def plan_of(problem: Histogram, arrays: Sequence[Array], op: Operator | None) -> Plan:
    """Return the plan of counts, or with weights of sums.

    The result has any strides. The arrays have one shape and any strides: the samples, or the
    inputs of op's source, which computes samples; then the weights. Weights that are one number are
    the initial value. Each array is read once. Some sample may be in each dimension's bins.
    """
    shape, element = arrays[0].shape, problem.element
    finders: list[Any] = [exact_finder_for(problem, bins, arrays[0].size) for bins in problem.bins]
    routine = compiled("histogram", arrays[0].size, MOST, bytes_of(arrays))
    has_number = problem.has_weights and not problem.has_array
    if has_number:
        arrays = [*arrays, np.broadcast_to(np.zeros((), problem.dtype), shape)]
    starts = [address(x) for x in arrays]
    # Samples in memory order: sums do not depend on it.
    kept = [i for i in range(len(shape)) if i not in problem.axes]
    counted = sorted(problem.axes, key=lambda i: -sum(abs(x.strides[i]) for x in arrays))
    arrays = [x.transpose(kept + counted) for x in arrays]
    compute = None
    if op is not None and isinstance(element, records.Computed):
        names = [str(i) for i in range(len(finders))]
        sample = records.record(names, [finder.dtype for finder in finders])
        compute = compute_code(op.source, element, sample, jk.MOST)
    else:
        arrays = [x.view(np.uint8) if x.dtype.kind == "b" else x for x in arrays]
    what = _Computation(finders, sum_of(problem.dtype) if problem.has_weights else None, compute)
    rows, length = arrays[0].shape[: len(kept)], problem.num_samples
    if prod(rows) > 1 and length >= MANY:
        jobs: list[tuple[Any, _Job]] = [
            (index, _Job([x[index] for x in arrays], starts, 0, what)) for index in np.ndindex(rows)
        ]
    else:
        jobs = [(..., _Job(arrays, starts, len(kept), what))]

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        starts = [address(x) for x in arrays]
        if has_number:
            starts.append(init)
        for index, job in jobs:
            part = results[0][index]
            part[...] = job.run(starts).reshape(part.shape)

    return Plan(run, [routine])


class _Job:
    """One pass over arrays: their layout, tables and tasks; addresses are added by each call."""

    def __init__(
        self, arrays: Sequence[Array], starts: Sequence[int], kept: int, what: _Computation
    ) -> None:
        """`starts`: the addresses that calls give, for these arrays."""
        self.finders, self.sums, self.compute = what
        finders, sums = self.finders, self.sums
        shape = arrays[0].shape
        self.offsets = [address(x) - start for x, start in zip(arrays, starts, strict=True)]
        self.size = arrays[0].size
        self.rows, self.length = prod(shape[:kept]), prod(shape[kept:])
        self.slots = prod(finder.slots - 1 for finder in finders) + 1
        strides = [*zip(*(x.strides for x in arrays), strict=True)]
        self.outer = merge([(shape[i], *strides[i]) for i in range(kept)])
        self.inner = merge([(shape[i], *strides[i]) for i in range(kept, len(shape))])
        self.parts, self.digits = (1, 1) if sums is None else (sums.parts, sums.digits)
        is_integer = sums is None or sums.format is None
        self.planes = 1 if is_integer else self.digits + 1
        self.span = 0 if sums is None or sums.format is None else jk.span_of(sums.format.mantissa)
        self.result = np.dtype(np.int64) if is_integer or sums is None else sums.dtype
        table_bytes = 8 * self.slots * min(self.planes, _PLANES) * self.parts
        few = self.rows < 4 * threads.num_threads()
        fits = self.rows * table_bytes <= _SHARED_BYTES and self.length >= self.slots
        self.is_shared = self.rows == 1 or (few and fits)
        self.num_bytes = sum(x.nbytes for x in arrays)
        self.split = _SPLIT if self.is_shared else -(-self.length // jk.MOST) * jk.MOST
        self.arguments, self.slots_of_arrays = self._arguments(arrays)
        self.kernel = self._kernel("joint")

    def _entry(self, name: str) -> int:
        """Return the address of the function that adds weights, or that finishes their sums."""
        sums = self.sums
        if sums is None or sums.format is None:
            ending = "ones" if sums is None and name == "add" else "integers"
            return get_entry(
                ("histogram", name, ending), lambda: getattr(_kernels(), f"{name}_{ending}")()
            )
        number, form, parts = sums.number, sums.format, sums.parts

        def generate() -> Callable[..., None]:
            from gpualgo._cpu.packing import storage

            kind = "i" if name == "add" else "u"  # signed integers keep the sign of floats
            bits = storage(np.dtype(f"{kind}{number.itemsize}"))
            function: Callable[..., None] = getattr(_kernels(), f"{name}_floats")(bits, form, parts)
            return function

        return get_entry(("histogram", name, number, parts, form.digits, *form), generate)

    def _kernel(self, name: str) -> Any:
        def generate() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_kernels

            function: Callable[..., None] = getattr(cpu_kernels, f"{name}_kernel")()
            return function

        return get_kernel(("histogram", name), generate)

    def _arguments(self, arrays: Sequence[Array]) -> tuple[Array, list[int]]:
        """Return the argument table without the addresses of arrays, and these addresses' slots."""
        room, rows = ScratchLayout(), self.rows if self.is_shared else 1
        room.take(2 * jk.SLOT_BYTES)
        fields: list[Sequence[int]] = []
        for k, (x, dtype) in enumerate(zip(arrays, self._read_dtypes(arrays), strict=True)):
            dims = [(dim[0], dim[1 + k]) for dim in self.inner]
            is_direct = is_dense(dims, 0, x.itemsize)
            strides = [*(dim[1 + k] for dim in self.outer), *(dim[1] for dim in dims)]
            of_x = field_arguments(0, x.dtype, dtype, is_direct, jk.MOST, room)
            fields.append([*of_x, *strides])
        addresses = room.take(8 * max(len(arrays), len(self.finders)))
        compute = 0 if self.compute is None else self.compute.address
        sample_bytes = sum(finder.dtype.itemsize for finder in self.finders)
        computed = room.take(jk.MOST * sample_bytes) if compute else 0
        self.tables = room.take(8 * jk.HEAD)  # offset in a thread's memory
        tables_bytes = 8 * (jk.HEAD + rows * self.slots * self.planes * self.parts)
        self.memory_bytes = self.tables + tables_bytes
        head: list[Sequence[int]] = [
            (len(self.finders), self.length, self.rows, self.split),
            (self._entry("add"), self._entry("finish"), self.tables),
            (0, self.slots * self.result.itemsize),  # target
            (self.slots, 8 * rows * self.slots, len(self.outer), len(self.inner)),
            (len(arrays), addresses, compute, computed),
            *(self._stage(finder) for finder in self.finders),
            [dim[0] for dim in self.outer],
            [dim[0] for dim in self.inner],
        ]
        first, step = sum(map(len, head)), len(fields[0])
        return table(*head, *fields), [first + START + step * k for k in range(len(arrays))]

    def _filled(self, starts: Sequence[int], target: int = 0) -> Array:
        arguments = self.arguments.copy()
        arguments[self.slots_of_arrays] = [*map(operator.add, starts, self.offsets)]
        arguments[jk.TARGET] = target
        return arguments

    def _stage(self, finder: Finder) -> tuple[int, int, int]:
        return finder.stage, 0 if finder.table is None else address(finder.table), finder.slots - 1

    def _read_dtypes(self, arrays: Sequence[Array]) -> list[np.dtype[Any]]:
        dtypes = [x.dtype for x in arrays]
        if self.compute is None:
            dtypes[: len(self.finders)] = [finder.dtype for finder in self.finders]
        if self.sums is not None:
            integer = np.dtype(np.uint64 if dtypes[-1].kind == "u" else np.int64)
            dtypes[-1] = integer if self.sums.format is None else self.sums.dtype
        return dtypes

    def _memory(self) -> Array:
        num_bytes = self.memory_bytes
        if num_bytes > _LARGE_BYTES and self.planes > _PLANES:
            np.empty(num_bytes // self.planes * _PLANES, np.uint8)  # MemoryError, if any, now
            memory = unreserved(num_bytes + 64)
        else:
            memory = np.zeros(num_bytes + 64, np.uint8)
        memory = memory[-address(memory) % 64 :][:num_bytes]
        memory[self.tables :][: 8 * jk.HEAD].view(np.int64)[:2] = jk.NO_LOW, jk.NO_HIGH
        return memory

    def run(self, starts: Sequence[int]) -> Array:
        """Return the counts or sums of each row, of arrays that start at these addresses."""
        result = self._shared(starts) if self.is_shared else self._by_row(starts)
        return result[:, :-1]

    def _by_row(self, starts: Sequence[int]) -> Array:
        """Return the sums of each row, computed by one thread per row, and of no bin."""
        result = np.empty((self.rows, self.slots), self.result)
        arguments = self._filled(starts, address(result))
        args_address, kernel = address(arguments), self.kernel

        def add(memory: Array, first: int, last: int) -> None:
            kernel(args_address, address(memory), first, last)

        threads.run_with_own(self._memory, add, self.rows, self.num_bytes + result.nbytes)
        return result

    def _shared(self, starts: Sequence[int]) -> Array:
        """Return the sums of all rows, computed by each thread in private tables."""
        arguments = self._filled(starts)
        args_address, kernel = address(arguments), self.kernel

        def new() -> Tables:
            return Tables(self._memory(), self.tables, self.parts, self.planes, self.span)

        def add(own: Tables, first: int, last: int) -> None:
            step = MANY // _SPLIT
            for begin in range(first, last, step):
                end = min(last, begin + step)
                kernel(args_address, address(own.memory), begin, end)
                own.num_samples += (end - begin) * _SPLIT
                if own.num_samples >= MANY:
                    own.carry()

        num_tasks = self.rows * -(-self.length // _SPLIT)
        # With few samples more tables would cost more than they gain.
        work = 0 if self.size < 2 * self.slots else self.num_bytes
        total, *others = threads.run_with_own(new, add, num_tasks, work)
        for other in others:
            total.join(other)
        return self._finished(total)

    def _finished(self, total: Tables) -> Array:
        result = np.empty((self.rows, self.slots), self.result)
        head, sums = address(total.head), address(total.sums)
        plane, item = 8 * self.rows * self.slots, self.result.itemsize
        arguments = table((self._entry("finish"), head, sums, plane, address(result), item))
        args_address, kernel = address(arguments), self._kernel("finishing")
        body = lambda first, last: kernel(args_address, 0, first, last)  # noqa: E731
        planes = max(1, int(total.head[jk.HIGH] - total.head[jk.LOW]))
        threads.run(body, result.size, planes * plane * self.parts)
        return result


def _kernels() -> Any:
    from gpualgo._algorithms.histogram import cpu_kernels

    return cpu_kernels
