"""Checked arguments of the search for extreme elements."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._lazy.sources import computed
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Call, Problem, Result

INDEX = np.dtype(np.int64)


class Extremes(Problem):
    """Arguments that equal calls of `argmin`, `argmax` or `minmax` share."""

    takes_any_ndim = True
    returns_scalars = True
    functor: ClassVar[str]  # the functor's name in parts/operator.cuh, in lower case
    are_least: ClassVar[tuple[bool, ...]]  # for each result: least, else greatest
    has_index = True  # results are indices, not elements
    source: records.Computed | None  # if x is lazy

    def __init__(self, call: Call) -> None:
        device, views, op, _, params, where = call
        axis, keepdims, self.form, lazy = params
        self.inputs = ("x",) * len(views)
        super().__init__(call)
        view, self.source = views[0], None
        if lazy is not None:  # op's source computes pairs of elements, or of elements and indices
            self.source, _, (view, *others) = computed(op, views, lazy, device, where)
            if len(others) != 1:
                raise TypeError(
                    f"{where}: x has tuples for elements, which have no order; take a field of it, "
                    "x['0']"
                )
        checks.element(view, "x", where)
        if dtypes.kind(view.dtype) == "c":
            raise TypeError(
                f"{where}: x has dtype {view.dtype}, whose numbers have no order; "
                "pass abs(x), x.real or x.imag"
            )
        self.axes = axes = checks.axes_of(axis, len(view.shape), where)
        self.shape = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        if 0 in view.shape and 0 not in self.shape:
            raise ValueError(
                f"{where}: x of shape {view.shape} has no elements to choose from, and there is no "
                "identity; pass an array that has elements"
            )
        kept_shape = tuple(1 if i in axes else n for i, n in enumerate(view.shape))
        shape = kept_shape if keepdims else self.shape
        self.results = (
            (Result(shape, INDEX),) if self.has_index else (Result(shape, view.dtype),) * 2
        )

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        return super().of_shape(shape) if len(self.axes) == len(shape) else None


class ArgMinimum(Extremes):
    shape_attributes = ()
    functor = "arg_minimum"
    are_least = (True,)


class ArgMaximum(Extremes):
    shape_attributes = ()
    functor = "arg_maximum"
    are_least = (False,)


class MinimumMaximum(Extremes):
    shape_attributes = ()
    functor = "minimum_maximum"
    are_least = True, False
    has_index = False
