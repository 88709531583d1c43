"""Which elements are meant, as lazy bools: what a predicate says, or an array of marks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays.view import as_view, view_of
from gpualgo._base import records
from gpualgo._base.errors import CompileError
from gpualgo._lazy import is_lazy
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import check_count, combined, led_by, parted, place_lazy
from gpualgo._lazy.expression import Call, Leaf
from gpualgo._lazy.leaf import positions
from gpualgo._operators.operator import as_operator
from gpualgo._operators.predicates import is_function
from gpualgo._pipeline import checks, refusals

_BOOL = np.dtype(np.bool_)
NOWHERE = (1 << 64) - 1


def of(x: Any, predicate: Any, where: str) -> LazyArray:
    """Return the marks of x's elements."""
    if is_number(x):
        view_of(x, f"{where}: x")  # which says that it is none
    part = parted(x, f"{where}: x")
    whole = combined([part], where, lambda nodes: nodes[0], "")
    if not is_function(predicate, where):
        return _given(whole, predicate, where)
    try:
        fn = as_operator(predicate, where, 1).fn  # whose values are those of the call
        found = LazyArray(whole.shape, Call(fn, whole.node), whole.leaves, "", whole.forms)
        dtype = found.dtype
    except (TypeError, ValueError, CompileError) as error:
        text = str(error)
        if text.startswith("lazy: "):
            error.args = (f"{where}: {text.removeprefix('lazy: ')}",)
        refusals.name(error, predicate, where, "predicate")
        raise
    if dtype != _BOOL:
        raise TypeError(
            f"{where}: predicate returns {records.shown(dtype)} of {records.shown(whole.dtype)}, "
            "and marks are bool; compare, as in lambda a: a != 0"
        )
    return found


def _given(whole: LazyArray, predicate: Any, where: str) -> LazyArray:
    """Return marks that are an array, once they fit the elements."""
    if not is_lazy(predicate):
        as_view(predicate, f"{where}: predicate")
    whole, predicate = place_lazy((whole, predicate), (), where)
    found = parted(predicate, f"{where}: predicate")
    if not isinstance(found, LazyArray) or found.dtype != _BOOL:
        dtype = getattr(found, "dtype", type(found).__name__)
        raise TypeError(
            f"{where}: predicate is an array of {dtype}, and marks are bool; "
            "pass predicate != 0, say"
        )
    if found.shape != whole.shape:
        raise ValueError(
            f"{where}: predicate has shape {found.shape} and x {whole.shape}; "
            "pass a mark for each element"
        )
    checks.same_place([*whole.views, *found.views], where)
    return led_by(found, whole)


def placed(marks: LazyArray, axis: int | None, where: str) -> LazyArray:
    """Return the place of each element along an axis, if it is marked; else NOWHERE."""
    axes = checks.axes_of(axis, marks.ndim, where)
    along = tuple(n if i in axes else 1 for i, n in enumerate(marks.shape))
    counted = positions(along).broadcast_to(marks.shape)
    leaves = (*marks.leaves, counted)
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    node = Call(_place, marks.node, Leaf(len(marks.leaves)))
    return LazyArray(marks.shape, node, leaves, "")


def _place(is_marked: Any, index: Any) -> Any:
    return np.uint64(index) if is_marked else np.uint64(NOWHERE)
