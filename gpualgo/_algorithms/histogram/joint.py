"""`histogram` of tuples, and with weights: its arguments, checked and made plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import arguments, joint_arguments
from gpualgo._algorithms.histogram.joint_problem import JointHistogram, Rest
from gpualgo._arrays import forms
from gpualgo._arrays.view import View, as_view, view_of
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

_WHERE = "histogram"


def histogram(
    x: Any, bins: Any, range: Any, weights: Any, axis: Any, dtype: Any, out: Any, stream: Any
) -> Any:
    """Count or add up samples of one dimension or more; see the public function."""
    views, form = inputs.spread(x, f"{_WHERE}: x", has_names=False)
    if form is not None and any(item is not None for item in form.items):
        raise TypeError(
            f"{_WHERE}: x is a tuple of tuples, and each of its items is a dimension; "
            "pass a tuple of arrays"
        )
    names = inputs.names(views, form, "x")
    for view, name in zip(views, names, strict=True):
        arguments.check_samples(view, name)
    if dtype is None and out is not None:
        target = as_view(out, f"{_WHERE}: out")
        dtype, out = target.dtype, target if target.owner is out else out
    number, given = _weights_of(weights, views)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axes(axis, _WHERE)
    if form is None:
        found: tuple[Any, ...] = (arguments.bins_of(bins, range, views[0], stream),)
    else:
        found = joint_arguments.bins_of_each(bins, range, views, names, stream)
    kind = View if given is not None else None if number is None else np.asarray(number).dtype
    rest = Rest(found, axis, dtype, form, kind)
    views = views if given is None else (*views, given)
    problem = problem_of(JointHistogram, views, None, number, rest, _WHERE, 0)
    return run(problem, views, None, number, out, stream)


def _weights_of(weights: Any, views: Sequence[View]) -> tuple[Any, View | None]:
    """Return weights that are one number, or the view of an array of them, as x is broadcast."""
    if weights is None or isinstance(weights, (bool, int, float, complex, np.generic)):
        return weights, None
    if forms.is_tuple(weights):
        raise TypeError(f"{_WHERE}: weights is a tuple; pass one array, or a number for all")
    view = view_of(weights, f"{_WHERE}: weights")
    checks.dimensions(view, "weights", _WHERE)
    checks.element(view, "weights", _WHERE)
    checks.same_place([views[0], view], _WHERE)
    shape = views[0].shape
    try:
        fits = np.broadcast_shapes(view.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{_WHERE}: weights has shape {view.shape} and x {shape}; "
            "pass weights that broadcast to the shape of x"
        )
    return None, inputs.broadcast_to(view, shape)
