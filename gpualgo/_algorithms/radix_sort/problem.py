"""Specification of a sort: key dtypes, axis, and the bits compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.view import View, check_items, view_of
from gpualgo._base import dtypes
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of
from gpualgo._pipeline.run import run

_INDEX_DTYPES = ("int64", "int32", "uint64", "uint32")


class Sort(Problem):
    """Specification of a `radix_sort` or `argsort` call, shared by equal calls."""

    inputs = ("keys", "values")
    needs_alignment = False  # unaligned arrays are copied to dense, aligned rows
    copies_page_locked = True  # in place, each pass would cross the bus
    takes_any_items = True
    num_keys = 1
    is_of_tuples = False

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        super().__init__(call)
        descending, begin_bit, end_bit, axis, index_dtype = params
        keys = views[0]
        self.shape, self.key_dtype = keys.shape, key_dtype_of(keys.dtype, where)
        for view in views[1:]:
            check_items(view, f"{where}: values")
        checks.same_place(list(views), where)
        self.descending, self.directions = descending, (descending,)
        self.begin_bit, self.end_bit = bits_of(begin_bit, end_bit, self.key_dtype, where)
        self.axis = checks.axis_of(axis, len(keys.shape), where)  # None: flattened
        for values in views[1:]:
            if values.shape != keys.shape:
                raise ValueError(
                    f"{where}: values has shape {values.shape} but keys has {keys.shape}; "
                    "pass one value for each key"
                )
        size = math.prod(keys.shape)
        self.row_items = size if self.axis is None else keys.shape[self.axis]
        shape = (size,) if self.axis is None else keys.shape
        orders = [() if self.axis is None else order_of(shape, [view.strides]) for view in views]
        self.index_dtype: np.dtype[Any] | None = None
        if index_dtype is None:
            self.results = tuple(
                Result(shape, view.dtype, (i,), orders[i]) for i, view in enumerate(views)
            )
        else:
            self.index_dtype = index_dtype_of(index_dtype, self.row_items, where)
            self.results = (Result(shape, self.index_dtype, (), orders[0]),)

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "sort" if len(views) == 1 and params[-1] is None else "order", views[:1]

    def rest_along(self, axis: int, index_dtype: np.dtype[Any] | None) -> tuple[Any, ...]:
        """Return parameters for sorting other rows; without `index_dtype`, positions are values."""
        return (*self.params[:3], axis, index_dtype)


class SortAndOrder(Sort):
    """Specification of a sort of keys on a GPU that returns their positions as well."""

    def __init__(self, call: Call) -> None:
        views = call.views
        super().__init__(call)
        self.results = (Result(self.shape, views[0].dtype), *self.results)


def sort_and_order(keys: Any, descending: bool, dtype: Any, stream: Any) -> tuple[Any, Any]:
    """Return a GPU's keys sorted, as `radix_sort`, and the positions that they had."""
    views, params = (view_of(keys, "argsort: keys"),), (descending, 0, None, -1, dtype)
    problem = problem_of(SortAndOrder, views, None, None, params, "argsort", 0)
    result: tuple[Any, Any] = run(problem, views, None, None, None, stream)
    return result


def key_dtype_of(dtype: np.dtype[Any], where: str, name: str = "keys") -> np.dtype[Any]:
    dtypes.check(dtype, f"{where}: {name}")
    if dtype.kind == "c":
        raise TypeError(
            f"{where}: {name} has dtype {dtype}, which has no order; "
            "pass the tuple (x.real, x.imag) to sort by the one and then by the other"
        )
    return dtype


def bits_of(first: int, end: int | None, dtype: np.dtype[Any], where: str) -> tuple[int, int]:
    width = 8 * dtype.itemsize
    last = width if end is None else end
    if dtypes.kind(dtype) in "bf" and (first, last) != (0, width):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for dtype {dtype}; "
            "leave them out, or sort an integer view of the keys"
        )
    if not 0 <= first < last <= width:
        raise ValueError(
            f"{where}: begin_bit={first} and end_bit={last} are not a range of bits of {dtype}; "
            f"pass 0 <= begin_bit < end_bit <= {width}"
        )
    return first, last


def index_dtype_of(value: Any, extent: int, where: str) -> np.dtype[Any]:
    """Return the index dtype after checking that it holds every position of a row."""
    dtype = dtypes.as_dtype(value, where)
    if dtypes.name_of(dtype) not in _INDEX_DTYPES:
        raise TypeError(
            f"{where}: dtype {dtype} is not an index dtype; use one of {', '.join(_INDEX_DTYPES)}"
        )
    if extent - 1 > np.iinfo(dtype).max:
        raise ValueError(
            f"{where}: index dtype too narrow: {dtype} cannot count {extent} keys; "
            "pass dtype=np.int64"
        )
    return dtype
