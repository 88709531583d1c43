"""The public function `histogram`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.problem import Histogram
from gpualgo._arrays.view import as_view, view_of
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import checks
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
    stream : stream, optional
        CUDA stream for device arrays; by default the current stream of the array's library.

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
    with edges exactly, never as floats. Counts, and sums of weights, which are exact and rounded
    once, have the same bits on every device; integer sums wrap.

    Reads each sample once, in one kernel launch, and each weight once, in two; without `range` one
    more pass is needed. Temporary storage on a GPU: up to 7680 counters use 64 KB that each stream
    keeps, more counters at most 8 bytes each. Host arrays may be larger than the GPU's memory.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/histogram.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
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


def _joint(*args: Any) -> Any:
    """Count samples of several dimensions, or sum weights."""
    from gpualgo._algorithms.histogram import calls

    return calls.histogram(*args)
