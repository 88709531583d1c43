"""Dtype conversions of lazy arrays' elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._base import dtypes, records
from gpualgo._lazy.expression import Call, Group, Item, Node


def cast(node: Node, own: np.dtype[Any], one: np.dtype[Any], where: str) -> Node:
    for number in records.field_dtypes(own):
        if dtypes.kind(number) == "c" and dtypes.kind(one) not in "cb":
            raise TypeError(
                f"{where}: {number} cannot become {one} without losing the imaginary part; "
                "use x.real"
            )
    return cast_to(node, own, records.with_leaves(own, [one] * len(records.field_dtypes(own))))


def cast_to(node: Node, own: np.dtype[Any], wanted: np.dtype[Any]) -> Node:
    if own == wanted and records.field_dtypes(own) == records.field_dtypes(wanted):
        return node
    if not records.is_record(own):
        return Call(wanted.type, node)
    pairs = iter(zip(records.field_dtypes(own), records.field_dtypes(wanted), strict=True))
    return _cast_form(node, forms.form_of(own.names or ()), pairs)


def _cast_form(node: Node, form: Form, pairs: Any) -> Node:
    items: list[Node] = []
    for i, inner in enumerate(form.items):
        item = Item(i, node)
        if inner is not None:
            items.append(_cast_form(item, inner, pairs))
        else:
            source, target = next(pairs)
            items.append(item if source == target else Call(target.type, item))
    return Group(None if form.cls is tuple else form.cls, items)
