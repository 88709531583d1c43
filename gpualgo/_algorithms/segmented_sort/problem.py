"""Specification of a segmented sort: keys, offsets, order, and values moved with the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.merge_sort.problem import comparison_of
from gpualgo._algorithms.radix_sort.problem import Forms, values_of
from gpualgo._algorithms.segments import problem as of_segments
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, check_items
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Call, Problem, Result

# --- Argument table slots of the kernel for short segments, and sizes.

KEYS, ENDS, BOUNDS = range(3)  # addresses

SHORT = 48  # most elements of a segment that is sorted by insertion
TASK = 1 << 15  # elements and segments per task


class SegmentedSort(Problem):
    """Specification of a `segmented_sort` call. Arrays: keys, offsets, then values."""

    needs_alignment = False  # unaligned arrays except offsets are copied
    copies_page_locked = True  # in place, each pass would cross the bus
    takes_any_items = True
    reads_data = True  # checks offsets

    def __init__(self, call: Call) -> None:
        device, views, params, where = call.device, call.views, call.params, call.where
        directions, self.num_keys, forms = params
        keys_form, values_form = forms[0], (*forms, None)[2]
        keys, (offsets, *value_views) = views[: self.num_keys], views[self.num_keys :]
        values = tuple(value_views)
        key_names = inputs.names(keys, keys_form, "keys")
        value_names = inputs.names(values, values_form, "values") if values else ()
        self.inputs = (*key_names, "offsets", *value_names)
        super().__init__(call)
        checks.same_place(list(views), where)
        for view, name in zip(values, value_names, strict=True):
            check_items(view, f"{where}: {name}")
        self.order = comparison_of(keys, key_names, keys_form, None, directions, device, where)
        for view, name in zip(keys, key_names, strict=True):
            if len(view.shape) != 1:
                raise ValueError(
                    f"{where}: {name} has {len(view.shape)} dimensions; pass a one-dimensional "
                    "array"
                )
        of_segments.check(offsets, where)
        (self.num_items,) = shape = keys[0].shape
        if len(values) == 1 and values[0].shape != shape:
            raise ValueError(
                f"{where}: values has shape {values[0].shape} but keys has {shape}; "
                "pass one value for each key"
            )
        self.results = tuple(
            Result(shape, view.dtype, (i,)) for i, view in enumerate(views) if i != self.num_keys
        )
        self.form, self.forms = keys_form, (keys_form, None, values_form)[: 2 + bool(values)]
        if values and (keys_form is not None or values_form is not None):
            self.form = Form(tuple, (keys_form, values_form))

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "order", views[: params[1]]

    def for_data(self, views: Views, stream: Any) -> Problem:
        offsets = views[self.num_keys]
        of_segments.check_values(offsets, self.num_items, self.where, stream, "keys")
        return self

    def parse_arrays(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        if not 1 < len(arguments) < 4:
            return None
        keys, offsets, values = (*arguments, None)[:3]
        try:
            return arguments_of(keys, offsets, values, self.where)
        except ValueError:  # no prepared shape matches; the caller reports it
            return None


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
