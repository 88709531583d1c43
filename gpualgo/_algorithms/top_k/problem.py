"""Specifications of selections by rank: the first elements of each row, or those of some ranks."""

from __future__ import annotations

import math

import numpy as np

from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Call, Problem, Result

INDEX = np.dtype(np.int64)


class Ranked(Problem):
    """Base of both specifications: rows along an axis, and an order."""

    needs_alignment = False  # unaligned arrays are copied to dense, aligned rows
    copies_page_locked = True  # rows are read several times
    descending = False

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        super().__init__(call)
        (view,) = views
        if view.dtype.kind == "c":
            raise TypeError(
                f"{where}: x has dtype {view.dtype}, which has no order; pass a part of it, such "
                "as x.real, or abs(x)"
            )
        self.shape, self.dtype = view.shape, key_dtype_of(view.dtype, where, "x")
        self.axis = checks.axis_of(params[1], len(view.shape), where)  # None: flattened
        flat = (math.prod(view.shape),)
        self.rows_shape = flat if self.axis is None else view.shape
        self.row_items = self.rows_shape[self.axis or 0]

    def around(self, extent: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of rows with `extent` in place of the axis."""
        axis = self.axis or 0
        return (*self.rows_shape[:axis], *extent, *self.rows_shape[axis + 1 :])


class FirstElements(Ranked):
    """Specification of a `top_k` call, shared by equal calls."""

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        super().__init__(call)
        self.k, _, self.descending, self.form = params
        if not 0 <= self.k <= self.row_items:
            raise ValueError(
                f"{where}: k is {self.k}, and there are {self.row_items} elements to choose from; "
                f"pass 0 to {self.row_items}"
            )
        shape = self.around((self.k,))
        order = () if self.axis is None else order_of(shape, [views[0].strides])
        self.results = (Result(shape, self.dtype, (), order), Result(shape, INDEX, (), order))


class RankedElements(Ranked):
    """Specification of a `kth_value` call, shared by equal calls."""

    gives_scalars = True

    def __init__(self, call: Call) -> None:
        params, where = call.params, call.where
        super().__init__(call)
        self.ranks, _, is_one = params
        for rank in self.ranks:
            if self.row_items == 0:
                raise ValueError(
                    f"{where}: x has 0 elements to choose from; pass an array that has elements"
                )
            if not 0 <= rank < self.row_items:
                raise ValueError(
                    f"{where}: rank k={rank} is out of range for {self.row_items} "
                    f"elements; pass k from 0 to {self.row_items - 1}"
                )
        shape = self.around(())
        self.results = (Result(shape if is_one else (len(self.ranks), *shape), self.dtype),)
