"""Lazy elements, or lazy marks of them: both are one lazy array of pairs."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.select.problem import BOOL, Marked
from gpualgo._arrays.view import View, view_of
from gpualgo._base import records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, is_lazy, leaf
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import check_count, combined, parted, place_lazy
from gpualgo._lazy.expression import Group
from gpualgo._lazy.sources import Source
from gpualgo._operators.joint import joint
from gpualgo._operators.operator import Operator, known


def marked(
    x: Any, predicate: Any, where: str, outs: tuple[Any, ...]
) -> tuple[tuple[View, ...], Operator, Marked]:
    """Return what is read, no operator with what makes pairs, and how their elements are built."""
    if is_lazy(predicate):
        x, predicate = place_lazy((x, predicate), outs, where)
    mark = None if is_lazy(predicate) or not _are_positions(x) else view_of(predicate, where)
    if mark is not None and x.marked is not None and (mark.shape, mark.dtype) == (x.shape, BOOL):
        return _beside(x, mark), *x.marked
    views, op, form = _marked(x, predicate, where)
    if mark is not None:  # the same function, whichever the array
        x.marked = op, form
    return views, op, form


def _are_positions(x: Any) -> bool:
    """Return whether x is lazy and reads nothing."""
    return isinstance(x, LazyArray) and all(one.library is None for one in x.leaves)


def _beside(x: LazyArray, mark: View) -> tuple[View, ...]:
    """Return the views of positions beside a mark for each."""
    if mark.device == CPU:
        last = leaf.of_view(mark).view(CPU, mark.library)
    else:
        last = mark._replace(readonly=True)
    return *(one.view(mark.device, mark.library) for one in x.leaves), last


def _marked(x: Any, predicate: Any, where: str) -> tuple[tuple[View, ...], Operator, Marked]:
    parts = [parted(x, f"{where}: x"), parted(predicate, f"{where}: predicate")]
    whole = combined(parts[:1], where, lambda nodes: nodes[0], "")
    mark = parts[1]
    if not isinstance(mark, LazyArray) or mark.shape != whole.shape:
        shape = mark.shape if isinstance(mark, LazyArray) else ()
        raise ValueError(
            f"{where}: predicate has shape {shape} and x {whole.shape}; "
            "pass a mark for each element"
        )
    if mark.dtype != BOOL:
        raise TypeError(
            f"{where}: predicate is an array of {records.shown(mark.dtype)}, and marks are bool; "
            "pass predicate != 0, say"
        )
    if isinstance(x, tuple) and any(isinstance(item, tuple) for item in x):
        raise TypeError(
            f"{where}: x holds a tuple within a tuple, which does not go with an array of marks "
            "where something is lazy; make it real with gpualgo.copy"
        )
    pair = combined(parts, where, lambda nodes: Group(None, nodes), "")
    check_count(pair.leaves, records.MAX_FIELDS, f"{where}: x and predicate read")
    op = joint(known("no_operator"), pair.function)
    return pair.views, op, Marked(Source(pair.forms), expression.picked(pair.node))
