"""A reduction of segments that have a start of their own each: its arrays come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.segments import offsets as of_segments
from gpualgo._algorithms.segments.problem import Forms, Segmented, SegmentedReduction
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import starts
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Problem
from gpualgo._pipeline.results import Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


class StartedReduction(SegmentedReduction):
    """What equal calls of `segmented_reduce` share where init has a start for each segment."""

    has_starts = True
    is_start = False  # of the kernels that fold elements

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        *own, self.pattern, _ = rest
        self.num_own = len(views) - starts.size_of(self.pattern)
        first, value = views[self.num_own :], starts.values(self.pattern)
        Segmented.__init__(self, device, views[: self.num_own], op, value, tuple(own), where)
        self.rest = rest
        shape = (self.num_segments,)
        names = starts.check(first, views[0], shape, self.acc, self.form, where)
        self.inputs = (*self.inputs, *names)
        if self.forms:
            self.forms = (*self.forms, None)
        self.results = tuple(Result(shape, leaf) for leaf in records.leaves(self.acc))

    def for_data(self, views: Views, stream: Any) -> Problem:
        of_segments.check_values(views[self.num_own - 1], self.num_items, self.where, stream)
        return self

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        if len(arguments) != 3:
            return None
        found = super().taken(arguments[:2], where)
        first = starts.again(arguments[2], self.pattern, where)
        if found is None or first is None:
            return None
        return (*found[0], *first), (*found[1], None)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.segments import cuda

        return cuda.started_reduction(self, views, op, targets)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.segments import cpu
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._cpu.operator import Applied

        own, first = arrays[: self.num_own], arrays[self.num_own :]
        cpu.reduce(self, own, results, op, None)
        has_items = own[-1][1:] > own[-1][:-1]
        number = starts.of_records(self.acc)
        taken = [x[has_items] for x in (*first, *results)]
        made = [np.empty_like(x) for x in taken[len(first) :]]
        elementwise.transform(Applied(op, (number, number), self.acc), taken, made)
        for result, start, part in zip(results, first, made, strict=True):
            result[...] = start
            result[has_items] = part
