"""Histogram on CPU cores: per-thread tables of counters, merged at the end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import cpu_joint
from gpualgo._algorithms.histogram import problem as hk
from gpualgo._algorithms.histogram.cpu_joint import Finder, finder_for
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._base import threads
from gpualgo._cpu.kernels import get_kernel
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, merge, packer, table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

_COPIES = 4  # tables per row, used in turn: else updates of equal samples wait for each other
_MANY_SLOTS = 4096  # with more slots, copies would not fit L1
_GROUP_BYTES = 1 << 18  # of the tables of rows read together, which stay in L2
_LINE_BYTES = 64
_LINE_TABLE_BYTES = 1 << 22  # most bytes of the tables of rows read together for their cache lines
_SHARED_BYTES = 1 << 22  # most bytes of the tables that each thread has for all rows
_TASK_RUNS = 8


@planners.for_cpu.register(Histogram)
def _(
    problem: Histogram, arrays: Sequence[Array], results: Sequence[Array], op: Operator | None
) -> Plan:
    """The result has any integer dtype and strides. Each sample is read once."""
    (out,) = results
    num_samples = arrays[0].size
    finders = [finder_for(problem, bins, num_samples) for bins in problem.bins]
    if None in finders:  # no bin can hold a sample of this dtype
        return Plan(_clear, ())
    if problem.is_joint:
        return cpu_joint.plan_of(problem, arrays, op)
    (x,), (finder,) = arrays, finders
    assert finder is not None
    dtype = finder.dtype
    is_converted = x.dtype != dtype and x.dtype.kind != "b"
    x = np.empty_like(x, dtype, subok=False) if is_converted else x.view(dtype)
    # Rows, then samples, in memory order: counts do not depend on it.
    start, ndim = address(x), len(problem.kept)
    kept = sorted(set(range(x.ndim)).difference(problem.axes), key=lambda i: -abs(x.strides[i]))
    order = [*(sorted(kept).index(axis) for axis in kept), ndim]
    counted = sorted(problem.axes, key=lambda i: -abs(x.strides[i]))
    ordered = x.transpose(kept + counted)
    directions = (slice(None, None, -1 if stride < 0 else 1) for stride in ordered.strides[ndim:])
    # `...` gives an array even if it is 0-d
    index: Any = (*[slice(None)] * ndim, *directions, ...)
    jobs = _jobs(ordered[index], start, ndim, out.transpose(order), finder)
    row = num_samples if not ndim else problem.num_samples
    tile = row if row < num_samples else _TASK_RUNS * hk.MOST
    routine = compiled("histogram", num_samples, tile, x.nbytes)
    first = jobs[0][1]
    if len(jobs) == 1 and first.is_direct and not (first.is_shared or is_converted):
        launch, offset = first.launch, first.offset
        return Plan(lambda xs, outs, _: launch((address(xs[0]) + offset, outs[0])), [routine])

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        x, out = arrays[0], results[0].transpose(order)
        if is_converted:
            x = x.astype(dtype)
        start = address(x)
        for part, job in jobs:
            job.run(start, out[part])

    return Plan(run, [routine])


def _clear(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
    results[0][...] = 0


def _jobs(x: Array, start: int, kept: int, out: Array, finder: Finder) -> list[tuple[Any, _Job]]:
    """Return the jobs that count over all but the first `kept` axes, with the parts they write.

    Strides of the kept axes do not increase, nor do those of the others.
    """
    if not kept:
        return [(..., _Job(x, start, kept, 1, finder, out))]
    jobs, first, neighbours = [], 0, x.shape[kept - 1]
    while first < neighbours:  # groups of one size, then the remaining rows
        group = _group_rows(x, kept, neighbours - first, finder)
        last = neighbours - (neighbours - first) % group
        part = (*[slice(None)] * (kept - 1), slice(first, last))
        jobs.append((part, _Job(x[part], start, kept, group, finder, out[part])))
        first = last
    return jobs


def _group_rows(x: Array, kept: int, neighbours: int, finder: Finder) -> int:
    """Return how many neighbouring rows are read together, because their samples interleave."""
    if kept == x.ndim or abs(x.strides[kept - 1]) >= abs(x.strides[-1]):
        return 1
    row_bytes = 4 * finder.slots
    line = min(_LINE_BYTES // x.itemsize, _LINE_TABLE_BYTES // row_bytes)
    most = min(hk.MOST, max(1, line, _GROUP_BYTES // row_bytes))
    return -(-neighbours // -(-neighbours // most))  # groups of nearly equal size


@lru_cache(64)
def _table_offsets(group: int, copies: int, slots: int) -> Array:
    """Return for each sample of a run the offset of the table that counts it."""
    order = np.arange(hk.MOST)
    row, copy = order % group, order // group % copies
    return ((row * copies + copy) * slots).astype(np.int32)


class _Job:
    """One pass over an array: its layout, tables and tasks; addresses are added by each call."""

    def __init__(
        self, x: Array, start: int, kept: int, group: int, finder: Finder, out: Array
    ) -> None:
        """`start`: the address that calls give; `out`: an array of the result's layout."""
        self.finder, self.group, self.offset = finder, group, address(x) - start
        rows, self.length = prod(x.shape[:kept]), prod(x.shape[kept:])
        self.size, self.num_bytes, self.num_bins = x.size, x.nbytes, out.shape[-1]
        self.groups = rows // group
        outer = [*zip(x.shape[:kept], x.strides[:kept], strict=True)]
        inner = [*zip(x.shape[kept:], x.strides[kept:], strict=True)]
        if group > 1:
            n, stride = outer[-1]
            outer[-1] = (n // group, stride * group)
            inner.append((group, stride))
        self.counter = np.dtype(np.uint32 if x.size < 1 << 32 else np.uint64)
        is_long = self.length >= _COPIES * finder.slots
        copies = _COPIES if finder.slots <= _MANY_SLOTS and is_long and group < 4 else 1
        self.tables = (rows, copies, finder.slots)
        # Few rows: all cores work on each row, in private tables.
        table_bytes = prod(self.tables) * self.counter.itemsize
        fits = table_bytes <= _SHARED_BYTES and self.length >= finder.slots
        self.is_shared = x.nbytes > threads.SMALL_BYTES and (
            rows == 1 or (fits and self.groups < 4 * threads.num_threads())
        )
        self.is_direct = out.flags.c_contiguous and out.dtype.itemsize == 8
        self.places = _table_offsets(group, copies, finder.slots)
        self.kernel = self._kernel()
        self.split = self.length * group  # samples of a task
        if self.is_shared:
            self.split = _TASK_RUNS * hk.MOST // group * group
        self.arguments = self._arguments(outer, inner, x.itemsize)
        if not self.is_shared:  # each row in one thread
            scratch = hk.HEAD_BYTES + table_bytes // self.groups
            work = x.nbytes + 8 * out.size
            held = finder, self.places
            slots = hk.X, hk.TARGET
            self.launch = Launch(
                self.kernel, self.arguments, slots, scratch, self.groups, work, held
            )

    def _arguments(self, outer: Dims, inner: Dims, size: int) -> Array:
        """Return the counting kernel's table of arguments, without the addresses of arrays."""
        finder, (_, copies, slots) = self.finder, self.tables
        outer, inner = merge(outer), merge(inner)
        direct = not inner or (len(inner) == 1 and inner[0][1] == size)
        step = hk.MOST // self.group * self.group
        stage_table = 0 if finder.table is None else address(finder.table)
        bin_of_slot = 0 if finder.bin_of_slot is None else address(finder.bin_of_slot)
        return table(
            (0, size, self.length * self.group, self.groups, self.split, step),
            (finder.stage, stage_table, 0 if direct else packer(size), address(self.places)),
            (self.group, copies, slots, 0, self.num_bins, bin_of_slot),
            (len(outer), len(inner)),
            *zip(*outer, strict=True),
            *zip(*inner, strict=True),
        )

    def _kernel(self) -> Any:
        def generate() -> Any:
            from gpualgo._algorithms.histogram.cpu_kernels import counting_kernel
            from gpualgo._cpu.packing import storage

            return counting_kernel(storage(self.counter))

        return get_kernel(("histogram", self.counter), generate)

    def run(self, start: int, out: Array) -> None:
        """Write the counts of samples from an address on to a part of the result."""
        if self.is_shared:
            out[...] = self._shared(start + self.offset).reshape(out.shape)
        elif self.is_direct:
            self.launch((start + self.offset, out))
        else:
            counts = np.empty(out.shape, np.int64)
            self.launch((start + self.offset, counts))
            out[...] = counts

    def _shared(self, first_sample: int) -> Array:
        """Return the counts of all rows, counted by each thread in private tables."""
        arguments = self.arguments.copy()
        arguments[hk.X] = first_sample
        args_address, kernel = address(arguments), self.kernel
        size = prod(self.tables) * self.counter.itemsize

        def count(memory: Array, first: int, last: int) -> None:
            kernel(args_address, address(memory), first, last)

        def new() -> Array:
            return np.zeros(hk.HEAD_BYTES + size, np.uint8)

        num_tasks = self.groups * -(-self.length * self.group // self.split)
        # With few samples more tables would cost more than they gain.
        work = 0 if self.size < 2 * prod(self.tables) else self.num_bytes
        return self._merged(threads.run_with_own(new, count, num_tasks, work))

    def _merged(self, memories: list[Array]) -> Array:
        """Return the sums of all threads' tables and their copies, by row and bin."""
        tables = [m[hk.HEAD_BYTES :].view(self.counter).reshape(self.tables) for m in memories]
        total, *others = [t[:, copy] for t in tables for copy in range(self.tables[1])]
        for other in others:
            total = np.add(total, other, dtype=np.int64)
        bin_of_slot = self.finder.bin_of_slot
        if bin_of_slot is None:
            return total[:, : self.num_bins]
        counts = np.zeros((len(total), self.num_bins), np.int64)
        for slot in np.flatnonzero(bin_of_slot >= 0):
            counts[:, bin_of_slot[slot]] += total[:, slot].astype(np.int64)
        return counts
