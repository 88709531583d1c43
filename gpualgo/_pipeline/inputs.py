"""Arguments that are arrays, or tuples of them: their views, and results put together alike."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, View, strides_for, view_of
from gpualgo._base import dtypes
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem, Request
from gpualgo._pipeline.run import run

Views = tuple[View, ...]


class NumberOnGPU(TypeError):
    """A number stands beside arrays on a GPU, where it has no memory: it is computed."""


def taken(x: Any, where: str, has_names: bool = True) -> tuple[Views, Form | None]:
    """Return the views of an argument's arrays; with the form of a tuple."""
    if not isinstance(x, tuple):
        view = NumPy.view(x) if type(x) is np.ndarray else view_of(x, where)
        if view.dtype.names is None:
            return (view,), None
        if view.library is not NumPy:
            raise TypeError(
                f"{where} has structured dtype {view.dtype} and is no array of NumPy's; "
                "pass a tuple of arrays, one for each field"
            )
        x = view.owner
    leaves, form = forms.taken_apart(x, where, has_names)
    return _views(leaves, where), form


def spread(x: Any, where: str, has_names: bool = True) -> tuple[Views, Form | None]:
    """Return the same, the arrays of a tuple broadcast against each other."""
    views, form = taken(x, where, has_names)
    if form is not None:
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
    """Return the views of several arguments' arrays, and the arguments' forms."""
    if len(arguments) == 1:
        views, form = taken(arguments[0], where, has_names)
        return views, (form,)
    pairs = [taken(x, where, has_names) for x in arguments]
    views = tuple([view for found, _ in pairs for view in found])
    return views, tuple([form for _, form in pairs])


def _views(leaves: Sequence[forms.Leaf], where: str) -> Views:
    views = [None if _is_number(x) else view_of(x, name) for x, name in leaves]
    known = [view for view in views if view is not None]
    if not known:
        raise TypeError(f"{where} is a tuple of numbers alone; pass at least one array in it")
    return tuple(
        _number(x, known[0], name) if view is None else view
        for view, (x, name) in zip(views, leaves, strict=True)
    )


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


def _number(x: Any, beside: View, where: str) -> View:
    """Return the view of a number that stands beside arrays."""
    if beside.device != CPU:
        raise NumberOnGPU(
            f"{where} is the number {x!r} beside arrays on a GPU; pass an array of one element"
        )
    number = np.array(x)
    dtypes.check(number.dtype, where)
    return view_of(beside.library.from_numpy(number, beside.owner), where)


def broadcast(shapes: Sequence[tuple[int, ...]], where: str) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(map(str, shapes))
        raise ValueError(f"{where}: shapes {shown} do not broadcast together") from None


def broadcast_to(view: View, shape: tuple[int, ...]) -> View:
    """Return the view of an array that is broadcast to a shape; its owner stays the array."""
    if view.shape == shape:
        return view
    return view._replace(shape=shape, strides=strides_for(view, shape), readonly=True)


def whole(view: View) -> View:
    """Return the view of the array that may have been broadcast to what is given."""
    if view.owner is None or 0 not in view.strides:
        return view
    return view_of(view.owner, "an array")


def like(problem: Problem, arguments: Sequence[Any], where: str) -> Views:
    """Return the views of arguments that are built as a problem's are, which holds tuples."""
    own, has_names = problem.taken(arguments, where), problem.has_names
    views, found = several(arguments, where, has_names) if own is None else own
    if found != problem.forms and len(views) == len(problem.inputs):
        raise TypeError(f"{where} is built otherwise than the one it was prepared for")
    if problem.spreads_tuples and found == problem.forms:
        with contextlib.suppress(ValueError):  # else no shape is as prepared, which is told next
            first = spread(arguments[0], where, has_names)[0]
            rest, shape = views[len(first) :], first[0].shape
            if all(broadcast([view.shape, shape], where) == shape for view in rest):
                return (*first, *[broadcast_to(view, shape) for view in rest])
    return views


def names(views: Views, form: Form | None, name: str) -> tuple[str, ...]:
    """Return what an argument's arrays are called in messages."""
    return (name,) if form is None else tuple(f"{name}[{path}]" for path in form.names)


# --- results ------------------------------------------------------------------------------------


def outputs(problem: Problem, out: Any) -> tuple[Any, ...]:
    """Return the arrays of out=, which is built as a problem's results are."""
    if problem.form is None:
        return out if isinstance(out, tuple) else (out,)
    found = forms.parts_of(out, problem.form)
    if found is None:
        parts = ", ".join(f"out{place}" for place in problem.form.places)
        raise TypeError(
            f"{problem.where}: out must be a tuple of arrays as the result is, with {parts}"
        )
    return tuple(found)


def solve(problem: Problem, views: Views, op: Any, init: Any, out: Any, stream: Any) -> Any:
    """Run a problem whose results are put together to a tuple."""
    form = problem.form
    assert form is not None
    outs = None
    if out is not None:
        arrays = outputs(problem, out)
        outs = arrays if len(arrays) > 1 else arrays[0]
    result = run(problem, views, op, init, outs, stream)
    if type(result) is Request:
        return result
    if out is not None:
        return out
    if problem.structure is not None:
        return result
    return form.packed(result if len(problem.results) > 1 else (result,))
