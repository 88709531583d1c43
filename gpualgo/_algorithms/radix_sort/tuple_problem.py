"""Specification of a sort whose keys or values are tuples of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import words
from gpualgo._algorithms.radix_sort.problem import bits_of, index_dtype_of, key_dtype_of
from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, check_items, view_of
from gpualgo._base.strides import order_of
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Call, Problem, Result, problem_of

Forms = tuple[Form | None, ...]


class TupleSort(Problem):
    """Specification of a `radix_sort` or `argsort` call with tuples, shared by equal calls."""

    needs_alignment = False
    copies_page_locked = True
    takes_any_items = True
    is_of_tuples = True

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        ways, begin_bit, end_bit, axis, index_dtype, self.forms = params
        keys_form, values_form = (*self.forms, None)[:2]
        self.ways, self.num_keys = ways, len(ways)
        count = len(ways)
        keys, values = views[:count], views[count:]
        key_names = inputs.names(keys, keys_form, "keys")
        value_names = inputs.names(values, values_form, "values") if values else ()
        self.inputs = (*key_names, *value_names)
        super().__init__(call)
        for view, name in zip(values, value_names, strict=True):
            check_items(view, f"{where}: {name}")
        for view, name in zip(keys, key_names, strict=True):
            key_dtype_of(view.dtype, where, name)
        checks.same_place(list(views), where)
        self.groups = words.groups_of([view.dtype for view in keys], ways)
        self.value_word = words.value_word([view.dtype for view in values])
        self.begin_bit, self.end_bit = begin_bit, end_bit
        if keys_form is None:
            self.begin_bit, self.end_bit = bits_of(begin_bit, end_bit, keys[0].dtype, where)
        self.shape = shape = keys[0].shape
        self.axis = checks.axis_of(axis, len(shape), where)  # None: flattened
        if len(values) == 1 and values[0].shape != shape:
            raise ValueError(
                f"{where}: values has shape {values[0].shape} but keys has {shape}; "
                "pass one value for each key"
            )
        size = math.prod(shape)
        self.row_items = size if self.axis is None else shape[self.axis]
        out_shape = (size,) if self.axis is None else shape
        orders = [() if self.axis is None else order_of(shape, [view.strides]) for view in views]
        self.index_dtype: np.dtype[Any] | None = None
        if index_dtype is not None:
            self.index_dtype = index_dtype_of(index_dtype, self.row_items, where)
            order = orders[0] if len(set(orders[: len(keys)])) == 1 else ()
            self.results = (Result(out_shape, self.index_dtype, (), order),)
            return
        self.results = tuple(
            Result(out_shape, view.dtype, (i,), orders[i]) for i, view in enumerate(views)
        )
        self.form = Form(tuple, (keys_form, values_form)) if values else keys_form

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "order", views[: len(rest[0])]

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        try:
            return arguments_of(tuple(arguments), self.where) if 0 < len(arguments) < 3 else None
        except ValueError:  # no prepared shape matches; the caller reports it
            return None

    def rest_along(self, axis: int, index_dtype: np.dtype[Any] | None) -> tuple[Any, ...]:
        """Return parameters for sorting other rows; without `index_dtype`, positions are values."""
        are_values = index_dtype is None and self.index_dtype is not None
        forms = (self.forms[0], None) if are_values else self.forms
        return (*self.params[:3], axis, index_dtype, forms)


def arguments_of(arguments: tuple[Any, ...], where: str) -> tuple[Views, Forms]:
    """Return the views of keys, and of values if given, and the structure of each."""
    keys, form = inputs.spread(arguments[0], f"{where}: keys", has_names=False)
    if len(arguments) == 1:
        return keys, (form,)
    moved, moved_form = values_of(arguments[1], keys[0].shape, where)
    return (*keys, *moved), (form, moved_form)


def values_of(
    values: Any, shape: tuple[int, ...], where: str, name: str = "values", of: str = "keys"
) -> tuple[Views, Form | None]:
    """Return the views of values for keys of a shape, and their structure."""
    if not isinstance(values, tuple):  # a structured array is moved as one array
        return (view_of(values, f"{where}: {name}"),), None
    moved, moved_form = inputs.spread(values, f"{where}: {name}", has_names=False)
    got = moved[0].shape
    if got != shape:
        try:
            fits = np.broadcast_shapes(got, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{where}: {name} has shape {got}, which does not broadcast to {shape} of {of}; "
                "pass one value for each key"
            )
        moved = tuple([inputs.broadcast_to(view, shape) for view in moved])
    return moved, moved_form


# --- Calls of `radix_sort` and `argsort` whose keys or values are tuples of arrays.


def problem_and_views(
    where: str, keys: Any, values: Any, descending: Any, bits: tuple[Any, Any], axis: Any,
    index_dtype: Any,
) -> tuple[Problem, Views]:  # fmt: skip
    """Return the problem and views of function `where`; with an index dtype, of an argsort."""
    views, arg_forms = arguments_of((keys,) if values is None else (keys, values), where)
    ways = descending_by_field(descending, arg_forms[0], where)
    begin_bit, end_bit = bits
    begin_bit = checks.integer(begin_bit, "begin_bit", where)
    if end_bit is not None:
        end_bit = checks.integer(end_bit, "end_bit", where)
    if arg_forms[0] is not None and (begin_bit, end_bit) != (0, None):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for keys of several numbers; "
            "leave them out, and shift or mask the numbers instead"
        )
    params = (ways, begin_bit, end_bit, checks.plain_axis(axis, where), index_dtype, arg_forms)
    return problem_of(TupleSort, views, None, None, params, where, 0), views


def descending_by_field(descending: Any, form: Form | None, where: str) -> tuple[bool, ...]:
    """Return for each field of a key whether it is sorted in descending order."""
    if form is None:
        return (checks.flag_argument(descending, "descending", where),)
    if isinstance(descending, (bool, np.bool_)):
        return (bool(descending),) * len(form.names)
    flags = forms.parts_of(descending, form) if isinstance(descending, tuple) else None
    if flags is None or not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        raise TypeError(
            f"{where}: descending must be a bool, or a tuple of bools with the structure of "
            f"keys: {', '.join(inputs.names((), form, 'keys'))}; got {descending!r}"
        )
    return tuple(map(bool, flags))
