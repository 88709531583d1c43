"""Segments on CPU cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.segments import cpu_parameters as at
from gpualgo._algorithms.transform import cpu
from gpualgo._base import records, threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.layout import table
from gpualgo._cpu.operator import Applied
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import per_row_init

if TYPE_CHECKING:
    from gpualgo._algorithms.segments.problem import Segmented, SegmentedReduction, SegmentedScan

Array: TypeAlias = np.ndarray[Any, Any]


def reduce(
    problem: SegmentedReduction, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
    init: Array | None,
) -> None:  # fmt: skip
    """Write the fold of each segment; results have any strides and overlap no input."""
    job = _Job(problem, arrays, results, op, init, problem.is_start or problem.has_row_init)
    with captures_bound(op):
        job.run("reduce")
        if job.num_tasks > 1:
            job.run("join", by_one=True)
    job.finish()


def scan(
    problem: SegmentedScan, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
    init: Array | None,
) -> None:  # fmt: skip
    """Write the scan of each segment, and copy elements in none; results may overwrite x."""
    job = _Job(problem, arrays, results, op, init, init is not None or problem.has_row_init)
    first, last = int(job.offsets[0]), int(job.offsets[-1])
    for outside in (slice(0, first), slice(last, None)):
        for result, element in zip(job.homes, job.elements, strict=True):
            result[outside] = element[outside]
    with captures_bound(op):
        if job.num_tasks > 1:
            job.run("tail")
            job.run("carry", by_one=True)
        job.run("exclusive" if problem.is_exclusive else "inclusive")
    job.finish()


class _Job:
    """Contiguous elements and results, and the kernels' argument table."""

    def __init__(
        self, problem: Segmented, arrays: Sequence[Array], results: Sequence[Array], op: Operator,
        init: Array | None, is_start: bool,
    ) -> None:  # fmt: skip
        *of_x, offsets = arrays[: problem.num_own]
        self.acc, self.op, self.results = problem.acc, op, results
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        self.elements = cpu.gapless(problem.source, records.field_dtypes(self.acc), of_x, op)
        self.homes = [
            result if result.flags.c_contiguous else np.empty(result.shape, result.dtype)
            for result in results
        ]
        steps = int(self.offsets[-1] - self.offsets[0]) + problem.num_segments
        self.num_tasks = -(-steps // at.TASK)
        self.work = steps * self.acc.itemsize
        self.start = np.zeros((), self.acc) if init is None else init
        if problem.has_row_init:
            init_arrays = arrays[problem.num_own :]
            self.start = per_row_init.host_values(self.acc, problem.num_segments, init_arrays)
        # One row for heads, one for tails of tasks.
        self.values = np.empty((2, self.num_tasks), self.acc)
        self.marks = np.empty((2, self.num_tasks), np.uint8)
        addresses = [*map(address, self.elements), *map(address, self.homes)]
        self.table = table(
            [
                address(self.offsets), problem.num_segments, is_start, address(self.start),
                problem.has_row_init,
                *map(address, self.values), *map(address, self.marks), *addresses,
            ]
        )  # fmt: skip

    def run(self, kind: str, by_one: bool = False) -> None:
        """Run a kernel on all tasks."""
        kernel, table = _kernel(kind, self.op, self.acc), address(self.table)
        if by_one:
            kernel(table, 0, 0, self.num_tasks)
            return
        threads.run(lambda first, last: kernel(table, 0, first, last), self.num_tasks, self.work)

    def finish(self) -> None:
        """Copy results to outputs that are not contiguous."""
        for result, dense in zip(self.results, self.homes, strict=True):
            if dense is not result:
                result[...] = dense


def _kernel(kind: str, op: Operator, acc: np.dtype[Any]) -> Kernel:
    folds = kind in ("reduce", "tail")

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.segments import cpu_kernels as kernels

        if folds:
            make_kernel = kernels.reduce_kernel if kind == "reduce" else kernels.tail_kernel
            return make_kernel(fn, acc, op.commutative)
        if kind in ("join", "carry"):
            return (kernels.join_kernel if kind == "join" else kernels.carry_kernel)(fn, acc)
        return kernels.scan_kernel(fn, acc, kind == "exclusive")

    key = ("segments", kind, acc, folds and op.commutative)
    return get_kernel(key, write, Applied(op, (acc, acc), acc))
