"""Histograms on CPU cores: tables of shares of the samples, joined in order."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import problem as at
from gpualgo._algorithms.histogram.cpu_bins import Finder, finder_for, stage
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._base import records, threads
from gpualgo._cpu.image import Loaded
from gpualgo._cpu.kernels import compute_code, get_entry, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import ScratchLayout, field_arguments, merge, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import START, Plan, bytes_of, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

Dtype = np.dtype[Any]

_MANY_SLOTS = 4096  # with more slots, or runs of several arrays, two tables would not fit L1
_GROUP_BYTES = 1 << 18  # of the tables of rows read together, which stay in L2
_LINE_BYTES = 64
_LINE_TABLE_BYTES = 1 << 22  # most bytes of the tables of rows read together for their cache lines
SHARE, MOST_SHARES = 1 << 16, 16  # samples per share of a row, at least; shares of a row
_COUNT_SHARE = 1 << 14  # the same for counts, which are added in any order
_SHARES_PER_THREAD = 4
_FEW_ROWS = 64  # more rows have one share each
_COUNTER_BITS = 32
_DOUBLE, _COUNT = np.dtype(np.float64), np.dtype(np.int64)


class Sink(NamedTuple):
    """What tables add up for each bin."""

    weight: Dtype | None  # a part of a weight, as it is read; None: each sample counts as one
    number: Dtype  # a part of a sum in a table
    total: Dtype  # a sum in the target

    @property
    def parts(self) -> int:
        return self.total.itemsize // 8

    def functions(self) -> tuple[int, int]:
        """Return the addresses of the functions that add a run and that write tables."""
        add = named("histogram", "add_ones")
        if self.weight is not None:
            add = named("histogram", "add_weights", self.weight, self.parts)
        return get_entry(*add), get_entry(*named("histogram", "flush", self.number))


def _sink(sums: Dtype | None) -> Sink:
    """Return the sink of counts, or of weights that are added up in a dtype."""
    if sums is None:
        return Sink(None, np.dtype(np.uint32), _COUNT)
    if sums.kind in "iu":
        return Sink(_COUNT, _COUNT, _COUNT)
    read = _dtype_of_weights(sums, sums)
    if sums.kind == "c":
        return Sink(np.dtype(f"f{read.itemsize // 2}"), _DOUBLE, np.dtype(np.complex128))
    return Sink(read, _DOUBLE, _DOUBLE)


def _dtype_of_weights(sums: Dtype, weights: Dtype) -> Dtype:
    """Return what the kernel reads weights as, of which float ones are rounded to the sums."""
    if sums.kind in "iu":
        return np.dtype(np.uint64) if weights.kind == "u" else _COUNT
    return sums if sums.itemsize >= 4 else np.dtype(np.float32)


@planners.for_cpu.register(Histogram)
def _(
    problem: Histogram, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> Plan:
    """The result has any dtype and strides. Each array is read once.

    The arrays have one shape and any strides: the samples, or the inputs of op's source, which
    computes samples; then the weights. A weight that is one number is the initial value.
    """
    shape, num_samples = arrays[0].shape, arrays[0].size
    finders = [finder_for(problem, bins, num_samples) for bins in problem.bins]
    if None in finders:  # no bin can hold a sample of this dtype
        return Plan(_clear, ())
    sums = problem.dtype if problem.has_array else None
    is_number = problem.has_weights and not problem.has_array
    # The kernel's conversion of weights to wider dtypes rounds once, as this one does.
    is_converted = sums is not None and sums != arrays[-1].dtype
    is_converted = is_converted and problem.dtype.itemsize < 4 and problem.dtype.kind not in "iu"

    def converted(arrays: Sequence[Array]) -> Sequence[Array]:
        return [*arrays[:-1], arrays[-1].astype(problem.dtype)] if is_converted else arrays

    with np.errstate(all="ignore"):
        arrays = converted(arrays)
    compute = None
    if op is not None and isinstance(problem.element, records.Computed):
        sample = records.record(map(str, range(len(finders))), [f.dtype for f in finders if f])
        compute = compute_code(op.source, problem.element, sample, at.MOST)
    else:
        arrays = [x.view(np.uint8) if x.dtype.kind == "b" else x for x in arrays]
    # Rows, then samples, in memory order.
    starts, spans = [address(x) for x in arrays], [_span(arrays, i) for i in range(len(shape))]
    kept = sorted(set(range(len(shape))).difference(problem.axes), key=lambda i: -spans[i])
    counted = sorted(problem.axes, key=lambda i: -spans[i])
    ordered = [x.transpose(kept + counted) for x in arrays]
    num_kept = len(kept)
    if sums is None:  # the order of samples does not matter
        flips = [all(x.strides[i] < 0 for x in ordered) for i in range(num_kept, len(shape))]
        index: Any = (..., *(slice(None, None, -1 if flip else 1) for flip in flips))
        ordered = [x[index] for x in ordered]
    order = [*(sorted(kept).index(axis) for axis in kept)]
    order += range(num_kept, num_kept + len(finders))
    work = _Work(starts, num_kept, [f for f in finders if f], _sink(sums), sums, compute)
    jobs = _jobs(ordered, work, results[0].transpose(order))
    routine = compiled("histogram", num_samples, at.MOST, bytes_of(arrays))
    if len(jobs) == 1 and jobs[0][1].is_direct and not (is_converted or is_number):
        return jobs[0][1].launch.plan(routine)

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        out = results[0].transpose(order)
        arrays = converted(arrays)
        for part, job in jobs:
            totals = job.totals(arrays)
            out[part] = _times(init, totals, problem.dtype) if is_number else totals

    return Plan(np.errstate(all="ignore")(run) if problem.has_weights else run, [routine])


def _clear(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
    results[0][...] = 0


def _span(arrays: Sequence[Array], axis: int) -> int:
    return sum(abs(x.strides[axis]) for x in arrays)


def _times(init: int, counts: Array, dtype: Dtype) -> Array:
    """Return counts times the weight at an address, rounded once."""
    weight = np.frombuffer(ctypes.string_at(init, dtype.itemsize), dtype)[0]
    if dtype.kind in "iu":
        return counts * np.asarray(weight).astype(np.int64)
    if dtype.kind == "c":
        result = np.empty(counts.shape, np.complex128)
        result.real, result.imag = (np.where(counts, counts * np.float64(x), 0.0) + 0.0
                                    for x in (weight.real, weight.imag))  # fmt: skip
        return result
    return np.where(counts, counts * np.float64(weight), 0.0) + 0.0


class _Work(NamedTuple):
    """What the jobs of a plan have in common."""

    starts: list[int]  # the addresses that calls give, for these arrays
    kept: int  # axes that are not counted over, before the others
    finders: list[Finder]
    sink: Sink
    sums: Dtype | None  # the result's dtype, if an array of weights is added up
    compute: Loaded | None

    @property
    def num_bins(self) -> int:
        return prod(finder.slots - 1 for finder in self.finders)

    @property
    def counts_values(self) -> bool:
        """Whether slots are 8-bit samples, whose counts get their bins at the end."""
        is_byte = len(self.finders) == 1 and self.finders[0].dtype.itemsize == 1
        return is_byte and self.sink.weight is None

    @property
    def slots(self) -> int:
        return 256 if self.counts_values else self.num_bins + 1

    def stages(self) -> list[tuple[int, int, int]]:
        if self.counts_values:
            return [(stage("by_value", np.dtype(np.uint8)), 0, 0)]
        return [(finder.stage, address(finder.table), finder.slots - 1) for finder in self.finders]

    @property
    def row_bytes(self) -> int:
        return self.slots * self.sink.parts * self.sink.number.itemsize

    def dtypes(self, arrays: Sequence[Array]) -> list[Dtype]:
        """Return what the kernel reads the arrays' numbers as."""
        dtypes = [x.dtype for x in arrays]
        if self.compute is None:
            dtypes[: len(self.finders)] = [finder.dtype for finder in self.finders]
        if self.sums is not None:
            dtypes[-1] = _dtype_of_weights(self.sums, dtypes[-1])
        return dtypes


