"""A scan: along which axis, which way, which dtype accumulates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._arrays.view import View
from gpualgo._operators.operator import Operator
from gpualgo._operators.recognised import check_dtype
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Problem, Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan

INCLUSIVE, EXCLUSIVE = "inclusive_scan", "exclusive_scan"


class Scan(Problem):
    """What equal calls of `inclusive_scan` share."""

    is_exclusive = False

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        super().__init__(device, views, op, init, rest, where)
        (view,), (axis, reverse, dtype) = views, rest
        checks.element(view, "x", where)
        self.is_reverse = reverse
        on_device = type(init) is View
        given = init.dtype if on_device and dtype is None else dtype
        self.acc = checks.accumulator(view, init, given, where)
        if on_device and init.dtype != self.acc:
            raise TypeError(
                f"{where}: init on the device has dtype {init.dtype}, the accumulator {self.acc}; "
                "convert it first"
            )
        check_dtype(op, self.acc, where)
        self.shape = view.shape
        self.axis = checks.axis_of(axis, len(view.shape), where)  # None: as if x were flattened
        shape = (math.prod(view.shape),) if self.axis is None else view.shape
        self.results = (Result(shape, self.acc, in_place_of=(0,)),)
        if self.is_exclusive and init is None:
            hint = "op has no known identity for the first result"
            self.default_start = self.identity(op, hint)

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.scan import cuda

        return cuda.plan_of(self, views[0], op, targets[0])

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.scan import cpu

        (x,), (result,) = arrays, results
        ways = self.axis, self.is_exclusive, self.is_reverse
        cpu.scan([x], [result], op, init, *ways, x.dtype, self.acc)


class ExclusiveScan(Scan):
    """What equal calls of `exclusive_scan` share: an element is no part of its own result."""

    is_exclusive = True
