"""The public functions `inclusive_scan` and `exclusive_scan`: checks, then the backend."""

from __future__ import annotations

import contextlib
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._algorithms.scan.problem import EXCLUSIVE, Call, check_output
from gpualgo._arrays.view import View, as_view
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator, as_operator, check_held, hot_key
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_INCLUSIVE, _EXCLUSIVE = "inclusive_scan", EXCLUSIVE
_MAX_CALLS = 4096

_calls: dict[Any, Call] = {}


@overload
def inclusive_scan(
    x: ty.Same, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def inclusive_scan(
    x: ty.Foreign, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def inclusive_scan(
    x: ty.Host, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Host | None = None,
    stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
def inclusive_scan(
    x: Any,
    init: Any = None,
    op: Any = operator.add,
    *,
    axis: Any = None,
    reverse: bool = False,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Combine each element with all before it: ``y[i] = init op x[0] op x[1] op … op x[i]``.

    Parameters
    ----------
    x : array
        NumPy, CuPy, PyTorch or anything with ``__cuda_array_interface__`` or DLPack; any shape,
        any strides.
    init : scalar or array of one element, optional
        What comes before the first element. A Python scalar takes the accumulator's dtype; a
        NumPy scalar or one-element array decides it. For an array on a GPU also an array of one
        element there, in the same library: it is read on the device, in the order of the stream.
    op : callable
        ``op(a, b)``, associative. It need not commute, nor have an identity. A lambda, a function,
        a built-in such as ``operator.mul``, ``max`` or ``np.logical_or``, or a `gpualgo.Operator`.
    axis : None or int
        The axis to go along, each row for itself; None flattens `x` in C order.
    reverse : bool
        Go from the last element to the first: ``y[i] = init op x[n-1] op … op x[i]``.
    dtype : dtype, optional
        The accumulator's and the result's dtype; without it init's if that is a NumPy value or an
        array, else ``x.dtype``. Each result of `op` is rounded to it.
    out : array, optional
        Where to write the result: its shape and dtype, the library and device of `x`. It may be
        `x` itself.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array
        Of the shape of `x`, or one-dimensional if `axis` is None; in the library of `x`. A device
        array is returned without waiting for it.

    Raises
    ------
    TypeError
        `x` is no array, a dtype has no kernel, or axis, init, out or op's result does not fit.
    ValueError
        init is out of range or not one value; out has another shape, or overlaps init or x partly.
    numpy.exceptions.AxisError
        The axis is out of range.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads and writes each element once: 2 · n · itemsize bytes, one kernel launch on a GPU, and 8
    bytes of temporary storage for each 32 bits of the accumulator and tile of 10 to 40 KB, kept for
    each stream. The same input gives the same bits on every run and every GPU, float sums included:
    aggregates of tiles are folded strictly from left to right (single-pass scan with decoupled
    look-back: Merrill and Garland, NVIDIA NVR-2016-002, 2016). See docs/scan.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.inclusive_scan(np.array([1.0, 2.0, 3.0], np.float32), 0.5, lambda a, b: a + b)
    array([1.5, 3.5, 6.5], dtype=float32)
    >>> ga.inclusive_scan(np.array([[3, 1, 4], [1, 5, 9]]), None, max, axis=1)
    array([[3, 3, 4],
           [1, 5, 9]])
    """
    return _scan(_INCLUSIVE, x, init, op, axis, reverse, dtype, out, stream)


@overload
def exclusive_scan(
    x: ty.Same, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def exclusive_scan(
    x: ty.Foreign, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def exclusive_scan(
    x: ty.Host, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Host | None = None,
    stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
def exclusive_scan(
    x: Any,
    init: Any = None,
    op: Any = operator.add,
    *,
    axis: Any = None,
    reverse: bool = False,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Combine all elements before each: ``y[0] = init``, ``y[i] = init op x[0] op … op x[i-1]``.

    Parameters
    ----------
    x, axis, dtype, out, stream
        As for `inclusive_scan`.
    init : scalar or array of one element, optional
        The first result, as for `inclusive_scan`; without it the operator's identity, which
        ``operator.add``, ``mul``, ``and_``, ``or_``, ``xor`` and NumPy's logical functions have.
    op : callable
        ``op(a, b)``, associative, as for `inclusive_scan`. Without `init` it must have an
        identity: ``gpualgo.Operator(op, identity=...)`` gives it one.
    reverse : bool
        Go from the last element to the first: ``y[i] = init op x[n-1] op … op x[i+1]``.

    Returns
    -------
    array
        Of the shape of `x`, or one-dimensional if `axis` is None; in the library of `x`. A device
        array is returned without waiting for it.

    Raises
    ------
    ValueError
        There is neither init nor an identity, even if `x` is empty.
    TypeError, ValueError, numpy.exceptions.AxisError, CompileError
        As `inclusive_scan`.

    Notes
    -----
    Cost, determinism and paper: as `inclusive_scan`. See docs/scan.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]))
    array([0, 3, 4, 8])
    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]), 0, max, reverse=True)
    array([4, 4, 1, 0])
    """
    return _scan(_EXCLUSIVE, x, init, op, axis, reverse, dtype, out, stream)


_WEAK = (bool, int, float, complex)
_X = {where: f"{where}: x" for where in (_INCLUSIVE, _EXCLUSIVE)}


def _scan(
    where: str, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any, out: Any,
    stream: Any,
) -> Any:  # fmt: skip
    if recording.active and (graph := recording.current()) is not None:
        function = inclusive_scan if where == _INCLUSIVE else exclusive_scan
        return graph.call(
            function, x, init, op, axis=axis, reverse=reverse, dtype=dtype, out=out, stream=stream
        )
    view = as_view(x, _X[where])
    init_kind: Any = type(init)
    first = 0
    if init is not None and init_kind not in _WEAK:
        if isinstance(init, (np.generic, np.ndarray)):
            init_kind = init.dtype
        else:
            init = checks.device_init(init, view, where)
            init_kind, first = (init.dtype, init.library), init.ptr
    if reverse is not False and reverse is not True:
        reverse = checks.flag(reverse, "reverse", where)
    axis_key = axis if axis is None else checks.axis_key(axis)
    key = (where, hot_key(op), view[1:6], axis_key, reverse, dtype, init_kind)
    try:
        call = _calls.get(key)
    except TypeError:  # an unhashable axis or dtype
        call = None
    if call is None:
        operator_ = as_operator(op, where, 2)
        check_held(key[1], operator_, where)
        call = _new_call(key, Call(view, operator_, init, axis, reverse, dtype, where))
    if view.device == CPU:
        return _scan_host(call, view, as_operator(op, where, 2, call.arrays), init, out, stream)
    plan = call.plans.get(view.ptr & 15)
    if plan is not None and out is None and stream is None:  # the warm call: nothing to decide
        library, device = view.library, view.device
        result = library.empty(call.result_shape, call.acc, device, None)
        encoded = None if first else call.encode(init)
        plan.launch(library.stream(device), encoded, first, view.ptr, library.pointer(result))
        return result
    return _cuda_run()(call, view, op, init, out, stream)


@cache
def _cuda_run() -> Any:
    """Return run(call, view, op, init, out, stream), where a device array as init is its View."""
    from gpualgo._algorithms.scan import cuda_run as cuda

    return cuda.run


def _new_call(key: Any, call: Call) -> Call:
    if len(_calls) >= _MAX_CALLS:
        _calls.clear()
    with contextlib.suppress(TypeError):
        _calls[key] = call
    return call


def _scan_host(call: Call, view: View, op: Operator, init: Any, out: Any, stream: Any) -> Any:
    """Scan a host array, on the CPU or staged through the default GPU."""
    device = default_device.current()
    library = view.library
    x = library.to_numpy(view.owner)
    encoded = call.encode(init)
    if out is None:
        result = np.empty(call.result_shape, call.acc)
    else:
        result = library.to_numpy(check_output(call, out, view, init).owner)
    if device == CPU:
        checks.no_stream(stream, call.where)
        from gpualgo._algorithms.scan import cpu

        if result.size:
            cpu.scan(x, result, op, encoded, call.axis, call.is_exclusive, call.is_reverse)
    elif result.size:
        from gpualgo._pipeline import host

        host.scan(call, x, result, op, encoded, device, stream)
    return library.from_numpy(result, x) if out is None else out
