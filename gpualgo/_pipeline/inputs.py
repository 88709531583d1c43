"""Views of arguments that are arrays or tuples of arrays, and the arrays of out=."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from operator import length_hint
from typing import Any

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, View, known_viewer, strides_for, view_of
from gpualgo._base import dtypes, records
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem, init_arrays

Views = tuple[View, ...]


class NumberOnGPU(TypeError):
    """Raised for a number among GPU arrays: it has no device memory, so it must be computed."""


def parse_arrays(x: Any, where: str, has_names: bool = True) -> tuple[Views, Form | None]:
    if not isinstance(x, tuple):
        view = NumPy.view(x) if type(x) is np.ndarray else view_of(x, where)
        if view.dtype.names is None:
            return (view,), None
        if view.library is not NumPy:
            raise TypeError(
                f"{where} has structured dtype {view.dtype} and is not a NumPy array; "
                "pass a tuple of arrays, one for each field"
            )
        x = view.owner
    elif 0 < len(x) <= records.MAX_FIELDS and (views := _known_numbers(x)) is not None:
        return views, Form(type(x) if hasattr(x, "_fields") else tuple, (None,) * len(x))
    leaves, form = forms.flatten_tuple(x, where, has_names)
    return _views(leaves, where), form


def _known_numbers(arrays: Sequence[Any]) -> Views | None:
    """Return the views of arrays of numbers, which most are; None if one is anything else."""
    views = []
    for x in arrays:
        viewer = known_viewer(type(x))
        view = None if viewer is None else viewer(x)
        if view is None or view.dtype.names is not None:
            return None
        views.append(view)
    return tuple(views)


def spread(x: Any, where: str, has_names: bool = True) -> tuple[Views, Form | None]:
    """Return what `parse_arrays` does, with a tuple's arrays broadcast against each other."""
    views, form = parse_arrays(x, where, has_names)
    if form is None:
        return views, None
    kinds = {(view.shape, view.device) for view in views}
    if len(kinds) > 1 or len(views[0].shape) > checks.MAX_DIMS:
        name, _, what = where.partition(": ")
        for view, path in zip(views, form.names, strict=True):
            checks.dimensions(view, f"{what}[{path}]", name)
        checks.same_place(list(views), name)
        shape = broadcast([view.shape for view in views], where)
        views = tuple([broadcast_to(view, shape) for view in views])
    return views, form


def several(
    arguments: Sequence[Any], where: str, has_names: bool = True
) -> tuple[Views, tuple[Form | None, ...]]:
    if (numbers := _known_numbers(arguments)) is not None:
        return numbers, (None,) * len(numbers)
    rest = iter(arguments)
    try:
        pairs = [parse_arrays(x, where, has_names) for x in rest]
    except TypeError as error:
        nth = f"argument {len(arguments) - length_hint(rest)}"
        error.args = (str(error).replace("an argument", nth, 1),)
        raise
    views = tuple([view for argument_views, _ in pairs for view in argument_views])
    return views, tuple([form for _, form in pairs])


def _views(leaves: Sequence[forms.Leaf], where: str) -> Views:
    numbers = bool, int, float, complex, np.generic
    views = [None if isinstance(x, numbers) else view_of(x, name) for x, name in leaves]
    array_views = [view for view in views if view is not None]
    if not array_views:
        raise TypeError(f"{where} is a tuple of numbers only; pass at least one array in it")
    return tuple(
        _number(x, array_views[0], name) if view is None else view
        for view, (x, name) in zip(views, leaves, strict=True)
    )


def _number(x: Any, neighbour: View, where: str) -> View:
    """Return the view of a number that stands next to arrays in a tuple."""
    if neighbour.device != CPU:
        raise NumberOnGPU(
            f"{where} is the number {x!r} next to arrays on a GPU; pass an array of one element"
        )
    number = np.array(x)
    dtypes.check_number(number, where)
    return view_of(neighbour.library.from_numpy(number, neighbour.owner), where)


def broadcast(shapes: Sequence[tuple[int, ...]], where: str) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(map(str, shapes))
        raise ValueError(f"{where}: shapes {shown} do not broadcast together") from None


def broadcast_to(view: View, shape: tuple[int, ...]) -> View:
    """Return a view broadcast to a shape; its owner is still the original array."""
    if view.shape == shape:
        return view
    return view._replace(shape=shape, strides=strides_for(view, shape), readonly=True)


def whole(view: View) -> View:
    """Return the view of the original array behind a view that may be broadcast."""
    if view.owner is None or 0 not in view.strides:
        return view
    return view_of(view.owner, "an array")


def parse_prepared(problem: Problem, arguments: Sequence[Any], where: str) -> Views:
    """Return the views of arguments, which must have the structure of the problem's."""
    init_views: Views = ()
    if problem.row_init is not None and arguments:
        found, row_init = init_arrays(arguments[-1], where)
        if row_init == problem.row_init:
            init_views, arguments = found, arguments[:-1]
    parsed, has_names = None, problem.has_names
    with contextlib.suppress(ValueError):  # no prepared shape matches, which is found below
        parsed = problem.parse_arrays(tuple(arguments))
    views, found_forms = several(arguments, where, has_names) if parsed is None else parsed
    if init_views:
        found_forms = (*found_forms, None)
    if found_forms != problem.forms and len(views) + len(init_views) == len(problem.inputs):
        raise TypeError(
            f"{where} has another tuple structure than the prepared one; prepare another plan"
        )
    if problem.spreads_tuples and found_forms == problem.forms:
        with contextlib.suppress(ValueError):  # the caller reports shapes that do not fit
            first = spread(arguments[0], where, has_names)[0]
            other_views, shape = views[len(first) :], first[0].shape
            if all(broadcast([view.shape, shape], where) == shape for view in other_views):
                views = (*first, *[broadcast_to(view, shape) for view in other_views])
    return (*views, *init_views)


def names(views: Views, form: Form | None, name: str) -> tuple[str, ...]:
    return (name,) if form is None else tuple(f"{name}[{path}]" for path in form.names)


# --- results ------------------------------------------------------------------------------------


def outputs(problem: Problem, out: Any) -> tuple[Any, ...]:
    """Return the arrays of out=, which must have the structure of the problem's results."""
    if problem.form is None:
        return out if isinstance(out, tuple) else (out,)
    parts = forms.parts_of(out, problem.form)
    if parts is None:
        names = ", ".join(f"out{place}" for place in problem.form.subscripts)
        raise TypeError(
            f"{problem.where}: out must be a tuple of arrays like the result, with {names}"
        )
    return tuple(parts)
