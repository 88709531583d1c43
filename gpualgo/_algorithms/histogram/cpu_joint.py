"""Joint and weighted histograms on CPU cores: per-thread tables of sums, merged at the end.

Sums are exact (see sums.py), so the result depends neither on the split nor on the order.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import cpu_joint_parameters as jk
from gpualgo._algorithms.histogram.cpu import Finder, exact_finder_for
from gpualgo._algorithms.histogram.sums import Sum, sum_of
from gpualgo._base import records, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.code import Loaded
from gpualgo._cpu.kernels import compute_code, get_entry, get_kernel
from gpualgo._cpu.layout import ScratchLayout, field_arguments, is_dense, merge, table
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.histogram.joint import JointHistogram


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
        """Add another thread's sums."""
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


Array = np.ndarray[Any, Any]

_SPLIT = 16 * jk.MOST
_SHARED_BYTES = 1 << 22  # of each thread's planes for all rows, limited to those weights reach
_PLANES = 4  # planes that weights usually reach
_LARGE_BYTES = 1 << 30  # larger tables of a thread use unreserved memory, mostly untouched


class _Computation(NamedTuple):
    """What is computed from a run of samples."""

    finders: list[Finder]  # one per dimension
    sums: Sum | None  # of weights
    compute: Callable[[int], Loaded] | None  # compiles a function that computes this many samples


def histogram(
    arrays: Sequence[Array], out: Array, problem: JointHistogram, op: Operator | None
) -> None:
    """Write counts, or with weights sums, to out, of the result's shape, dtype and any strides.

    The arrays have one shape, at least one sample and any strides: the samples, or the inputs of
    op's source, which computes samples; then the weights. Arguments are already checked. Reads each
    array once.
    """
    finders = []
    for bins in problem.bins:
        finder = exact_finder_for(problem, bins, arrays[0].size)
        if finder is None:  # no bin can hold a sample of this dtype
            out[...] = 0
            return
        finders.append(finder)
    # Samples in memory order: sums do not depend on it.
    kept = [i for i in range(arrays[0].ndim) if i not in problem.axes]
    counted = sorted(problem.axes, key=lambda i: -sum(abs(x.strides[i]) for x in arrays))
    arrays = [x.transpose(kept + counted) for x in arrays]
    sums = sum_of(problem.dtype) if problem.has_weights else None
    element = problem.element
    if op is None or not isinstance(element, records.Computed):
        arrays = [x.view(np.uint8) if x.dtype.kind == "b" else x for x in arrays]
        _add(arrays, len(kept), _Computation(finders, sums, None), out)
        return
    names = [str(i) for i in range(len(finders))]
    sample = records.record(names, [finder.dtype for finder in finders])
    compute = partial(compute_code, op.source, element, sample)
    with captures_bound(op):
        _add(arrays, len(kept), _Computation(finders, sums, compute), out)


def _add(arrays: list[Array], kept: int, computation: _Computation, out: Array) -> None:
    job = _Job(arrays, kept, computation)
    rows = prod(arrays[0].shape[:kept])
    if rows > 1 and job.length >= MANY:
        for index in np.ndindex(arrays[0].shape[:kept]):
            _add([x[index] for x in arrays], 0, computation, out[index])
        return
    result = job.run_shared() if job.is_shared else job.run_rows()
    out[...] = result[:, :-1].reshape(out.shape)


