"""Joint and weighted histograms on the CPU's cores: tables of sums, private to threads, joined.

Sums are exact (see sums.py), so that neither the cut nor the order changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import cpu_joint_parameters as jk
from gpualgo._algorithms.histogram.cpu_finder import Finder, exact_finder_for
from gpualgo._algorithms.histogram.cpu_joint_tables import MANY, Tables, unreserved
from gpualgo._algorithms.histogram.sums import Sum, sum_of
from gpualgo._base import records, threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.code import Loaded
from gpualgo._cpu.kernels import computing, get_entry, get_kernel
from gpualgo._cpu.layout import Room, address, is_dense, leaf, merge, table
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint_problem import JointHistogram

Array = np.ndarray[Any, Any]

_SPLIT = 16 * jk.MOST
_SHARED_BYTES = 1 << 22  # of the planes that weights reach in each thread's tables of all rows
_PLANES = 4  # which are about so many
_LARGE_BYTES = 1 << 30  # of a thread's tables, of which weights reach little


class _What(NamedTuple):
    """What is done with the samples of a run."""

    finders: list[Finder]  # of their bins
    sums: Sum | None  # of weights
    compute: Callable[[int], Loaded] | None  # makes so many of the numbers that are read


def histogram(
    arrays: Sequence[Array], out: Array, problem: JointHistogram, op: Operator | None
) -> None:
    """Write counts, or with weights sums, to out, of the result's shape, dtype and any strides.

    The arrays have one shape, at least one sample and any strides: those that samples are read, or
    by op's source computed, from, then the weights. Every argument has been checked. Reads each
    once.
    """
    finders = []
    for bins in problem.bins:
        finder = exact_finder_for(problem, bins, arrays[0].size)
        if finder is None:  # no bin can hold a sample of this dtype
            out[...] = 0
            return
        finders.append(finder)
    # Samples in memory's order: sums do not depend on it.
    kept = [i for i in range(arrays[0].ndim) if i not in problem.axes]
    counted = sorted(problem.axes, key=lambda i: -sum(abs(x.strides[i]) for x in arrays))
    arrays = [x.transpose(kept + counted) for x in arrays]
    sums = sum_of(problem.dtype) if problem.has_weights else None
    element = problem.element
    if op is None or not isinstance(element, records.Computed):
        arrays = [x.view(np.uint8) if x.dtype.kind == "b" else x for x in arrays]
        _add(arrays, len(kept), _What(finders, sums, None), out)
        return
    names = [str(i) for i in range(len(finders))]
    wanted = records.record(names, [finder.dtype for finder in finders])
    compute = partial(computing, op.source, element, wanted)
    with bound(op):
        _add(arrays, len(kept), _What(finders, sums, compute), out)


def _add(arrays: list[Array], kept: int, what: _What, out: Array) -> None:
    job = _Job(arrays, kept, what)
    rows = prod(arrays[0].shape[:kept])
    if rows > 1 and job.length >= MANY:
        for index in np.ndindex(arrays[0].shape[:kept]):
            _add([x[index] for x in arrays], 0, what, out[index])
        return
    found = job.run_shared() if job.is_shared else job.run_rows()
    out[...] = found[:, :-1].reshape(out.shape)


class _Job:
    """One run over arrays: their layout, the tables, and the tasks it is cut into."""

    def __init__(self, arrays: list[Array], kept: int, what: _What) -> None:
        self.arrays, (self.finders, self.sums, _) = arrays, what
        finders, sums = self.finders, self.sums
        self.compute = None if what.compute is None else what.compute(jk.MOST)  # held until the end
        shape = arrays[0].shape
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
        self.num_bytes = sum(min(x.nbytes, x.itemsize * x.size) for x in arrays)

    def _entry(self, name: str) -> int:
        """Return the address of what adds weights, or of what finishes their sums."""
        sums = self.sums
        if sums is None or sums.format is None:
            ending = "ones" if sums is None and name == "add" else "integers"

            def write() -> Callable[..., None]:
                from gpualgo._algorithms.histogram import cpu_sum_kernels

                made: Callable[..., None] = getattr(cpu_sum_kernels, f"{name}_{ending}")()
                return made

            return get_entry(("histogram", name, ending), write)

        def write_floats() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_sum_kernels
            from gpualgo._cpu.elements import storage

            kind = "i" if name == "add" else "u"  # the sign of integers is that of floats
            bits = storage(np.dtype(f"{kind}{sums.number.itemsize}"))
            write = getattr(cpu_sum_kernels, f"{name}_floats")
            made: Callable[..., None] = write(bits, sums.format, sums.parts)
            return made

        form = sums.format
        key = ("histogram", name, sums.number, sums.parts, form.digits, *form)
        return get_entry(key, write_floats)

    def _kernel(self, name: str) -> Any:
        def write() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_joint_kernels

            made: Callable[..., None] = getattr(cpu_joint_kernels, f"{name}_kernel")()
            return made

        return get_kernel(("histogram", name), write)

    def _arguments(self, rows: int, target: Array | None) -> tuple[Array, Array]:
        """Return the kernel's table of arguments, and empty memory for one thread."""
        room = Room()
        room.take(2 * jk.SLOT_BYTES)
        leaves: list[Sequence[int]] = []
        for k, (x, wanted) in enumerate(zip(self.arrays, self._wanted(), strict=True)):
            dims = [(dim[0], dim[1 + k]) for dim in self.inner]
            is_direct = is_dense(dims, 0, x.itemsize)
            leaves.append(leaf(address(x), x.dtype, wanted, is_direct, jk.MOST, room))
            leaves += [[dim[1 + k] for dim in self.outer], [dim[1] for dim in dims]]
        places = room.take(8 * max(len(self.arrays), len(self.finders)))
        compute = 0 if self.compute is None else self.compute.address
        sample_bytes = sum(finder.dtype.itemsize for finder in self.finders)
        computed = room.take(jk.MOST * sample_bytes) if compute else 0
        tables = room.take(8 * jk.HEAD)
        tables_bytes = 8 * (jk.HEAD + rows * self.slots * self.planes * self.parts)
        given = table(
            (len(self.finders), self.length, self.rows, self._split(target)),
            (self._entry("add"), self._entry("finish"), tables),
            (0, 0) if target is None else (address(target), target.strides[0]),
            (self.slots, 8 * rows * self.slots, len(self.outer), len(self.inner)),
            (len(self.arrays), places, compute, computed),
            *(self._stage(finder) for finder in self.finders),
            [dim[0] for dim in self.outer],
            [dim[0] for dim in self.inner],
            *leaves,
        )
        return given, np.array([tables, tables + tables_bytes])

    def _stage(self, finder: Finder) -> tuple[int, int, int]:
        return finder.stage, 0 if finder.table is None else address(finder.table), finder.slots - 1

    def _split(self, target: Array | None) -> int:
        return _SPLIT if target is None else -(-self.length // jk.MOST) * jk.MOST

    def _wanted(self) -> list[np.dtype[Any]]:
        """Return what each array's numbers are converted to."""
        own = [x.dtype for x in self.arrays]
        if self.compute is None:
            own[: len(self.finders)] = [finder.dtype for finder in self.finders]
        if self.sums is not None:
            integer = np.dtype(np.uint64 if own[-1].kind == "u" else np.int64)
            own[-1] = integer if self.sums.format is None else self.sums.dtype
        return own

    def _memory(self, tables: int, num_bytes: int) -> Array:
        if num_bytes > _LARGE_BYTES and self.planes > _PLANES:
            np.empty(num_bytes // self.planes * _PLANES, np.uint8)  # MemoryError, if at all, now
            memory = unreserved(num_bytes + 64)
        else:
            memory = np.zeros(num_bytes + 64, np.uint8)
        memory = memory[-address(memory) % 64 :][:num_bytes]
        memory[tables:][: 8 * jk.HEAD].view(np.int64)[:2] = jk.NO_LOW, jk.NO_HIGH
        return memory

    def run_rows(self) -> Array:
        """Return the sums of each row, each found by one thread."""
        result = np.empty((self.rows, self.slots), self.result)
        arguments, sizes = self._arguments(1, result)
        at, kernel = address(arguments), self._kernel("joint")
        free: list[Array] = []  # what threads have between two ranges of tasks

        def body(first: int, last: int) -> None:
            try:
                memory = free.pop()
            except IndexError:
                memory = self._memory(*map(int, sizes))
            kernel(at, address(memory), first, last)
            free.append(memory)

        threads.run(body, self.rows, self.num_bytes + result.nbytes)
        return result

    def run_shared(self) -> Array:
        """Return the sums of all rows, found by each thread in tables of its own."""
        arguments, sizes = self._arguments(self.rows, None)
        at, kernel = address(arguments), self._kernel("joint")
        tables, num_bytes = map(int, sizes)
        free: list[Tables] = []

        def body(first: int, last: int) -> None:
            try:
                mine = free.pop()
            except IndexError:
                memory = self._memory(tables, num_bytes)
                mine = Tables(memory, tables, self.parts, self.planes, self.span)
            step = MANY // _SPLIT
            for begin in range(first, last, step):
                end = min(last, begin + step)
                kernel(at, address(mine.memory), begin, end)
                mine.num_samples += (end - begin) * _SPLIT
                if mine.num_samples >= MANY:
                    mine.carry()
            free.append(mine)

        num_tasks = self.rows * -(-self.length // _SPLIT)
        if self.arrays[0].size < 2 * self.slots:  # second tables would cost more than they gain
            body(0, num_tasks)
        else:
            threads.run(body, num_tasks, self.num_bytes)
        total, *others = free
        for other in others:
            total.join(other)
        return self._finished(total)

    def _finished(self, total: Tables) -> Array:
        result = np.empty((self.rows, self.slots), self.result)
        head, sums = address(total.head), address(total.sums)
        plane, item = 8 * self.rows * self.slots, self.result.itemsize
        arguments = table((self._entry("finish"), head, sums, plane, address(result), item))
        at, kernel = address(arguments), self._kernel("finishing")
        body = lambda first, last: kernel(at, 0, first, last)  # noqa: E731
        planes = max(1, int(total.head[jk.HIGH] - total.head[jk.LOW]))
        threads.run(body, result.size, planes * plane * self.parts)
        return result
