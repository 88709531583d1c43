"""Arguments of `histogram` of tuples, and with weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.problem import Histogram, HistogramParams
from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, as_view, view_of
from gpualgo._base import records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, parse_input
from gpualgo._operators.operator import builtin
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

_WHERE = "histogram"
_SAMPLES = builtin("no_operator")  # carries the function that computes samples


def histogram(
    x: Any, bins: Any, range: Any, weights: Any, axis: Any, dtype: Any, out: Any, stream: Any
) -> Any:
    """Count or sum samples of one dimension or more; see the public function."""
    weight_view = None if _is_number(weights) or is_lazy(weights) else _view_of_weights(weights)
    if is_lazy(x) or is_lazy(weights):
        from gpualgo._lazy.combining import place_lazy

        x, weights = place_lazy((x, weights), (out,), _WHERE)
    if is_lazy(x):
        x = _combined(x)
    views, op, form = parse_input(x, _SAMPLES, _WHERE, has_names=False)
    combined = None
    if isinstance(form, Source):
        combined = _combined(x)  # also for a tuple of arrays and numbers on a GPU
        samples, sample_form = _typed(combined, views[0])
    else:
        samples, sample_form = views, form
    if sample_form is not None and any(item is not None for item in sample_form.items):
        raise TypeError(
            f"{_WHERE}: x is a tuple of tuples, and each of its items is a dimension; "
            "pass a tuple of arrays"
        )
    names = inputs.names(samples, sample_form, "x")
    for view, name in zip(samples, names, strict=True):
        arguments.check_samples(view, name)
    if dtype is None and out is not None:
        target = as_view(out, f"{_WHERE}: out")
        dtype, out = target.dtype, target if target.owner is out else out
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axes(axis, _WHERE)
    if sample_form is None:
        parsed: tuple[Any, ...] = (arguments.bins_of(bins, range, samples[0], stream, combined),)
    else:
        parsed = arguments.bins_of_each(bins, range, samples, names, stream, combined)
    if is_lazy(weights):  # after all other checks
        weight_view = _view_of_weights(_materialized(weights, stream))
    number = weights if weight_view is None else None
    kind = View if weight_view is not None else None if number is None else np.asarray(number).dtype
    params = HistogramParams(parsed, axis, dtype, form, kind)
    views = views if weight_view is None else (*views, _broadcast(weight_view, views[0]))
    op = op if isinstance(form, Source) else None
    problem = problem_of(Histogram, views, op, number, params, _WHERE, 0 if op is None else 2)
    return run(problem, views, op, number, out, stream)


def _combined(x: Any) -> Any:
    """Return lazy samples as one array."""
    from gpualgo._lazy import combining

    if isinstance(x, tuple) and len(x) > records.MAX_FIELDS:
        raise TypeError(
            f"{_WHERE}: x has elements of {len(x)} numbers, at most {records.MAX_FIELDS} are "
            "possible"
        )
    return combining.zipped(x, f"{_WHERE}: x")


def _materialized(weights: Any, stream: Any) -> Any:
    """Return lazy weights materialized as an array."""
    from gpualgo._lazy.combining import zipped
    from gpualgo._lazy.construction import made

    where = f"{_WHERE}: weights"
    return made(zipped(weights, where), False, where, stream)


def _typed(combined: Any, like: View) -> tuple[tuple[View, ...], Form | None]:
    """Return a view per field of computed samples, as if it had an array, and their structure."""
    form = forms.form_of(combined.dtype.names) if combined.dtype.names else None
    return tuple(
        [like._replace(dtype=field) for field in records.field_dtypes(combined.dtype)]
    ), form


def _is_number(weights: Any) -> bool:
    """Return whether weights are one number for all samples, or None."""
    return weights is None or isinstance(weights, (bool, int, float, complex, np.generic))


def _view_of_weights(weights: Any) -> View:
    if forms.is_tuple(weights):
        raise TypeError(f"{_WHERE}: weights is a tuple; pass one array, or a number for all")
    view = view_of(weights, f"{_WHERE}: weights")
    checks.dimensions(view, "weights", _WHERE)
    checks.element(view, "weights", _WHERE)
    return view


def _broadcast(view: View, samples: View) -> View:
    """Return weights broadcast to the shape of the samples."""
    checks.same_place([samples, view], _WHERE)
    shape = samples.shape
    try:
        fits = np.broadcast_shapes(view.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{_WHERE}: weights has shape {view.shape} and x {shape}; "
            "pass weights that broadcast to the shape of x"
        )
    return inputs.broadcast_to(view, shape)
