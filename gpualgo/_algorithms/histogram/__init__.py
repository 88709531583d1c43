"""The public function `histogram`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.problem import Histogram, HistogramParams, WeightedHistogram
from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, as_view, view_of
from gpualgo._base import records
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source, parse_input
from gpualgo._operators.operator import builtin
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


@overload
def histogram(
    x: ty.Same, bins: ty.Bins, range: ty.Range | None = None, *,
    weights: ty.Same | ty.Number | None = None, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def histogram(
    x: ty.Foreign, bins: ty.Bins, range: ty.Range | None = None, *,
    weights: ty.AnyArray | ty.Number | None = None, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def histogram(
    x: ty.Host, bins: ty.Bins | ty.JointBins, range: ty.Range | ty.JointRange | None = None, *,
    weights: ty.Host | ty.Number | None = None, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def histogram(  # tuples
    x: ty.FlatArrays, bins: ty.JointBins, range: ty.JointRange | None = None, *,
    weights: ty.AnyArray | ty.Number | None = None, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def histogram(
    x: Any,
    bins: Any,
    range: Any = None,
    *,
    weights: Any = None,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Return how many samples are in each bin: ``result[i] = #{x : edges[i] <= x < edges[i+1]}``.

    The last bin includes ``edges[-1]``. Samples outside the edges and NaN are not counted. Counts
    equal those of ``numpy.histogram``, for tuples those of ``numpy.histogramdd``. With weights,
    each result is the sum of the samples' weights.

    Parameters
    ----------
    x : array, or tuple of arrays
        The samples: bool, integers or floats; any library, shape and strides. A tuple or namedtuple
        of up to eight arrays, which are broadcast together, or a NumPy structured array, holds
        samples of that many dimensions, counted in ``result[i, j, …]``.
    bins : int or sequence, or tuple of them
        The number of bins of equal width; or the edges, at least two non-decreasing numbers, which
        may be infinite. Edges on a GPU are copied to the host, which synchronises. For tuples one
        number for all dimensions, or a tuple with a number or edges for each.
    range : tuple of two numbers, or tuple of such pairs, optional
        The first and the last edge of bins of equal width, both finite; if they are equal, they are
        moved by -0.5 and 0.5. By default the minimum and maximum of the samples, for which device
        arrays are synchronised. For tuples a pair or None for each dimension.
    weights : array or number, optional
        Weights of any dtype, on the device of `x`, broadcast to its shape.
    axis : None, int or tuple of ints
        The axes to count over; None means all. Each index on the other axes has its own histogram.
    dtype : dtype, optional
        The dtype of the counts: any integer dtype that holds the number of samples; by default that
        of `out`, else int64. With weights the dtype of the sums, to which weights are converted; by
        default that of `out`, else that of float or complex weights, else int64 (unsigned: uint64).
    out : array, optional
        Array for the result, with its shape and dtype, on the device of `x`.

    Returns
    -------
    array
        In the library of `x`. Its shape is that of the axes not counted over, then the number of
        bins, for tuples of each dimension. For device arrays the call does not synchronise, except
        for `bins` and `range` as above.

    Raises
    ------
    TypeError
        `x` is not an array of real numbers nor a tuple of such, or `bins`, `range`, `weights`,
        `axis`, `dtype` or `out` has a wrong type.
    ValueError
        There is less than one bin, there are less than two edges or more than 2**31 - 2 bins in
        all, or not as many bins or ranges as dimensions; edges decrease or hold NaN; `range` is not
        finite or decreases; without `range`, `x` holds NaN or infinity; bins are too narrow for the
        edges' dtype; the counts' dtype cannot hold the number of samples; or `weights` or `out` has
        a wrong shape.
    numpy.exceptions.AxisError
        An axis is out of range.

    Notes
    -----
    Edges of bins of equal width are those of ``numpy.histogram_bin_edges``. Integers are compared
    with edges exactly, never as floats. Counts and integer sums, which wrap, have the same bits on
    every device. Float sums have the same bits on each run of the same input on the same backend:
    a GPU adds in the result's dtype (float16 and bfloat16: float32), a CPU in float64.

    Reads each sample once, in one kernel launch, and each weight once, in two or three; weights of
    many bins are sorted. Without `range` one more pass is needed. Temporary storage on a GPU: up to
    7680 counters use 64 KB that each stream keeps, more counters at most 8 bytes each. Host arrays
    may be larger than the GPU's memory.

    >>> ga.histogram(np.array([1, 2, 1, 4, 9], np.uint8), 4, (0, 4))
    array([0, 2, 1, 1])
    >>> ga.histogram(np.array([0.5, 2.0, 3.5, np.nan]), [0, 1, 2, 10])
    array([1, 0, 2])
    >>> x, y = np.array([0.5, 0.5, 1.5]), np.array([3, 4, 4])
    >>> ga.histogram((x, y), (2, [3, 4, 5]), ((0, 2), None))
    array([[1, 1],
           [0, 1]])
    >>> ga.histogram(x, 2, (0, 2), weights=np.array([0.1, 0.2, 1.0]))
    array([0.3, 1. ])
    """
    try:
        if weights is not None or isinstance(x, tuple) or is_lazy(x):
            return _joint(x, bins, range, weights, axis, dtype, out, stream)
        view = view_of(x, "histogram: x")
    except Elsewhere as elsewhere:
        options = {"weights": weights, "axis": axis, "dtype": dtype}
        return elsewhere.call("histogram", out, stream, x, bins, range, **options)
    if view.dtype.names is not None:
        return _joint(x, bins, range, weights, axis, dtype, out, stream)
    if dtype is None and out is not None:
        target = as_view(out, "histogram: out")
        dtype = target.dtype
        out = target if target.owner is out else out  # a foreign `out` is returned itself
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axes(axis, "histogram")
    params = (arguments.bins_of(bins, range, view, stream),), axis, dtype
    problem = problem_of(Histogram, (view,), None, None, params, "histogram", 0)
    return run(problem, (view,), None, None, out, stream)


# --- Arguments of `histogram` of tuples, and with weights.

_WHERE = "histogram"
_SAMPLES = builtin("no_operator")  # carries the function that computes samples


def _joint(
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
        from gpualgo._lazy.combining import zipped
        from gpualgo._lazy.construction import made

        where = f"{_WHERE}: weights"
        weight_view = _view_of_weights(made(zipped(weights, where), False, where, stream))
    number = weights if weight_view is None else None
    kind = View if weight_view is not None else None if number is None else np.asarray(number).dtype
    params = HistogramParams(parsed, axis, dtype, form, kind)
    views = views if weight_view is None else (*views, _broadcast(weight_view, views[0]))
    op = op if isinstance(form, Source) else None
    histogram = Histogram if weight_view is None else WeightedHistogram
    problem = problem_of(histogram, views, op, number, params, _WHERE, 0 if op is None else 2)
    return run(problem, views, op, number, out, stream)


def _combined(x: Any) -> Any:
    from gpualgo._lazy import combining

    if isinstance(x, tuple) and len(x) > records.MAX_FIELDS:
        raise TypeError(
            f"{_WHERE}: x has elements of {len(x)} numbers, at most {records.MAX_FIELDS} are "
            "possible"
        )
    return combining.zipped(x, f"{_WHERE}: x")


def _typed(combined: Any, like: View) -> tuple[tuple[View, ...], Form | None]:
    """Return a view per field of computed samples, as if it had an array, and their structure."""
    form = forms.form_of(combined.dtype.names) if combined.dtype.names else None
    fields = records.field_dtypes(combined.dtype)
    return tuple([like._replace(dtype=field) for field in fields]), form


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
