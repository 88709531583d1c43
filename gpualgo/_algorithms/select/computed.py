"""Lazy elements or lazy masks: both become one lazy array of (element, mark) pairs."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.select.problem import BOOL, NO_OPERATOR, Marked
from gpualgo._arrays.view import View, view_of
from gpualgo._base import records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, is_lazy
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import check_count, combined, parted, place_lazy
from gpualgo._lazy.expression import Group
from gpualgo._lazy.sources import Source
from gpualgo._operators.operator import Operator, fuse
from gpualgo._pipeline import checks


def paired_with_mask(
    x: Any, predicate: Any, where: str, outs: tuple[Any, ...]
) -> tuple[tuple[View, ...], Operator, Marked]:
    """Return the inputs, an operator that makes the pairs, and the form of their elements."""
    if is_lazy(predicate):
        x, predicate = place_lazy((x, predicate), outs, where)
    mask = None if is_lazy(predicate) or not _is_index_only(x) else view_of(predicate, where)
    if mask is not None and x.marked is not None and (mask.shape, mask.dtype) == (x.shape, BOOL):
        return _with_mask(x, mask), *x.marked
    views, op, form = _marked(x, predicate, where)
    if mask is not None:  # the same function, whichever the array
        x.marked = op, form
    return views, op, form


def _is_index_only(x: Any) -> bool:
    """Return whether x is lazy and reads no array."""
    return isinstance(x, LazyArray) and all(leaf_source.library is None for leaf_source in x.leaves)


def _with_mask(x: LazyArray, mask: View) -> tuple[View, ...]:
    """Return the views of x's index inputs, followed by the mask."""
    if mask.device == CPU:
        mask_view = expression.of_view(mask).view(CPU, mask.library)
    else:
        mask_view = mask._replace(readonly=True)
    return *(source.view(mask.device, mask.library) for source in x.leaves), mask_view


def _marked(x: Any, predicate: Any, where: str) -> tuple[tuple[View, ...], Operator, Marked]:
    parts = [parted(x, f"{where}: x"), parted(predicate, f"{where}: predicate")]
    lazy_x = combined(parts[:1], where, lambda nodes: nodes[0], "")
    checks.mask(parts[1], lazy_x.shape, where)
    if isinstance(x, tuple) and any(isinstance(item, tuple) for item in x):
        raise TypeError(
            f"{where}: x has nested tuples, which cannot be combined with an array of marks "
            "if either is lazy; compute it first with gpualgo.copy"
        )
    pair = combined(parts, where, lambda nodes: Group(None, *nodes), "")
    check_count(pair.leaves, records.MAX_FIELDS, f"{where}: x and predicate read")
    op = fuse(NO_OPERATOR, pair.function)
    return pair.views, op, Marked(Source(pair.forms), expression.picked(pair.node))
