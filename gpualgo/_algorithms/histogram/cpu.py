"""Histogram on CPU cores: per-thread tables of counters, merged at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.histogram import cpu_parameters as hk
from gpualgo._algorithms.histogram.bins import UNMADE, Bins
from gpualgo._algorithms.histogram.cpu_parameters import UPPER
from gpualgo._base import dtypes, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import get_entry, get_kernel, scratch
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import merge, packer, table
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.problem import Histogram
    from gpualgo._pipeline.problem import Prepared, Problem


# --- Selection of the stage that finds the slots of samples, and its lookup table.

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
        """Memory of its arrays."""
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
    """Return the address of a stage for samples of dtype."""

    def generate() -> Any:
        from gpualgo._algorithms.histogram import cpu_kernels
        from gpualgo._cpu.elements import storage

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


Array = np.ndarray[Any, Any]

_COPIES = 4  # tables per row, used in turn: else updates of equal samples wait for each other
_MANY_SLOTS = 4096  # with more slots, copies would not fit L1
_GROUP_BYTES = 1 << 18  # of the tables of rows read together, which stay in L2
_LINE_BYTES = 64
_LINE_TABLE_BYTES = 1 << 22  # most bytes of the tables of rows read together for their cache lines
_SHARED_BYTES = 1 << 22  # most bytes of the tables that each thread has for all rows
_TASK_RUNS = 8


def histogram(x: Array, out: Array, problem: Histogram) -> None:
    """Write the counts of x to out, of the result's shape and any integer dtype and strides.

    x has at least one element and any strides. Arguments are already checked. Reads x once.
    """
    if x.dtype.kind == "b":
        x = x.view(np.uint8)
    finder = finder_for(problem, problem.bins, x.size)
    if finder is None:  # no bin can hold a sample of this dtype
        out[...] = 0
        return
    if finder.dtype != x.dtype:
        x = x.astype(finder.dtype)
    # Rows, then samples, in memory order: counts do not depend on it.
    kept = sorted(set(range(x.ndim)).difference(problem.axes), key=lambda i: -abs(x.strides[i]))
    rank = {axis: position for position, axis in enumerate(sorted(kept))}
    out = out.transpose([*(rank[axis] for axis in kept), len(kept)])
    counted = sorted(problem.axes, key=lambda i: -abs(x.strides[i]))
    x = x.transpose(kept + counted)
    directions = (slice(None, None, -1 if stride < 0 else 1) for stride in x.strides[len(kept) :])
    # `...` gives an array even if it is 0-d
    index: Any = (*[slice(None)] * len(kept), *directions, ...)
    _count(x[index], len(kept), out, finder)


def routines(x: Array, problem: Histogram) -> list[Routine]:
    """Return the routines of `histogram`."""
    if not x.size or not prod(problem.results[0].shape):
        return []
    row = x.size if len(problem.axes) == x.ndim else problem.num_samples
    return [
        compiled(
            "histogram", x.size, max(row, 1) if row < x.size else _TASK_RUNS * hk.MOST, x.nbytes
        )
    ]


def prepared(x: Array, out: Array, problem: Histogram) -> Prepared | None:
    """Return a function that counts few samples with x's layout; None if it does not apply."""
    is_few = x.nbytes <= threads.SMALL_BYTES and len(problem.axes) == x.ndim
    finder = finder_for(problem, problem.bins, x.size) if is_few else None
    if finder is None or not x.flags.c_contiguous or out.dtype.itemsize != 8:
        return None
    if finder.dtype != x.dtype and x.dtype.kind != "b":
        return None
    job = _Job(x.reshape(-1), 0, 1, finder, out.shape[-1])
    launch, tables = job.launch(), (finder, job.places)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        assert tables  # kept alive: the launch holds their addresses only
        launch((address(arrays[0]), address(results[0])))

    return run


def _count(x: Array, kept: int, out: Array, finder: Finder) -> None:
    """Count over all but the first `kept` axes; in both parts, strides do not increase."""
    group = _group_rows(x, kept, finder)
    if group > 1 and (remainder := x.shape[kept - 1] % group):
        head = (*[slice(None)] * (kept - 1), slice(0, -remainder))
        tail = (*head[:-1], slice(-remainder, None))
        _count(x[head], kept, out[head], finder)
        _count(x[tail], kept, out[tail], finder)
        return
    job = _Job(x, kept, group, finder, out.shape[-1])
    if job.is_shared:
        counts = job.run_shared()
    elif out.flags.c_contiguous and out.dtype.itemsize == 8:
        job.run_rows(out)
        return
    else:
        counts = np.empty(out.shape, np.int64)
        job.run_rows(counts)
    out[...] = counts.reshape(out.shape)


