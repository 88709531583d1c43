"""The public function `histogram`: checks, then the backend."""

from __future__ import annotations

import contextlib
import math
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, as_view
from gpualgo._base import recording
from gpualgo._base.extents import dense_strides
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "histogram"
_MAX_CALLS = 256  # fewer than elsewhere: a range taken from the data makes a call of its own
_MAX_KEY_BYTES = 1 << 20  # longer edges are not remembered

Array = np.ndarray[Any, Any]


class Call:
    """A histogram with everything but the memory decided: what equal calls share."""

    __slots__ = (
        "axes", "bins", "dtype", "edge_dtype", "edges", "hi", "lo", "num_bins", "num_samples",
        "plans", "result_shape", "sample_dtype", "shape", "shape_kept", "strides",
    )  # fmt: skip

    def __init__(self, view: View, bins: int | Array, ends: Any, axis: Any, dtype: Any) -> None:
        self.shape = view.shape
        self.axes = axes = checks.axes_of(axis, len(view.shape), _WHERE)
        self.shape_kept = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        self.num_samples = math.prod(view.shape[i] for i in axes)  # of each histogram
        self.dtype = arguments.counter_dtype(dtype, self.num_samples)
        if isinstance(bins, int):
            self.bins = Bins(view.dtype, bins, None, *ends)
        else:
            arguments.check_edges(bins)
            self.bins = Bins(view.dtype, bins.size - 1, bins, None, None)
        self.num_bins, self.edges = self.bins.num_bins, self.bins.edges
        self.lo, self.hi, self.edge_dtype = self.bins.lo, self.bins.hi, self.bins.edge_dtype
        self.sample_dtype = self.bins.sample_dtype  # x's, uint8 for bool
        self.result_shape = (*self.shape_kept, self.num_bins)
        self.strides = dense_strides(self.result_shape, self.dtype.itemsize)  # a new result's
        self.plans: dict[Any, Any] = {}  # of the backends

    def all_edges(self) -> Array:
        """Return the num_bins + 1 edges."""
        return self.bins.all_edges()


_calls: dict[Any, Call] = {}


