"""Checked arguments of a scan: axis, direction, accumulator dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import order_of
from gpualgo._lazy.sources import arguments_of, elements_of
from gpualgo._pipeline import checks, elements
from gpualgo._pipeline.problem import Call, Problem, Result

INCLUSIVE, EXCLUSIVE = "inclusive_scan", "exclusive_scan"


class Scan(Problem):
    """Arguments that equal calls of `inclusive_scan` share."""

    needs_associativity = True
    is_exclusive = False
    spreads_tuples = True

    def __init__(self, call: Call) -> None:
        device, views, op, init, params, where = call
        axis, self.is_reverse, dtype, form, _ = params
        self.inputs, self.forms = arguments_of(views, form)
        super().__init__(call)
        self.source, self.form, value_dtype = elements_of(op, views, form, device, where)
        view = views[0]
        on_device = type(init) is View
        given = init.dtype if on_device and dtype is None else dtype
        self.acc: np.dtype[Any] = elements.accumulator(value_dtype, self.form, init, given, where)
        if on_device and init.dtype != self.acc:
            raise TypeError(
                f"{where}: init on the device has dtype {init.dtype}, the accumulator {self.acc}; "
                "convert it first"
            )
        elements.check_operator(op, self.acc, where)
        self.shape = view.shape
        self.axis = checks.axis_of(axis, len(view.shape), where)  # None: x is flattened
        shape = (math.prod(view.shape),) if self.axis is None else view.shape
        layouts = [] if self.axis is None else [view.strides for view in views]
        order = order_of(shape, layouts)
        # Elements are computed into the results' memory, so each result may overlap every input.
        all_inputs = tuple(range(len(views)))
        is_computed = isinstance(self.source, records.Computed)
        self.results = tuple(
            Result(shape, leaf, all_inputs if is_computed else (i,), order)
            for i, leaf in enumerate(records.field_dtypes(self.acc))
        )
        if self.is_exclusive and init is None:
            reason = "op has no known identity for the first result"
            self.default_start = self.identity(op, reason)


class ExclusiveScan(Scan):
    """Arguments that equal calls of `exclusive_scan` share."""

    is_exclusive = True
