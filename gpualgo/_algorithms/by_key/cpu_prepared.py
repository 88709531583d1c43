"""Algorithms by key on the CPU, prepared once for arrays of known layouts.

Only for input that fits one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.by_key import cpu
from gpualgo._algorithms.by_key import cpu_parameters as at
from gpualgo._algorithms.by_key.cpu import Array
from gpualgo._algorithms.select import cpu_parameters as table_at
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.parameters import START

if TYPE_CHECKING:
    from gpualgo._algorithms.by_key.problem import ByKey
    from gpualgo._pipeline.problem import Prepared


def prepared(
    problem: ByKey, arrays: Sequence[Array], results: Sequence[Array], op: Any
) -> Prepared | None:
    """Return a call of `cpu.Job` for arrays of these layouts, with new results."""
    outs = results[:-1] if problem.has_dynamic_length else results
    if arrays[0].size > at.PIECE:
        return None
    job = cpu.Job(problem, arrays, outs, op)
    arguments = job.table(1, in_turn=True)
    step = table_at.READ + len(job.dims)
    first = table_at.TAIL + len(job.dims)
    reads = [first + k * step + START for k in range(len(job.reads))]
    base = first + len(job.reads) * step
    skipped = 0 if job.reduces else job.num_keys
    writes = [base + (skipped + k) * table_at.WRITTEN + table_at.OUT for k in range(len(outs))]
    extra = base + (skipped + len(outs)) * table_at.WRITTEN
    slots = (extra + at.INIT, extra + at.TOTAL, *reads, *writes)
    launch = Launch(cpu.walk(), arguments, slots, job.room.size, 1, job.work)
    reduces, unused = job.reduces, np.zeros((), np.int64)

    def run(
        arrays: Sequence[Array], outs: Sequence[Array], init: int, held: Any = job.held
    ) -> None:
        *targets, count = outs if reduces else (*outs, unused)
        launch((init, count, *arrays, *targets))

    return run
