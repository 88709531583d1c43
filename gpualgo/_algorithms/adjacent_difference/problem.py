"""Checked arguments of adjacent differences: the axis, and the dtype that op returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.adjacent_difference.parts import Parts
from gpualgo._algorithms.transform import blocks
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, records
from gpualgo._base.strides import order_of
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, outputs
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Array, Problem

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


class AdjacentDifference(Problem):
    """Arguments that equal calls of `adjacent_difference` share."""

    spreads_tuples = True

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        axis, form = rest
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(device, views, op, init, rest, where)
        checks.same_place(list(views), where)
        self.source, element_form, _ = elements_of(op, views, form, device, where)
        self.shape = views[0].shape
        checked_axis = checks.axis_of(axis, len(self.shape), where)
        assert checked_axis is not None
        self.axis: int = checked_axis
        element = records.register_dtype(self.source)
        elements.check_operator(op, element, where)
        self.result = outputs.dtype_of(op, (element, element), None, device, where)
        _check_first(element, self.result, where)
        # Results have the structure of x's elements, because first elements are copied.
        self.result = records.with_leaves(element, records.field_dtypes(self.result))
        self.form = element_form
        # A repeated array does not affect the order, as in a transformation.
        self.order = order_of(self.shape, [view.strides for view in views])
        self.results = tuple(
            Result(self.shape, leaf, order=self.order) for leaf in records.field_dtypes(self.result)
        )

    def cuda(self, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.adjacent_difference import cuda

        return cuda.plan_of(self, views, op, targets)

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.adjacent_difference import cpu

        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        cpu.difference(self.source, self.result, self.axis, broadcast, results, op)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.adjacent_difference import cpu
        from gpualgo._pipeline.routines import bytes_of

        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        step = cpu.routine(results[0].size, bytes_of(broadcast, results))
        is_computed = isinstance(self.source, records.Computed)  # one more step
        return [step] * (is_computed + (self.shape[self.axis] > 1))

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        from gpualgo._algorithms.adjacent_difference import cpu

        assert op is not None
        if isinstance(self.source, records.Computed) or 0 in self.shape:
            return None
        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        return cpu.prepared(self.source, self.result, self.axis, broadcast, results, op)

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        if not is_large([*arrays, *results]):
            return False
        return self.chunked_fallback(arrays, results, op, stream, places)

    def chunked_fallback(
        self, arrays: list[Array], results: list[Array], op: Any, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        if isinstance(self.source, records.Computed) or 0 in self.shape:
            return False
        if self.shape[self.axis] < 2:  # there is no difference to compute
            return False
        broadcast = [np.broadcast_to(array, self.shape) for array in arrays]
        difference(self, broadcast, results, op, stream, places)
        return True


def _check_first(element: np.dtype[Any], result: np.dtype[Any], where: str) -> None:
    """Raise TypeError unless x[0] can be converted to op's result."""
    shown = f"{where}: op returns {records.shown(result)} for {records.shown(element)}"
    if _structure(element) != _structure(result):
        raise TypeError(
            f"{shown}, but y[0] is x[0], which has another structure; return as many numbers as an "
            "element has, or pass x[1:] and x[:-1] to transform"
        )
    for source, target in zip(
        records.field_dtypes(element), records.field_dtypes(result), strict=True
    ):
        if dtypes.kind(source) == "c" != dtypes.kind(target):
            raise TypeError(
                f"{shown}, but y[0] is x[0], whose imaginary part would be lost; return a complex "
                "number, or pass x[1:] and x[:-1] to transform"
            )


def _structure(dtype: np.dtype[Any]) -> tuple[str, ...] | None:
    """Return the nesting of an element's tuples; None for a number."""
    if dtype.names is None:
        return None
    return tuple(name.rpartition(".")[0] for name in dtype.names)


# --- Adjacent differences of large host arrays on a GPU: a transformation in blocks.

is_large = blocks.is_large


def difference(
    problem: AdjacentDifference, arrays: Sequence[Array], outs: Sequence[Array], op: Any,
    stream: Any, places: Sequence[View | None],
) -> None:  # fmt: skip
    """Write all results of lines of at least two elements; pageable arrays are uploaded twice."""
    axis, source, result = problem.axis, problem.source, problem.result
    element = records.register_dtype(source)
    argument = records.Separate(element) if records.is_record(element) else element
    applied = Applied(op, (argument, argument), result, records.field_dtypes(source) * 2)
    parts = Parts.along(axis)
    operands, targets = parts.cut(arrays, outs)
    inputs = list(zip(arrays, places, strict=False))
    out_pairs = list(zip(outs, places[len(arrays) :], strict=True))
    views = [_shifted(*pair, axis) for pair in inputs] + [place for _, place in inputs]
    views += [_shifted(*pair, axis) for pair in out_pairs]
    blocks.transform(problem, applied, operands, targets, stream, views)  # waits for the results
    parts.copy_first(arrays, outs)


def _shifted(array: Array, place: View | None, axis: int) -> View | None:
    """Return a page-locked array's view without the first elements of its lines."""
    return place and place._replace(ptr=place.ptr + array.strides[axis])