def _jobs(arrays: Sequence[Array], work: _Work, out: Array) -> list[tuple[Any, _Job]]:
    """Return the jobs that count over all but the kept axes, with the parts they write.

    Strides of the kept axes do not increase, nor do those of the others.
    """
    kept = work.kept
    if not kept:
        return [(..., _job(arrays, work, 1, out))]
    jobs, first, neighbours = [], 0, arrays[0].shape[kept - 1]
    while first < neighbours:  # groups of one size, then the remaining rows
        group = _group_rows(arrays, kept, neighbours - first, work.row_bytes)
        last = neighbours - (neighbours - first) % group
        part = (*[slice(None)] * (kept - 1), slice(first, last))
        jobs.append((part, _job([x[part] for x in arrays], work, group, out[part])))
        first = last
    return jobs


def _group_rows(arrays: Sequence[Array], kept: int, neighbours: int, row_bytes: int) -> int:
    """Return how many neighbouring rows are read together, because their samples interleave."""
    if kept == arrays[0].ndim or _span(arrays, kept - 1) >= _span(arrays, -1):
        return 1
    line = min(_LINE_BYTES // max(x.itemsize for x in arrays), _LINE_TABLE_BYTES // row_bytes)
    most = min(at.MOST, max(1, line, _GROUP_BYTES // row_bytes))
    return -(-neighbours // -(-neighbours // most))  # groups of nearly equal size


@lru_cache(64)
def _table_offsets(group: int, slots: int) -> Array:
    """Return for each sample of a run the offset of its row's table."""
    return (np.arange(at.MOST) % group * slots).astype(np.int32)


class _Job(NamedTuple):
    """One pass over arrays."""

    launch: Launch
    shape: tuple[int, ...]  # of the target: shares, then the result's
    total: Dtype  # of the target
    is_direct: bool  # the result is the target

    def totals(self, arrays: Sequence[Array]) -> Array:
        parts = np.empty(self.shape, self.total)
        self.launch((0, *arrays, parts))
        total: Array = parts[0]
        for i in range(1, len(parts)):
            total += parts[i]
        return total


def _job(arrays: Sequence[Array], work: _Work, group: int, out: Array) -> _Job:
    """Return the job for groups of rows; `out` is an array of the result's layout."""
    kept, sink, slots, shape = work.kept, work.sink, work.slots, arrays[0].shape
    rows, length = prod(shape[:kept]), prod(shape[kept:])
    # The order of float additions depends on lengths only, not on the number of threads.
    cores = threads.num_threads()
    shares, least = _SHARES_PER_THREAD * cores * (cores > 1), _COUNT_SHARE
    if sink.number == _DOUBLE:
        shares, least = MOST_SHARES, SHARE
    shares = min(shares, length // max(least, 4 * slots)) if rows < _FEW_ROWS else 1
    split = -(-length // max(1, shares, length >> _COUNTER_BITS - 1))
    split = -(-split // at.MOST) * at.MOST
    shares = max(1, -(-length // split))
    fits = slots <= _MANY_SLOTS and len(arrays) == 1
    copies = 1 + (group == 1 and length >= 2 * slots and fits and sink.weight is None)
    places = _table_offsets(group, slots) if group > 1 else None

    outer = [(n, *(x.strides[i] for x in arrays)) for i, n in enumerate(shape)]
    outer, inner = outer[:kept], outer[kept:]
    if group > 1:
        n, *strides = outer.pop()
        outer.append((n // group, *(stride * group for stride in strides)))
        inner.append((group, *strides))
    outer, inner = merge(outer), merge(inner)
    room, fields = ScratchLayout(), []
    room.take(2 * at.SLOT_BYTES)
    for k, (x, dtype) in enumerate(zip(arrays, work.dtypes(arrays), strict=True)):
        dims = [(dim[0], dim[1 + k]) for dim in inner]
        of_x = field_arguments(x.dtype, dtype, dims, 0, x.size, at.MOST, room)
        strides = [*(dim[1 + k] for dim in outer), *(dim[1] for dim in dims)]
        fields.append([*of_x, address(x) - work.starts[k], *strides])
    addresses = room.take(8 * max(len(arrays), len(work.finders)))
    compute = 0 if work.compute is None else work.compute.address
    sample_bytes = sum(finder.dtype.itemsize for finder in work.finders)
    computed = room.take(at.MOST * sample_bytes) if compute else 0
    tables_size = -(-group * copies * work.row_bytes // 8)
    tables = room.take(8 * tables_size)
    num_sums = work.num_bins * sink.parts
    bins_of_slots = address(work.finders[0].table) if work.counts_values else 0
    head: list[Sequence[int]] = [
        (0, len(work.finders), length * group, rows // group, split * group),
        (at.MOST // group * group, *sink.functions(), 0 if places is None else address(places)),
        (tables, tables_size, group, copies, (copies - 1) * work.row_bytes, slots * sink.parts),
        (0, 8 * num_sums * group, num_sums, bins_of_slots),
        (len(outer), len(inner), len(arrays), addresses, compute, computed),
        *work.stages(),
        [dim[0] for dim in outer],
        [dim[0] for dim in inner],
    ]
    first, step = sum(map(len, head)), len(fields[0])
    launch = Launch(
        get_kernel(*named("histogram", "histogram_kernel")), table(*head, *fields),
        (at.INIT, *(first + START + step * k for k in range(len(arrays))), at.TARGET),
        room.size, shares * (rows // group), bytes_of(arrays) + 8 * out.size,
        (work, places),
    )  # fmt: skip
    is_whole = shares == 1 and out.dtype.itemsize == sink.total.itemsize
    is_direct = is_whole and out.flags.c_contiguous
    return _Job(launch, (shares, *out.shape), sink.total, is_direct)
