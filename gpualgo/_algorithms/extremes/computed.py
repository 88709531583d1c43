"""Lazy inputs of a search for extremes: lazy arrays of (element, index) or (element, element)."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.extremes.problem import Extremes
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import check_count, combined, parted, place_lazy
from gpualgo._lazy.expression import Group, Leaf, Node, positions
from gpualgo._operators.operator import Operator, builtin, fuse
from gpualgo._pipeline import checks


def input_of(
    kind: type[Extremes], x: Any, axis: Any, out: Any, where: str
) -> tuple[tuple[View, ...], Operator]:
    """Return the inputs, and the operator, whose source makes the pairs."""
    (x,) = place_lazy((x,), (out,), where)
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
        pair = type(part)(part.shape, Group(None, part.node, Leaf(len(leaves) - 1)), leaves, "")
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    return pair.views, fuse(builtin(kind.functor), pair.function)


def _pair(nodes: list[Node]) -> Node:
    return Group(None, nodes[0], nodes[0])
