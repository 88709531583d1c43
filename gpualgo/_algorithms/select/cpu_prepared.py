"""Selection and search on the CPU, prepared once for arrays of known layouts, as they come again.

One task does it all: several are for `cpu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.select import cpu
from gpualgo._algorithms.select import cpu_parameters as at
from gpualgo._algorithms.select.cpu import Array
from gpualgo._base import records
from gpualgo._cpu.address import address
from gpualgo._cpu.kernels import Kernel
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.parameters import START
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared


def search(
    source: records.Source, arrays: Sequence[Array], op: Operator | None, *, is_counting: bool
) -> Prepared | None:
    """Return what `cpu.count` or `cpu.first` does for arrays of these layouts, if one task does."""
    job = cpu.Job(source, arrays, [], op, cpu.MARKED)
    if job.num_items > at.PIECE:
        return None
    launch = _counting(job, cpu.walk() if is_counting else cpu.seek())

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        launch((outs[0], *arrays))

    return run


def select(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    kept: str, picks: tuple[int, ...] | None, *, keeps_rest: bool,
) -> Prepared | None:  # fmt: skip
    """Return what `cpu.select` does for arrays of these layouts, if one task does.

    The count is the last of what it writes to. `picks`: which arrays of a call these are.
    """
    job = cpu.Job(source, arrays, outs, op, kept)
    if job.num_items > at.PIECE:
        return None
    counting = _counting(job, cpu.walk()) if keeps_rest else None
    launch = _launch(job, counting is not None)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *written, count = [address(out) for out in outs]
        if picks is not None:
            arrays = [arrays[i] for i in picks]
        starts, total = [address(array) for array in arrays], []
        if counting is not None:
            counting((count, *starts))
            total = [int(outs[-1])]
        outs[-1][...] = 0  # where what is kept begins
        launch([count, *starts, *written, *total])

    return run


def heads(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    gives_lengths: bool,
) -> Prepared | None:  # fmt: skip
    """Return what `cpu.heads` does, and the lengths of runs behind the outs, if one task does."""
    num_items = arrays[0].size
    if num_items > at.PIECE:
        return None
    starts = np.empty(num_items, np.int64) if gives_lengths else None
    job = cpu.Job(source, arrays, outs, op, cpu.HEADS, starts)
    launch = _launch(job, False)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *written, count = outs
        begins = np.empty(num_items + 1, np.int64)
        if gives_lengths:
            *written, lengths = written
            written.append(begins)
        count[...] = 0
        launch((count, *arrays, *written))
        if gives_lengths:
            found = int(count)
            begins[found] = num_items
            np.subtract(begins[1 : found + 1], begins[:found], lengths[:found])

    return run


def _counting(job: cpu.Job, kernel: Kernel) -> Launch:
    """Return a job that writes nothing but its result as one task, given its place and arrays."""
    arguments = job.table(0, job.num_items, is_counting=True, total=-1)
    places = (at.PLACES, *_starts(job))
    return Launch(kernel, arguments, places, job.num_bytes, 1, job.work)


def _launch(job: cpu.Job, keeps_rest: bool) -> Launch:
    """Return a job as one task, given its count's place, its arrays, outs, and total if any."""
    arguments = job.table(0, job.num_items, is_counting=False, total=-1)
    num_outs = len(job.outs) + (job.starts is not None)
    targets = range(len(arguments) - at.WRITTEN * num_outs + at.OUT, len(arguments), at.WRITTEN)
    places = (at.PLACES, *_starts(job), *targets, *([at.TOTAL] if keeps_rest else []))
    return Launch(cpu.walk(), arguments, places, job.num_bytes, 1, job.work)


def _starts(job: cpu.Job) -> list[int]:
    """Return where in a job's table the addresses are of what is read."""
    ndim = len(job.dims)
    return [at.TAIL + ndim + k * (at.READ + ndim) + START for k in range(len(job.reads))]
