"""Extremes of computed elements: a reduction of (element, index) pairs."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.extremes.problem import (
    ArgMaximum,
    ArgMinimum,
    Extremes,
    MinimumMaximum,
)
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import check_count, combined, parted
from gpualgo._lazy.expression import Group, Leaf, Node, positions
from gpualgo._lazy.sources import Source, computed
from gpualgo._operators.operator import Operator, builtin, fuse
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Call


class Computed(Extremes):
    """Base class of the three algorithms."""

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        axis, keepdims, form, source = params
        assert op is not None
        self.inputs = ("x",) * len(views)
        self.source, _, value_views = computed(op, views, source, device, where)
        self.acc = self.source.result
        if len(records.field_dtypes(self.acc)) != 2:
            raise TypeError(
                f"{where}: x has tuples for elements, which have no order; take a field of it, "
                "x['0']"
            )
        super().__init__(call._replace(views=(value_views[0],), params=(axis, keepdims, form)))
        self.params = params


class _ArgMinimum(Computed, ArgMinimum):
    """`argmin` of computed elements."""


class _ArgMaximum(Computed, ArgMaximum):
    """`argmax` of computed elements."""


class _MinimumMaximum(Computed, MinimumMaximum):
    """`minmax` of computed elements."""


_KINDS = {ArgMinimum: _ArgMinimum, ArgMaximum: _ArgMaximum, MinimumMaximum: _MinimumMaximum}


def input_of(
    kind: type[Extremes], x: Any, axis: Any, where: str
) -> tuple[type[Extremes], tuple[View, ...], Operator, Source]:
    """Return the problem's class, the inputs, the operator, and the mark of computed elements."""
    part = parted(x, f"{where}: x")
    if isinstance(x, tuple) or not is_lazy(x):
        raise TypeError(f"{where}: x is a tuple, whose elements have no order; pass one array")
    axes = checks.axes_of(axis, part.ndim, where)
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(part.shape))
    indices = positions(axis_shape).broadcast_to(part.shape)
    pair = combined([part], where, _pair, "")
    leaves = pair.leaves
    if kind.has_index:
        leaves = (*leaves, indices)
        pair = type(part)(part.shape, _with_index(part.node, len(leaves) - 1), leaves, "")
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    return _KINDS[kind], pair.views, fuse(builtin(kind.functor), pair.function), Source(())


def _pair(nodes: list[Node]) -> Node:
    return Group(None, [nodes[0], nodes[0]])


def _with_index(node: Node, index: int) -> Node:
    return Group(None, [node, Leaf(index)])
