"""Scans with one initial value per row: an inclusive scan without it, then op(init, result).

Inputs are the arrays of x, followed by those of init. An exclusive scan keeps the inclusive result
in temporary storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.scan.problem import Scan
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import per_row_init
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


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

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.scan import cuda

        return cuda.per_row_init_plan(self, views, op, targets)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._pipeline.routines import bytes_of

        scanned = [np.empty(self.shape, out.dtype) for out in results]
        combine = elementwise.routine(scanned[0].size, 3 * bytes_of(results))
        return [*super().routines(arrays[: self.num_own], scanned, op, None), combine]

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.scan import cpu
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._cpu.operator import Applied

        assert self.axis is not None
        of_x, acc, source = arrays[: self.num_own], self.acc, self.source
        inits = [np.expand_dims(start, self.axis) for start in arrays[self.num_own :]]
        scanned = results
        if self.is_exclusive:
            scanned = [np.empty(self.shape, out.dtype) for out in results]
        if isinstance(source, records.Computed):
            cpu.compute(of_x, scanned, op, source, acc)
            of_x, source = scanned, acc
        cpu.scan(of_x, scanned, op, None, self.axis, False, self.is_reverse, source, acc)
        init_part, op_part, scan_part = ((*(slice(None),) * self.axis, part) for part in self.parts)
        outs, number = [out[op_part] for out in results], per_row_init.join_dtype(acc)
        init_views = [np.broadcast_to(value, outs[0].shape) for value in inits]
        inputs = [*init_views, *(array[scan_part] for array in scanned)]
        elementwise.transform(Applied(op, (number, number), acc), inputs, outs)
        for out, value in zip(results, inits, strict=True):
            out[init_part] = value

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        return False


class PerRowInitExclusiveScan(PerRowInitScan):
    """Arguments that equal calls of `exclusive_scan` share if init is an array."""

    is_exclusive = True
