"""A reduction: which axes go, which dtype accumulates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._operators.recognised import check_dtype
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Problem, Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


class Reduction(Problem):
    """What equal calls of `reduce` share."""

    gives_scalars = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        super().__init__(device, views, op, init, rest, where)
        (view,), (axis, keepdims, dtype) = views, rest
        checks.element(view, "x", where)
        self.acc = checks.accumulator(view, init, dtype, where)
        check_dtype(op, self.acc, where)
        self.axes = axes = checks.axes_of(axis, len(view.shape), where)
        self.shape = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        spread = tuple(1 if i in axes else n for i, n in enumerate(view.shape))
        self.results = (Result(spread if keepdims else self.shape, self.acc),)
        self.is_empty = 0 in view.shape

    def of_empty(self, op: Any, init: Any) -> Array:
        if (start := self.encode(init)) is not None:
            return start
        hint = "x has no elements along the reduced axes and op has no known identity"
        return self.identity(as_operator(op, self.where, 2), hint)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.reduce import cuda

        (view,), (target,) = views, targets
        strides = target.strides
        if len(strides) > len(self.shape):  # keepdims
            strides = tuple(s for i, s in enumerate(strides) if i not in self.axes)
        return cuda.plan_of([view], op, self.axes, view.dtype, self.acc, [strides])

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.reduce import cpu

        (x,), (result,) = arrays, results
        if result.flags.c_contiguous:
            cpu.reduce(x, result.reshape(self.shape), op, init, self.axes)
            return
        flat = np.empty(self.shape, self.acc)
        cpu.reduce(x, flat, op, init, self.axes)
        result[...] = flat.reshape(result.shape)

    def in_blocks(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        if places[0] is not None:
            return False
        from gpualgo._algorithms.reduce import blocks

        blocks.reduce(self, arrays[0], results[0], op, init, stream)
        return True
