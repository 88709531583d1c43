"""Reduction with one initial value per row: reduces rows, then op(init, result) for each row.

Inputs are the arrays of x, followed by those of init. A plan's second launch applies op once per
row. A single initial value is applied the same way in the first launch, so the bits are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import View
from gpualgo._base.strides import without_axes
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import per_row_init
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


class PerRowInitReduction(per_row_init.PerRowInit, Reduction):
    """Arguments that equal calls of `reduce` share if init is an array."""

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        super().__init__(device, views, op, init, rest, where)
        # Rows without elements return their initial values.
        self.has_no_items, self.is_empty = self.is_empty, False

    @property
    def init_shape(self) -> tuple[int, ...]:
        return self.shape

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.reduce import cuda
        from gpualgo._algorithms.transform import cuda as elementwise
        from gpualgo._algorithms.transform.tuning import Applied
        from gpualgo._cuda.plan import ArgMap

        args = ArgMap(len(views), len(targets))
        slots = [args.source(i) for i in range(len(views))]
        out_slots = [args.target(i) for i in range(len(targets))]
        strides = [without_axes(target.strides, self.axes, len(self.shape)) for target in targets]
        of_x, inits, acc = views[: self.num_own], views[self.num_own :], self.acc
        init_slots = slots[self.num_own :]
        if self.has_no_items:  # each initial value is a row of one element
            leaves = cuda.FieldSlots(args, init_slots, out_slots)
            return cuda.plan_of(inits, without_source(op), (), acc, acc, strides, leaves)
        leaves = cuda.FieldSlots(args, slots[: self.num_own], out_slots)
        plan = cuda.plan_of(of_x, op, self.axes, self.source, acc, strides, leaves)
        outs = [
            target._replace(shape=self.shape, strides=step)
            for target, step in zip(targets, strides, strict=True)
        ]
        number = per_row_init.join_dtype(acc)
        applied = Applied(without_source(op), (number, number), acc)
        join_slots = out_slots, [*init_slots, *out_slots]
        plan.steps += elementwise.plan_of(
            applied, [*inits, *outs], self.shape, outs, join_slots
        ).steps
        return plan

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.reduce import cpu
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._cpu.operator import Applied

        if len(results[0].shape) > len(self.shape):  # keepdims
            results = [np.squeeze(result, self.axes) for result in results]
        of_x, inits, acc = arrays[: self.num_own], arrays[self.num_own :], self.acc
        if self.has_no_items:
            for result, start in zip(results, inits, strict=True):
                result[...] = start
            return
        cpu.reduce(of_x, results, op, None, self.axes, self.source, acc)
        number = per_row_init.join_dtype(acc)
        elementwise.transform(Applied(op, (number, number), acc), [*inits, *results], results)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.transform import cpu as elementwise
        from gpualgo._pipeline.routines import bytes_of

        if self.has_no_items:
            return []
        first = super().routines(arrays[: self.num_own], results, op, None)
        work = 3 * bytes_of(results)
        return [*first, elementwise.routine(results[0].size, work)]

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        return False
