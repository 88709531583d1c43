"""Checked arguments of the algorithms on segments of an array between offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.segments import offsets as of_segments
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Problem
from gpualgo._pipeline.results import Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.routines import Routine

Forms = tuple[Form | None, ...]


class Segmented(Problem):
    """Arguments that equal calls share. Inputs: arrays of x, then the offsets."""

    reads_data = True  # the host checks offsets

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        dtype, form, _ = rest
        self.num_own = len(views)  # without those of init
        *of_x, offsets = views
        names, self.forms = arguments_of(tuple(of_x), form)
        self.inputs = (*names, "offsets")
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        self.source, self.form, value_views = elements_of(op, tuple(of_x), form, device, where)
        if form is not None and self.forms:
            self.forms = (*self.forms, None)
        acc = elements.accumulator(value_views, self.form, init, dtype, where)
        self.acc: np.dtype[Any] = acc
        elements.check_operator(op, acc, where)
        if len(of_x[0].shape) != 1:
            raise ValueError(
                f"{where}: x has {len(of_x[0].shape)} dimensions; pass a one-dimensional array, "
                "such as x.reshape(-1)"
            )
        of_segments.check(offsets, where)
        self.num_items, self.num_segments = of_x[0].shape[0], offsets.shape[0] - 1

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "one pass", views[:1]

    def for_data(self, views: Views, stream: Any) -> Problem:
        offsets = views[self.num_own - 1]
        of_segments.check_values(offsets, self.num_items, self.where, stream)
        return self

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.segments.cpu_parameters import TASK
        from gpualgo._pipeline.routines import compiled

        # an upper bound, as offsets may leave out elements
        steps = self.num_items + self.num_segments
        assert self.acc is not None
        return [compiled("segments", steps, TASK, steps * self.acc.itemsize)]

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        if len(arguments) != 2:
            return None
        try:
            views, form = inputs.spread(arguments[0], f"{self.where}: x")
        except ValueError:  # shapes differ from the prepared ones, which the caller reports
            return None
        return (*views, of_segments.view(arguments[1], self.where)), (form, None)


class SegmentedReduction(Segmented):
    """Arguments that equal calls of `segmented_reduce` share."""

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        super().__init__(device, views, op, init, rest, where)
        leaves = records.leaves(self.acc)
        self.results = tuple(Result((self.num_segments,), leaf) for leaf in leaves)
        self.is_start, self.is_empty = init is not None, self.num_items == 0
        if init is None:
            self.default_start = self.identity(op, "a segment may be empty and op has no identity")

    def of_empty(self, op: Any, init: Any) -> Array:
        start = self.encode(init)
        assert start is not None
        return start

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.segments import cuda

        return cuda.reduction(self, views, op, targets)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.segments import cpu

        cpu.reduce(self, arrays, results, op, init)


class SegmentedScan(Segmented):
    """Arguments that equal calls of `segmented_inclusive_scan` share."""

    is_exclusive = False

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        super().__init__(device, views, op, init, rest, where)
        all_inputs = tuple(range(len(views) - 1))  # each element is computed from all of them
        is_computed = isinstance(self.source, records.Computed)
        self.results = tuple(
            Result((self.num_items,), leaf, all_inputs if is_computed else (i,))
            for i, leaf in enumerate(records.leaves(self.acc))
        )
        if self.is_exclusive and init is None:
            reason = "op has no known identity for the first result of a segment"
            self.default_start = self.identity(op, reason)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.segments import cuda

        return cuda.scan(self, views, op, targets)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.segments import cpu

        cpu.scan(self, arrays, results, op, init)


class SegmentedExclusiveScan(SegmentedScan):
    """Arguments that equal calls of `segmented_exclusive_scan` share."""

    is_exclusive = True
