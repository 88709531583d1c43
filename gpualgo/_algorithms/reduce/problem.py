"""Checked arguments of a reduction: axes and accumulator dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, elements
from gpualgo._pipeline.problem import Array, Call, Problem, Result


class Reduction(Problem):
    """Arguments that equal calls of `reduce` share."""

    needs_associativity = True
    gives_scalars = True
    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        axis, keepdims, dtype, form, _ = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
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
        self.has_init = init is not None

    def of_empty(self, op: Any, init: Any) -> Array:
        if (start := self.encode(init)) is not None:
            return start
        reason = "x has no elements along the reduced axes and op has no known identity"
        return self.identity(as_operator(op, self.where, 2), reason)
