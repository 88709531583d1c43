"""Checked arguments of a reduction: axes and accumulator dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import without_axes
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks, elements
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Array, Problem

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


class Reduction(Problem):
    """Arguments that equal calls of `reduce` share."""

    needs_associativity = True
    gives_scalars = True
    spreads_tuples = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        axis, keepdims, dtype, form, _ = rest
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(device, views, op, init, rest, where)
        self.source, self.form, value_dtype = elements_of(op, views, form, device, where)
        view = views[0]
        self.acc: np.dtype[Any] = elements.accumulator(value_dtype, self.form, init, dtype, where)
        elements.check_operator(op, self.acc, where)
        self.axes = axes = checks.axes_of(axis, len(view.shape), where)
        self.shape = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        kept_shape = tuple(1 if i in axes else n for i, n in enumerate(view.shape))
        shape = kept_shape if keepdims else self.shape
        self.results = tuple(Result(shape, leaf) for leaf in records.field_dtypes(self.acc))
        self.is_empty = 0 in view.shape

    def of_empty(self, op: Any, init: Any) -> Array:
        if (start := self.encode(init)) is not None:
            return start
        reason = "x has no elements along the reduced axes and op has no known identity"
        return self.identity(as_operator(op, self.where, 2), reason)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.reduce import cuda

        ndim = len(self.shape)
        strides = [without_axes(target.strides, self.axes, ndim) for target in targets]
        return cuda.plan_of(views, op, self.axes, self.source, self.acc, strides)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.reduce import cpu

        if len(results[0].shape) > len(self.shape):  # keepdims
            results = [np.squeeze(result, self.axes) for result in results]
        cpu.reduce(arrays, results, op, init, self.axes, self.source, self.acc)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.reduce import cpu

        if len(results[0].shape) > len(self.shape):  # keepdims
            results = [np.squeeze(result, self.axes) for result in results]
        return cpu.routines(arrays, results, op, init, self.axes, self.source, self.acc)

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        from gpualgo._algorithms.reduce import cpu

        assert op is not None
        if len(results[0].shape) > len(self.shape):  # keepdims
            results = [np.squeeze(result, self.axes) for result in results]
        return cpu.prepared(arrays, results, op, self.axes, self.source, self.acc)

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        fields = records.field_dtypes(self.source)
        if isinstance(self.source, records.Computed) or any(map(records.is_position, fields)):
            return False
        from gpualgo._algorithms.reduce import blocks

        all_on_device = None not in places[: len(arrays)]
        if all_on_device or sum(x.nbytes for x in arrays) <= blocks.BLOCK_BYTES:
            return False
        blocks.reduce(self, arrays, results, op, init, stream)
        return True
