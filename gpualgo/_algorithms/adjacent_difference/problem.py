"""Checked arguments of adjacent differences: the axis, and the dtype that op returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._base.strides import order_of
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._pipeline import checks, elements, outputs
from gpualgo._pipeline.problem import Array, Call, Problem, Result

# --- Slices along an axis: op of later and earlier elements gives all results but the first.


class Parts(NamedTuple):
    """Index tuples that slice an array along an axis."""

    first: Any
    later: Any  # all but the first
    earlier: Any  # all but the last

    @classmethod
    def along(cls, axis: int) -> Parts:
        """Return the slices along an axis."""
        lead = (slice(None),) * axis
        return cls(*((*lead, slice(*ends)) for ends in ((0, 1), (1, None), (None, -1))))

    def cut(
        self, arrays: Sequence[Array], outs: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Return op's operands, later elements before earlier ones, and the results' views."""
        _, later, earlier = self
        if len(arrays) == 1:  # the usual case, which each warm call takes
            return [arrays[0][later], arrays[0][earlier]], [outs[0][later]]
        operands = [array[part] for part in (later, earlier) for array in arrays]
        return operands, [out[later] for out in outs]

    def copy_first(self, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        """Convert and copy the first elements of all lines."""
        first = self.first
        for array, out in zip(arrays, outs, strict=True):
            if array.dtype == out.dtype:
                out[first] = array[first]
                continue
            with np.errstate(all="ignore"):  # kernels do not warn
                np.copyto(out[first], array[first], casting="unsafe")


class AdjacentDifference(Problem):
    """Arguments that equal calls of `adjacent_difference` share."""

    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        axis, form = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
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
