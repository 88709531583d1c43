"""Specification of a segmented sort: keys, offsets, order, and values moved with the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.merge_sort.problem import comparison_of
from gpualgo._algorithms.radix_sort.problem import Forms, KeysAndValues, num_fields, values_of
from gpualgo._algorithms.segments import problem as of_segments
from gpualgo._arrays.view import View
from gpualgo._pipeline import inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Call, Problem

SHORT = 48  # most elements of a segment that is sorted by insertion
TASK = 1 << 15  # elements and segments per task


class SegmentedSort(KeysAndValues):
    """Specification of a `segmented_sort` call. Arrays: keys, offsets, then values."""

    reads_data = True  # checks offsets

    def __init__(self, call: Call) -> None:
        views, where = call.views, call.where
        directions, forms = call.params
        super().__init__(call, ("keys", "offsets", "values"), forms)
        keys, names = views[: self.num_keys], self.inputs[: self.num_keys]
        self.order = comparison_of(keys, names, forms[0], None, directions, call.device, where)
        for view, name in zip(keys, names, strict=True):
            if len(view.shape) != 1:
                raise ValueError(
                    f"{where}: {name} has {len(view.shape)} dimensions; pass a one-dimensional "
                    "array"
                )
        of_segments.check(views[self.num_keys], where)
        self.set_rows(call, 0)

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "order", views[: num_fields(params[1][0])]

    def for_data(self, views: Views, stream: Any) -> Problem:
        offsets = views[self.num_keys]
        of_segments.check_values(offsets, self.row_items, self.where, stream, "keys")
        return self

    def parse_arrays(self, arguments: tuple[Any, ...]) -> tuple[Views, Forms] | None:
        if not 1 < len(arguments) < 4:
            return None
        keys, offsets, values = (*arguments, None)[:3]
        return arguments_of(keys, offsets, values, self.where)


def arguments_of(
    keys: Any, offsets: Any, values: Any, where: str, stream: Any = None
) -> tuple[Views, Forms]:
    views, form = inputs.spread(keys, f"{where}: keys")
    if form is not None and not isinstance(keys, tuple):
        raise TypeError(
            f"{where}: keys is a structured array; pass a tuple of its fields, and the array "
            "itself as values="
        )
    if form is not None and any(item is not None for item in form.items):
        raise TypeError(f"{where}: keys holds a tuple within a tuple; pass one tuple of arrays")
    views = (*views, of_segments.view(offsets, where, stream))
    if values is None:
        return views, (form, None)
    moved, values_form = values_of(values, views[0].shape, where)
    return (*views, *moved), (form, None, values_form)
