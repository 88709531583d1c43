"""Segments with one initial value each: the arrays of init come last, after the offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.segments.problem import (
    Forms,
    Segmented,
    SegmentedExclusiveScan,
    SegmentedReduction,
    SegmentedScan,
)
from gpualgo._arrays.view import View
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import starts
from gpualgo._pipeline.inputs import Views

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


class _Started(starts.PerRowInit, Segmented):
    """Base class of the three algorithms."""

    @property
    def init_shape(self) -> tuple[int, ...]:
        return (self.num_segments,)

    def taken_before(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        return Segmented.taken(self, arguments, where)


class PerRowInitReduction(_Started, SegmentedReduction):
    """Arguments that equal calls of `segmented_reduce` share if init is an array."""

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        super().__init__(device, views, op, init, rest, where)
        self.is_start = False  # the kernels that fold elements get no init
        self.is_empty = False  # results of empty segments are their initial values

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.segments import cuda

        return cuda.started_reduction(self, views, op, targets)


class PerRowInitScan(_Started, SegmentedScan):
    """Arguments that equal calls of `segmented_inclusive_scan` share if init is an array."""


class PerRowInitExclusiveScan(_Started, SegmentedExclusiveScan):
    """Arguments that equal calls of `segmented_exclusive_scan` share if init is an array."""


STARTED: dict[type[Segmented], type[Segmented]] = {
    SegmentedReduction: PerRowInitReduction,
    SegmentedScan: PerRowInitScan,
    SegmentedExclusiveScan: PerRowInitExclusiveScan,
}
