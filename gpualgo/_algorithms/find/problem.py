"""Counting and finding elements: reductions of marks, and of the places of what is marked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import View
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.problem import Array

if TYPE_CHECKING:
    from gpualgo._pipeline.problem import Prepared

INDEX, _PLACE = np.dtype(np.int64), np.dtype(np.uint64)

_FIRST_LOOK, _GROWTH = 1 << 16, 4  # elements; each further look is at so many times more


class Counting(Reduction):
    """What equal calls of `count` share."""

    function: ClassVar[str] = "count"
    looks_again, op_name = True, "predicate"

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        if len(self.axes) < arrays[0].ndim:
            super().cpu(arrays, results, op, init)
            return
        from gpualgo._algorithms.select import cpu

        results[0][...] = cpu.count(self.source, arrays, op)

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None if len(self.axes) == arrays[0].ndim else super().prepared(op, arrays, results)


class Finding(Reduction):
    """What equal calls of `find` share: the least place, which is unsigned, so that -1 is last."""

    function: ClassVar[str] = "find"
    looks_again, op_name = True, "predicate"

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        axis, keepdims, _, form, classes = rest
        super().__init__(device, views, op, init, (axis, keepdims, _PLACE, form, classes), where)
        self.rest = rest
        self.results = tuple(result._replace(dtype=INDEX) for result in self.results)

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.array(-1, INDEX)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        (place,) = (result.view(_PLACE) for result in results)
        shape = arrays[0].shape
        if len(self.axes) < len(shape) or len(shape) != 1:
            super().cpu(arrays, [place], op, init)
            return
        for part in _looks(shape[0]):
            super().cpu([array[part] for array in arrays], [place], op, init)
            if results[0] >= 0:
                return

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        return None


def _looks(length: int) -> Iterator[slice]:
    """Yield the parts in which elements are looked at, until one is found."""
    begin, size = 0, _FIRST_LOOK
    while begin < length:
        yield slice(begin, begin + size)
        begin, size = begin + size, size * _GROWTH
