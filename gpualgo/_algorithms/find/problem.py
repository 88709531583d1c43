"""Counting and finding elements: reductions of marks, and of the indices of marked elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import View
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine

INDEX, _UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)


class Counting(Reduction):
    """Arguments that equal calls of `count` share."""

    function: ClassVar[str] = "count"
    composes_operator, op_name = True, "predicate"

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        if len(self.axes) < arrays[0].ndim:
            super().cpu(arrays, results, op, init)
            return
        from gpualgo._algorithms.select import cpu

        results[0][...] = cpu.count(self.source, arrays, op)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._pipeline.routines import bytes_of

        if len(self.axes) < arrays[0].ndim:
            return super().routines(arrays, results, op, init)
        from gpualgo._algorithms.select import cpu

        return [cpu.routine(arrays[0].size, bytes_of(arrays))]

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        if len(self.axes) < arrays[0].ndim:
            return super().prepared(op, arrays, results)
        from gpualgo._algorithms.select import cpu_prepared

        return cpu_prepared.search(self.source, arrays, op, is_counting=True)


class Finding(Reduction):
    """Arguments that equal calls of `find` share: a minimum of unsigned indices; -1 is greatest."""

    function: ClassVar[str] = "find"
    composes_operator, op_name = True, "predicate"

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        axis, keepdims, _, form, classes = rest
        super().__init__(device, views, op, init, (axis, keepdims, _UNSIGNED, form, classes), where)
        self.rest = rest
        self.results = tuple(result._replace(dtype=INDEX) for result in self.results)

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.array(-1, INDEX)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        if len(self.axes) < arrays[0].ndim:
            (unsigned_result,) = (result.view(_UNSIGNED) for result in results)
            super().cpu(arrays, [unsigned_result], op, init)
            return
        from gpualgo._algorithms.select import cpu

        results[0][...] = cpu.first(self.source, arrays, op)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._pipeline.routines import bytes_of

        if len(self.axes) < arrays[0].ndim:
            return super().routines(arrays, results, op, init)
        from gpualgo._algorithms.select import cpu

        return [cpu.routine(arrays[0].size, bytes_of(arrays), "seek")]

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        if len(self.axes) < arrays[0].ndim:
            return None
        from gpualgo._algorithms.select import cpu_prepared

        return cpu_prepared.search(self.source, arrays, op, is_counting=False)
