"""Counting and finding elements: reductions of marks, and of the indices of marked elements."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import as_view, view_of
from gpualgo._base import records
from gpualgo._base.errors import CompileError
from gpualgo._lazy import expression, is_lazy
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import check_count, combined, led_by, parted, place_lazy
from gpualgo._lazy.leaf import positions
from gpualgo._operators.operator import as_operator, is_function
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Call

INDEX, UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)


class Counting(Reduction):
    """Arguments that equal calls of `count` share."""

    function: ClassVar[str] = "count"
    composes_operator, op_name = True, "predicate"


class Finding(Reduction):
    """Arguments that equal calls of `find` share: a minimum of unsigned indices; -1 is greatest."""

    function: ClassVar[str] = "find"
    composes_operator, op_name = True, "predicate"

    def __init__(self, call: Call) -> None:
        params = call.params
        axis, keepdims, _, form, classes = params
        super().__init__(call._replace(params=(axis, keepdims, UNSIGNED, form, classes)))
        self.params = params
        self.results = tuple(result._replace(dtype=INDEX) for result in self.results)

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.array(-1, INDEX)


# --- Marks of elements as lazy bools: the results of a predicate, or a given array.

_BOOL = np.dtype(np.bool_)
UNMARKED = (1 << 64) - 1


def of(x: Any, predicate: Any, where: str) -> LazyArray:
    """Return the marks of x's elements."""
    if is_number(x):
        view_of(x, f"{where}: x")  # raises, because a number is no array
    part = parted(x, f"{where}: x")
    lazy_x = combined([part], where, lambda nodes: nodes[0], "")
    if not is_function(predicate, where):
        return _checked_array(lazy_x, predicate, where)
    try:
        # captured values are those at the time of the call
        fn = as_operator(predicate, where, 1).fn
        lazy_marks = LazyArray(
            lazy_x.shape, expression.Call(fn, lazy_x.node), lazy_x.leaves, "", lazy_x.forms
        )
        dtype = lazy_marks.dtype
    except (TypeError, ValueError, CompileError) as error:
        text = str(error)
        if text.startswith("lazy: "):
            error.args = (f"{where}: {text.removeprefix('lazy: ')}",)
        checks.name(error, predicate, where, "predicate")
        raise
    if dtype != _BOOL:
        raise TypeError(
            f"{where}: predicate returns {records.shown(dtype)} of {records.shown(lazy_x.dtype)}, "
            "but must return bool; compare, as in lambda a: a != 0"
        )
    return lazy_marks


def _checked_array(lazy_x: LazyArray, predicate: Any, where: str) -> LazyArray:
    """Return marks that are given as an array, after checking that they fit the elements."""
    if not is_lazy(predicate):
        as_view(predicate, f"{where}: predicate")
    lazy_x, predicate = place_lazy((lazy_x, predicate), (), where)
    lazy_marks = parted(predicate, f"{where}: predicate")
    if not isinstance(lazy_marks, LazyArray) or lazy_marks.dtype != _BOOL:
        dtype = getattr(lazy_marks, "dtype", type(lazy_marks).__name__)
        raise TypeError(
            f"{where}: predicate is an array of {dtype}, but must be bool; pass predicate != 0, say"
        )
    if lazy_marks.shape != lazy_x.shape:
        raise ValueError(
            f"{where}: predicate has shape {lazy_marks.shape} and x {lazy_x.shape}; "
            "pass a bool for each element"
        )
    checks.same_place([*lazy_x.views, *lazy_marks.views], where)
    return led_by(lazy_marks, lazy_x)


def indices_of_marked(marks: LazyArray, axis: int | None, where: str) -> LazyArray:
    """Return each element's index along an axis if it is marked, else NOWHERE."""
    axes = checks.axes_of(axis, marks.ndim, where)
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(marks.shape))
    indices = positions(axis_shape).broadcast_to(marks.shape)
    leaves = (*marks.leaves, indices)
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    node = expression.Call(_index_or_nowhere, marks.node, expression.Leaf(len(marks.leaves)))
    return LazyArray(marks.shape, node, leaves, "")


def _index_or_nowhere(is_marked: Any, index: Any) -> Any:
    return np.uint64(index) if is_marked else np.uint64(UNMARKED)