@overload
def histogram(
    x: ty.Same, bins: ty.Bins, range: ty.Range | None = None, *, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def histogram(
    x: ty.Foreign, bins: ty.Bins, range: ty.Range | None = None, *, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def histogram(
    x: ty.Host, bins: ty.Bins, range: ty.Range | None = None, *, axis: ty.Axes = None,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
def histogram(
    x: Any,
    bins: Any,
    range: Any = None,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Count the samples of an array in bins: ``result[i] = #{x : edges[i] <= x < edges[i+1]}``.

    The last bin holds ``edges[-1]`` too. Samples outside and NaN are not counted. The counts are
    those of ``numpy.histogram``.

    Parameters
    ----------
    x : array
        The samples: bool, integers or floats. NumPy, CuPy, PyTorch or anything with
        ``__cuda_array_interface__`` or DLPack; any shape, any strides.
    bins : int or sequence
        A number of bins of even width, or the edges: at least two numbers that do not decrease,
        infinities allowed. Edges on a GPU are copied to the host, which waits for them.
    range : tuple of two numbers, optional
        The first and the last of even edges, finite; if they are equal, half is taken off and put
        on. Without it the least and the greatest sample, for which a call on a device array waits.
    axis : None, int or tuple of ints
        The axes to count over; None means all. Each place on the others has its own histogram.
    dtype : dtype, optional
        The counters' dtype, any integer one that holds the number of samples; without it that of
        `out`, else int64.
    out : array, optional
        Where to write the counts: the result's shape and dtype, the library and device of `x`.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array
        In the library of `x`: the kept extents of `x` in order, then the number of bins. A device
        array is returned without waiting for it, but for what `bins` and `range` say.

    Raises
    ------
    TypeError
        `x` is no array of real numbers, or bins, range, axis, dtype or out is of a wrong type.
    ValueError
        There are less than one bin or two edges, edges decrease or hold NaN, range is not finite
        or decreases, x without range holds NaN or infinity, even edges are too close for their
        dtype, the counters cannot hold the number of samples, or out does not fit.
    numpy.exceptions.AxisError
        An axis is out of range.

    Notes
    -----
    Even edges are those of ``numpy.histogram_bin_edges``. Integers are compared with edges exactly,
    never through a float. Reads each element once: n · itemsize bytes, one kernel launch; a range
    that is not given takes one more pass. On a GPU up to 7680 counters need no temporary storage
    but 64 KB that a stream keeps, more at most 8 bytes each. Counts do not depend on order, so the
    same input gives the same result on every device. See docs/histogram.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.histogram(np.array([1, 2, 1, 4, 9], np.uint8), 4, (0, 4))
    array([0, 2, 1, 1])
    >>> ga.histogram(np.array([0.5, 2.0, 3.5, np.nan]), [0, 1, 2, 10])
    array([1, 0, 2])
    """
    if recording.active and (graph := recording.current()) is not None:
        return graph.call(histogram, x, bins, range, axis=axis, dtype=dtype, out=out, stream=stream)
    view = as_view(x, "histogram: x")
    if view.dtype.kind == "c":
        raise TypeError(
            f"histogram: x has dtype {view.dtype}, which has no order; "
            "pass x.real, x.imag or numpy.abs(x)"
        )
    if dtype is None and out is not None:
        dtype = as_view(out, "histogram: out").dtype
    call = call_of(view, bins, range, axis, dtype, stream)
    if view.device == CPU:
        return _histogram_host(call, view, out, stream)
    return _histogram_device(call, view, out, stream)


def call_of(view: View, bins: Any, range: Any, axis: Any, dtype: Any, stream: Any) -> Call:
    """Return the call of these arguments, which are checked when they are new."""
    is_number = type(bins) is int and 0 < bins <= arguments.MAX_BINS
    counts = bins if is_number else arguments.parse_bins(bins, stream)
    ends, bins_key = _ends_and_key(counts, range, view, stream)
    key = (view[1:6], bins_key, axis if axis is None else checks.axis_key(axis), dtype)
    try:
        call = _calls.get(key)
    except TypeError:  # an unhashable axis or dtype
        call = None
    if call is None:
        call = _new_call(key, view, counts, ends, axis, dtype)
    return call


def _ends_and_key(counts: int | Array, range: Any, view: View, stream: Any) -> tuple[Any, Any]:
    """Return the ends of even bins, and what tells these bins from others (None: do not keep)."""
    if isinstance(counts, int):
        if range is None:
            lo, hi = arguments.detect_range(view, stream)
        else:
            lo, hi = arguments.parse_range(range)
        return (lo, hi), (counts, type(lo), lo, type(hi), hi)
    if range is not None:
        raise ValueError("histogram: range= is for a number of bins; leave it out beside edges")
    if counts.nbytes > _MAX_KEY_BYTES:
        return None, None
    return None, (counts.dtype, counts.tobytes())


def _new_call(key: Any, view: View, bins: int | Array, ends: Any, axis: Any, dtype: Any) -> Call:
    call = Call(view, bins, ends, axis, dtype)
    if key[1] is not None:
        while len(_calls) >= _MAX_CALLS:
            _calls.pop(next(iter(_calls)), None)
        with contextlib.suppress(TypeError):
            _calls[key] = call
    return call


@cache
def _cuda_run() -> Any:
    from gpualgo._algorithms.histogram import cuda

    return cuda.run


def _histogram_device(call: Call, view: View, out: Any, stream: Any) -> Any:
    """Count a device array into out or a new array of its library; does not wait."""
    library, device = view.library, view.device
    given = target = None
    if out is not None:
        target = checks.output(out, view, call.result_shape, call.dtype, _WHERE)
        checks.no_overlap(target, view, _WHERE)
    if stream is not None or library.has_homes:
        given = ordering.handle_for(stream, view, _WHERE, outs=(target,))
    result = library.empty(call.result_shape, call.dtype, device, given) if out is None else out
    if target is None:
        shape, dtype = call.result_shape, call.dtype
        target = View(
            library.pointer(result), shape, call.strides, dtype, device, library, False, result
        )
    if 0 in call.shape_kept:
        return result
    handle = library.stream(device) if given is None else given
    if call.num_samples == 0:
        library.fill(result, np.zeros((), call.dtype), device, given)
    else:
        _cuda_run()(call, view, target, handle)
    if library.has_homes:
        ordering.keep(handle, view, target, outs=() if out is None else (target,))
    return result


def _histogram_host(call: Call, view: View, out: Any, stream: Any) -> Any:
    """Count a host array, on the CPU or staged through the default GPU."""
    device = default_device.current()
    library = view.library
    x = library.to_numpy(view.owner)
    if device == CPU:
        checks.no_stream(stream, _WHERE)
    if out is None:
        result = np.empty(call.result_shape, call.dtype)
    else:
        target = checks.output(out, view, call.result_shape, call.dtype, _WHERE)
        checks.no_overlap(target, view, _WHERE)
        result = library.to_numpy(target.owner)
    if x.size == 0:
        if device != CPU:
            from gpualgo._pipeline import host_whole as whole

            whole.before_host_on(device, stream, x, _WHERE, "x is empty, so the host writes out")
        result[...] = 0
    elif device == CPU:
        from gpualgo._algorithms.histogram import cpu

        cpu.histogram(x, result, call)
    else:
        from gpualgo._pipeline import host

        host.histogram(call, x, result, device, stream)
    return library.from_numpy(result, x) if out is None else out