class _Job:
    """One pass over arrays: their layout, tables and tasks."""

    def __init__(self, arrays: list[Array], kept: int, what: _Computation) -> None:
        self.arrays, (self.finders, self.sums, _) = arrays, what
        finders, sums = self.finders, self.sums
        self.compute = None if what.compute is None else what.compute(jk.MOST)  # kept alive
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
        """Return the address of the function that adds weights, or that finishes their sums."""
        sums = self.sums
        if sums is None or sums.format is None:
            ending = "ones" if sums is None and name == "add" else "integers"

            def generate() -> Callable[..., None]:
                from gpualgo._algorithms.histogram import cpu_kernels

                function: Callable[..., None] = getattr(cpu_kernels, f"{name}_{ending}")()
                return function

            return get_entry(("histogram", name, ending), generate)

        def generate_floats() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_kernels
            from gpualgo._cpu.elements import storage

            kind = "i" if name == "add" else "u"  # signed integers keep the sign of floats
            bits = storage(np.dtype(f"{kind}{sums.number.itemsize}"))
            generate = getattr(cpu_kernels, f"{name}_floats")
            function: Callable[..., None] = generate(bits, sums.format, sums.parts)
            return function

        sum_format = sums.format
        key = ("histogram", name, sums.number, sums.parts, sum_format.digits, *sum_format)
        return get_entry(key, generate_floats)

    def _kernel(self, name: str) -> Any:
        def generate() -> Callable[..., None]:
            from gpualgo._algorithms.histogram import cpu_joint_kernels

            function: Callable[..., None] = getattr(cpu_joint_kernels, f"{name}_kernel")()
            return function

        return get_kernel(("histogram", name), generate)

    def _arguments(self, rows: int, target: Array | None) -> tuple[Array, Array]:
        """Return the argument table, and offset of the tables and size of a thread's memory."""
        room = ScratchLayout()
        room.take(2 * jk.SLOT_BYTES)
        fields: list[Sequence[int]] = []
        for k, (x, dtype) in enumerate(zip(self.arrays, self._read_dtypes(), strict=True)):
            dims = [(dim[0], dim[1 + k]) for dim in self.inner]
            is_direct = is_dense(dims, 0, x.itemsize)
            fields.append(field_arguments(address(x), x.dtype, dtype, is_direct, jk.MOST, room))
            fields += [[dim[1 + k] for dim in self.outer], [dim[1] for dim in dims]]
        addresses = room.take(8 * max(len(self.arrays), len(self.finders)))
        compute = 0 if self.compute is None else self.compute.address
        sample_bytes = sum(finder.dtype.itemsize for finder in self.finders)
        computed = room.take(jk.MOST * sample_bytes) if compute else 0
        tables = room.take(8 * jk.HEAD)
        tables_bytes = 8 * (jk.HEAD + rows * self.slots * self.planes * self.parts)
        arguments = table(
            (len(self.finders), self.length, self.rows, self._split(target)),
            (self._entry("add"), self._entry("finish"), tables),
            (0, 0) if target is None else (address(target), target.strides[0]),
            (self.slots, 8 * rows * self.slots, len(self.outer), len(self.inner)),
            (len(self.arrays), addresses, compute, computed),
            *(self._stage(finder) for finder in self.finders),
            [dim[0] for dim in self.outer],
            [dim[0] for dim in self.inner],
            *fields,
        )
        return arguments, np.array([tables, tables + tables_bytes])

    def _stage(self, finder: Finder) -> tuple[int, int, int]:
        return finder.stage, 0 if finder.table is None else address(finder.table), finder.slots - 1

    def _split(self, target: Array | None) -> int:
        return _SPLIT if target is None else -(-self.length // jk.MOST) * jk.MOST

    def _read_dtypes(self) -> list[np.dtype[Any]]:
        """Return the dtypes that the arrays' items are converted to."""
        dtypes = [x.dtype for x in self.arrays]
        if self.compute is None:
            dtypes[: len(self.finders)] = [finder.dtype for finder in self.finders]
        if self.sums is not None:
            integer = np.dtype(np.uint64 if dtypes[-1].kind == "u" else np.int64)
            dtypes[-1] = integer if self.sums.format is None else self.sums.dtype
        return dtypes

    def _memory(self, tables: int, num_bytes: int) -> Array:
        if num_bytes > _LARGE_BYTES and self.planes > _PLANES:
            np.empty(num_bytes // self.planes * _PLANES, np.uint8)  # MemoryError, if any, now
            memory = unreserved(num_bytes + 64)
        else:
            memory = np.zeros(num_bytes + 64, np.uint8)
        memory = memory[-address(memory) % 64 :][:num_bytes]
        memory[tables:][: 8 * jk.HEAD].view(np.int64)[:2] = jk.NO_LOW, jk.NO_HIGH
        return memory

    def run_rows(self) -> Array:
        """Return the sums of each row, computed by one thread per row."""
        result = np.empty((self.rows, self.slots), self.result)
        arguments, sizes = self._arguments(1, result)
        args_address, kernel = address(arguments), self._kernel("joint")
        free: list[Array] = []  # memory that no thread uses at present

        def body(first: int, last: int) -> None:
            try:
                memory = free.pop()
            except IndexError:
                memory = self._memory(*map(int, sizes))
            kernel(args_address, address(memory), first, last)
            free.append(memory)

        threads.run(body, self.rows, self.num_bytes + result.nbytes)
        return result

    def run_shared(self) -> Array:
        """Return the sums of all rows, computed by each thread in private tables."""
        arguments, sizes = self._arguments(self.rows, None)
        args_address, kernel = address(arguments), self._kernel("joint")
        tables, num_bytes = map(int, sizes)
        free: list[Tables] = []

        def body(first: int, last: int) -> None:
            try:
                own = free.pop()
            except IndexError:
                memory = self._memory(tables, num_bytes)
                own = Tables(memory, tables, self.parts, self.planes, self.span)
            step = MANY // _SPLIT
            for begin in range(first, last, step):
                end = min(last, begin + step)
                kernel(args_address, address(own.memory), begin, end)
                own.num_samples += (end - begin) * _SPLIT
                if own.num_samples >= MANY:
                    own.carry()
            free.append(own)

        num_tasks = self.rows * -(-self.length // _SPLIT)
        if self.arrays[0].size < 2 * self.slots:  # more tables would cost more than they gain
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
        args_address, kernel = address(arguments), self._kernel("finishing")
        body = lambda first, last: kernel(args_address, 0, first, last)  # noqa: E731
        planes = max(1, int(total.head[jk.HIGH] - total.head[jk.LOW]))
        threads.run(body, result.size, planes * plane * self.parts)
        return result
