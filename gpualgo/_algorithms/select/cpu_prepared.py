"""Selection and search on the CPU, prepared once for arrays of known layouts.

Only for input that fits one task.
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
    """Return a call of `cpu.count` or `cpu.first` for these layouts; None above one task."""
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
    """Return a call of `cpu.select` for arrays of these layouts; None above one task.

    The count is the last output. `picks` are the indices of a call's arrays that are read.
    """
    job = cpu.Job(source, arrays, outs, op, kept)
    if job.num_items > at.PIECE:
        return None
    counting = _counting(job, cpu.walk()) if keeps_rest else None
    launch = _launch(job, counting is not None)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *out_addresses, count = [address(out) for out in outs]
        if picks is not None:
            arrays = [arrays[i] for i in picks]
        input_addresses, total = [address(array) for array in arrays], []
        if counting is not None:
            counting((count, *input_addresses))
            total = [int(outs[-1])]
        outs[-1][...] = 0  # index of the first kept element
        launch([count, *input_addresses, *out_addresses, *total])

    return run


def heads(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    gives_lengths: bool,
) -> Prepared | None:  # fmt: skip
    """Return a call of `cpu.heads`, with the runs' lengths as last output; None above one task."""
    num_items = arrays[0].size
    if num_items > at.PIECE:
        return None
    starts = np.empty(num_items, np.int64) if gives_lengths else None
    job = cpu.Job(source, arrays, outs, op, cpu.HEADS, starts)
    launch = _launch(job, False)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *targets, count = outs
        run_starts = np.empty(num_items + 1, np.int64)
        if gives_lengths:
            *targets, lengths = targets
            targets.append(run_starts)
        count[...] = 0
        launch((count, *arrays, *targets))
        if gives_lengths:
            num_runs = int(count)
            run_starts[num_runs] = num_items
            np.subtract(run_starts[1 : num_runs + 1], run_starts[:num_runs], lengths[:num_runs])

    return run


def _counting(job: cpu.Job, kernel: Kernel) -> Launch:
    """Return a launch of one task, given the addresses of its result and its inputs."""
    arguments = job.table(0, job.num_items, is_counting=True, total=-1)
    slots = (at.PLACES, *_input_slots(job))
    return Launch(kernel, arguments, slots, job.num_bytes, 1, job.work)


def _launch(job: cpu.Job, keeps_rest: bool) -> Launch:
    """Return a launch of one task, given count, inputs, outs and (with a rest) the total."""
    arguments = job.table(0, job.num_items, is_counting=False, total=-1)
    num_outs = len(job.outs) + (job.starts is not None)
    targets = range(len(arguments) - at.WRITTEN * num_outs + at.OUT, len(arguments), at.WRITTEN)
    slots = (at.PLACES, *_input_slots(job), *targets, *([at.TOTAL] if keeps_rest else []))
    return Launch(cpu.walk(), arguments, slots, job.num_bytes, 1, job.work)


def _input_slots(job: cpu.Job) -> list[int]:
    """Return the table indices of the input addresses."""
    ndim = len(job.dims)
    return [at.TAIL + ndim + k * (at.READ + ndim) + START for k in range(len(job.reads))]
