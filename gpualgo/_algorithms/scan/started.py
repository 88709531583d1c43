"""Scans whose lines have a start of their own each: lines first, then init op each result.

Their arrays: those of x, then those of init. The inclusive scan is made without a start; then op is
applied once to each result. An exclusive scan keeps the inclusive one in temporary storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.scan.problem import Scan
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import starts
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


class StartedScan(starts.Started, Scan):
    """What equal calls of `inclusive_scan` share where init is an array of the lines' shape."""

    @property
    def starts_shape(self) -> tuple[int, ...]:
        return tuple(n for i, n in enumerate(self.shape) if self.axis not in (None, i))

    @property
    def parts(self) -> tuple[slice, slice, slice]:
        """Which results along the axis are starts alone, which are not, and what these are made of.

        That is a part of the inclusive scan's results.
        """
        if not self.is_exclusive:
            return slice(0), slice(None), slice(None)
        if self.is_reverse:
            return slice(-1, None), slice(-1), slice(1, None)
        return slice(1), slice(1, None), slice(-1)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.scan import cuda_started

        return cuda_started.plan_of(self, views, op, targets)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._pipeline.routines import bytes_of

        whole = [np.empty(self.shape, out.dtype) for out in results]
        last = elementwise.routine(whole[0].size, 3 * bytes_of(results))
        return [*super().routines(arrays[: self.num_own], whole, op, None), last]

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.scan import cpu
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._cpu.operator import Applied

        assert self.axis is not None
        of_x, acc, source = arrays[: self.num_own], self.acc, self.source
        begins = [np.expand_dims(start, self.axis) for start in arrays[self.num_own :]]
        kept = results
        if self.is_exclusive:
            kept = [np.empty(self.shape, out.dtype) for out in results]
        if isinstance(source, records.Computed):
            cpu.compute(of_x, kept, op, source, acc)
            of_x, source = kept, acc
        cpu.scan(of_x, kept, op, None, self.axis, False, self.is_reverse, source, acc)
        alone, behind, before = ((*(slice(None),) * self.axis, part) for part in self.parts)
        outs, number = [out[behind] for out in results], starts.of_records(acc)
        first = [np.broadcast_to(begin, outs[0].shape) for begin in begins]
        taken = [*first, *(scanned[before] for scanned in kept)]
        elementwise.transform(Applied(op, (number, number), acc), taken, outs)
        for out, begin in zip(results, begins, strict=True):
            out[alone] = begin

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None

    def in_blocks(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        return False


class StartedExclusiveScan(StartedScan):
    """What equal calls of `exclusive_scan` share where init is an array of the lines' shape."""

    is_exclusive = True