def _group_rows(x: Array, kept: int, finder: Finder) -> int:
    """Return how many neighbouring rows are read together, because their samples interleave."""
    if kept in (0, x.ndim) or abs(x.strides[kept - 1]) >= abs(x.strides[-1]):
        return 1
    row_bytes = 4 * finder.slots
    line = min(_LINE_BYTES // x.itemsize, _LINE_TABLE_BYTES // row_bytes)
    most = min(hk.MOST, max(1, line, _GROUP_BYTES // row_bytes))
    neighbours: int = x.shape[kept - 1]
    return -(-neighbours // -(-neighbours // most))  # groups of nearly equal size


@lru_cache(64)
def _table_offsets(group: int, copies: int, slots: int) -> Array:
    """Return for each sample of a run the offset of the table that counts it."""
    order = np.arange(hk.MOST)
    row, copy = order % group, order // group % copies
    return ((row * copies + copy) * slots).astype(np.int32)


class _Job:
    """One pass over an array: its layout, tables and tasks."""

    def __init__(self, x: Array, kept: int, group: int, finder: Finder, num_bins: int) -> None:
        self.x, self.finder, self.num_bins, self.group = x, finder, num_bins, group
        rows, self.length = prod(x.shape[:kept]), prod(x.shape[kept:])
        self.groups = rows // group
        self.outer = [*zip(x.shape[:kept], x.strides[:kept], strict=True)]
        self.inner = [*zip(x.shape[kept:], x.strides[kept:], strict=True)]
        if group > 1:
            n, stride = self.outer[-1]
            self.outer[-1] = (n // group, stride * group)
            self.inner.append((group, stride))
        self.counter = np.dtype(np.uint32 if x.size < 1 << 32 else np.uint64)
        is_long = self.length >= _COPIES * finder.slots
        self.copies = _COPIES if finder.slots <= _MANY_SLOTS and is_long and group < 4 else 1
        self.tables = (rows, self.copies, finder.slots)
        # Few rows: all cores work on each row, in private tables.
        few = self.groups < 4 * threads.num_threads()
        fits = prod(self.tables) * self.counter.itemsize <= _SHARED_BYTES
        self.is_shared = rows == 1 or (few and fits and self.length >= finder.slots)
        self.places = _table_offsets(group, self.copies, finder.slots)

    def _arguments(self, split: int, target: int) -> Array:
        """Return the counting kernel's table of arguments."""
        finder, outer, inner = self.finder, merge(self.outer), merge(self.inner)
        size = self.x.itemsize
        direct = not inner or (len(inner) == 1 and inner[0][1] == size)
        step = hk.MOST // self.group * self.group
        stage_table = 0 if finder.table is None else address(finder.table)
        bin_of_slot = 0 if finder.bin_of_slot is None else address(finder.bin_of_slot)
        return table(
            (address(self.x), size, self.length * self.group, self.groups, split, step),
            (finder.stage, stage_table, 0 if direct else packer(size), address(self.places)),
            (self.group, self.copies, finder.slots, target, self.num_bins, bin_of_slot),
            (len(outer), len(inner)),
            *zip(*outer, strict=True),
            *zip(*inner, strict=True),
        )

    def _kernel(self) -> Any:
        def generate() -> Any:
            from gpualgo._algorithms.histogram.cpu_kernels import counting_kernel
            from gpualgo._cpu.elements import storage

            return counting_kernel(storage(self.counter))

        return get_kernel(("histogram", self.counter), generate)

    def launch(self) -> Launch:
        """Return the launch that counts one row in one thread, into 64-bit counters."""
        arguments = self._arguments(self.length, 1)
        size = self.copies * self.finder.slots * self.counter.itemsize
        slots = hk.X, hk.TARGET
        return Launch(self._kernel(), arguments, slots, hk.HEAD_BYTES + size, 1, 0)

    def run_rows(self, result: Array) -> None:
        """Count each row in one thread, into an array of 64-bit counters."""
        arguments = self._arguments(self.length * self.group, address(result))
        args_address, kernel = address(arguments), self._kernel()
        size = self.group * self.copies * self.finder.slots * self.counter.itemsize

        def body(first: int, last: int) -> None:
            memory = scratch(hk.HEAD_BYTES + size)
            kernel(args_address, address(memory), first, last)

        threads.run(body, self.groups, self.x.nbytes + result.nbytes)

    def run_shared(self) -> Array:
        """Return the counts of all rows, counted by each thread in private tables."""
        split = _TASK_RUNS * hk.MOST // self.group * self.group
        arguments = self._arguments(split, 0)
        args_address, kernel = address(arguments), self._kernel()
        size = prod(self.tables) * self.counter.itemsize
        free: list[Array] = []  # tables that no thread uses at present

        def body(first: int, last: int) -> None:
            try:
                memory = free.pop()
            except IndexError:
                memory = np.zeros(hk.HEAD_BYTES + size, np.uint8)
            kernel(args_address, address(memory), first, last)
            free.append(memory)

        num_tasks = self.groups * -(-self.length * self.group // split)
        if self.x.size < 2 * prod(self.tables):  # more tables would cost more than they gain
            body(0, num_tasks)
        else:
            threads.run(body, num_tasks, self.x.nbytes)
        return self._merged(free)

    def _merged(self, memories: list[Array]) -> Array:
        """Return the sums of all threads' tables and their copies, by row and bin."""
        tables = [m[hk.HEAD_BYTES :].view(self.counter).reshape(self.tables) for m in memories]
        total, *others = [t[:, copy] for t in tables for copy in range(self.copies)]
        for other in others:
            total = np.add(total, other, dtype=np.int64)
        bin_of_slot = self.finder.bin_of_slot
        if bin_of_slot is None:
            return total[:, : self.num_bins]
        counts = np.zeros((len(total), self.num_bins), np.int64)
        for slot in np.flatnonzero(bin_of_slot >= 0):
            counts[:, bin_of_slot[slot]] += total[:, slot].astype(np.int64)
        return counts
