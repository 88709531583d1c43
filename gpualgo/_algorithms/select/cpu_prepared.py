"""Selection and search on the CPU, prepared once for arrays of known layouts, as they come again.

One task does it all: several are for `cpu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.select import cpu
from gpualgo._algorithms.select import cpu_parameters as at
from gpualgo._algorithms.select.cpu import Array
from gpualgo._base import records
from gpualgo._cpu.address import address
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
    arguments = job.table(0, job.num_items, is_counting=True, total=-1)
    kernel = cpu.walk() if is_counting else cpu.seek()
    places = (at.PLACES, *_starts(job))
    launch = Launch(kernel, arguments, places, job.num_bytes, 1, job.work)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        launch([address(outs[0]), *[address(array) for array in arrays]])

    return run


def select(
    source: records.Source, arrays: Sequence[Array], outs: Sequence[Array], op: Operator | None,
    kept: str, picks: tuple[int, ...] | None,
) -> Prepared | None:  # fmt: skip
    """Return what `cpu.select` does for arrays of these layouts, if one task does.

    The count is the last of what it writes to. `picks`: which arrays of a call these are.
    """
    job = cpu.Job(source, arrays, outs, op, kept)
    if job.num_items > at.PIECE:
        return None
    arguments = job.table(0, job.num_items, is_counting=False, total=-1)
    targets = range(len(arguments) - at.WRITTEN * len(outs) + at.OUT, len(arguments), at.WRITTEN)
    places = (at.PLACES, *_starts(job), *targets)
    launch = Launch(cpu.walk(), arguments, places, job.num_bytes, 1, job.work)

    def run(arrays: Sequence[Array], outs: Sequence[Array], _: int, held: Any = job.held) -> None:
        *written, count = [address(out) for out in outs]
        outs[-1][...] = 0  # where what is kept begins
        if picks is not None:
            arrays = [arrays[i] for i in picks]
        launch([count, *[address(array) for array in arrays], *written])

    return run


def _starts(job: cpu.Job) -> list[int]:
    """Return where in a job's table the addresses are of what is read."""
    ndim = len(job.dims)
    return [at.TAIL + ndim + k * (at.READ + ndim) + START for k in range(len(job.reads))]
