"""Scans with one initial value per row: an inclusive scan without it, then op(init, result).

Inputs are the arrays of x, followed by those of init. An exclusive scan keeps the inclusive result
in temporary storage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpualgo._algorithms.scan.problem import Scan
from gpualgo._cpu.plan import Plan
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import per_row_init, planners
from gpualgo._pipeline.problem import Array


class PerRowInitScan(per_row_init.PerRowInit, Scan):
    """Arguments that equal calls of `inclusive_scan` share if init is an array."""

    @property
    def init_shape(self) -> tuple[int, ...]:
        return tuple(n for i, n in enumerate(self.shape) if self.axis not in (None, i))

    @property
    def parts(self) -> tuple[slice, slice, slice]:
        """Slices along the axis: where results are init, the others, and their scan.

        The other results are op(init, s) with s in the third slice of the inclusive scan.
        """
        if not self.is_exclusive:
            return slice(0), slice(None), slice(None)
        if self.is_reverse:
            return slice(-1, None), slice(-1), slice(1, None)
        return slice(1), slice(1, None), slice(-1)


class PerRowInitExclusiveScan(PerRowInitScan):
    """Arguments that equal calls of `exclusive_scan` share if init is an array."""

    is_exclusive = True


@planners.for_cpu.register(PerRowInitScan)
def _(
    problem: PerRowInitScan, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    from gpualgo._algorithms.scan import cpu
    from gpualgo._algorithms.transform import cpu as elementwise
    from gpualgo._cpu.operator import Applied

    axis, acc, num_own = problem.axis, problem.acc, problem.num_own
    assert axis is not None
    init_part, op_part, scan_part = ((*(slice(None),) * axis, part) for part in problem.parts)

    def scanned_of(results: Sequence[Array]) -> Sequence[Array]:
        """Return where the inclusive scan is written."""
        if not problem.is_exclusive:
            return results
        return [np.empty(out.shape, out.dtype) for out in results]

    def joined(
        inits: Sequence[Array], scanned: Sequence[Array], results: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Return the arguments of op, and its results."""
        outs = [out[op_part] for out in results]
        starts = [np.broadcast_to(start, outs[0].shape) for start in inits]
        return [*starts, *[array[scan_part] for array in scanned]], outs

    def expanded(arrays: Sequence[Array]) -> list[Array]:
        return [np.expand_dims(start, axis) for start in arrays[num_own:]]

    scanned, number = scanned_of(results), per_row_init.join_dtype(acc)
    first = cpu.plan_of(
        arrays[:num_own], scanned, op, axis, False, problem.is_reverse, problem.source, acc
    )
    operands, outs = joined(expanded(arrays), scanned, results)
    second = None
    if outs[0].size:
        second = elementwise.plan_of(Applied(op, (number, number), acc), operands, outs)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        scanned, inits = scanned_of(results), expanded(arrays)
        first.run(arrays[:num_own], scanned, 0)
        if second is not None:
            second.run(*joined(inits, scanned, results), 0)
        for out, start in zip(results, inits, strict=True):
            out[init_part] = start

    return Plan(run, (*first.routines, *(second.routines if second else ())))


@planners.for_blocks.register(PerRowInitScan)
def _(problem: PerRowInitScan, call: planners.HostCall) -> bool:
    return False
