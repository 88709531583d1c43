"""The public function `reduce`: checks, then the backend."""

from __future__ import annotations

import contextlib
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gpualgo._arrays.view import View, as_view
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._operators.captured import check_apart, ownerless
from gpualgo._operators.operator import Operator, as_operator, check_dtype, check_held, hot_key
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "reduce"
_MAX_CALLS = 4096


class Call:
    """A reduction with everything but the memory decided: what equal calls share."""

    __slots__ = (
        "_last_init", "acc", "arrays", "axes", "is_empty", "plans", "result_shape", "shape",
    )  # fmt: skip

    def __init__(
        self, view: View, op: Operator, init: Any, axis: Any, keepdims: bool, dtype: Any
    ) -> None:
        self.acc = checks.accumulator(view, init, dtype, _WHERE)
        check_dtype(op, self.acc, _WHERE)
        self.axes = axes = checks.axes_of(axis, len(view.shape), _WHERE)
        self.shape = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        spread = tuple(1 if i in axes else n for i, n in enumerate(view.shape))
        self.result_shape = spread if keepdims else self.shape
        self.is_empty = 0 in view.shape
        self.arrays = ownerless(op.arrays)  # that op captures
        self.plans: dict[Any, Any] = {}  # of the CUDA backend
        self._last_init: tuple[Any, Any] = (None, None)

    def encode(self, init: Any) -> np.ndarray[Any, Any] | None:
        """Return init as a 0-d array of the accumulator's dtype; the last one is remembered."""
        if init is None:
            return None
        known, encoded = self._last_init
        if known is not init:
            encoded = checks.init_value(init, self.acc, _WHERE)
            if type(init) in _WEAK:  # immutable, so that identity is enough
                self._last_init = (init, encoded)
        found: np.ndarray[Any, Any] = encoded
        return found

    def start(self, op: Operator, init: Any) -> np.ndarray[Any, Any] | None:
        """Return what an empty extent gives: init or the identity; raise if there is neither."""
        if init is not None:
            return self.encode(init)
        identity = op.identity_for(self.acc)
        if identity is None:
            raise ValueError(
                "reduce: x has no elements along the reduced axes and op has no known identity; "
                "pass init= or ga.Operator(op, identity=...)"
            )
        if op.identity is None:  # a recognised operator's: 0, 1 and -1 fit every dtype
            return np.array(identity).astype(self.acc)
        return checks.init_value(identity, self.acc, _WHERE, "identity")


_calls: dict[Any, Call] = {}


@overload
def reduce(
    x: ty.Same, init: ty.Scalar | None = None, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: ty.Axes = None, keepdims: bool = False, dtype: ty.DType | None = None,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def reduce(  # a NumPy array gives an array, or a scalar where no axis is left
    x: ty.AnyArray, init: ty.Scalar | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axes = None,
    keepdims: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def reduce(
    x: Any,
    init: Any = None,
    op: Any = operator.add,
    *,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Combine the elements of an array: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters
    ----------
    x : array
        NumPy, CuPy, PyTorch or anything with ``__cuda_array_interface__`` or DLPack; any shape,
        any strides.
    init : scalar, optional
        The value to start from. A Python scalar takes the accumulator's dtype; a NumPy scalar or
        one-element array decides it.
    op : callable
        ``op(a, b)``, associative. It need not commute, nor have an identity: elements are
        combined in C order, in a grouping that depends on shape and dtype alone. A lambda, a
        function, a built-in such as ``operator.mul``, ``max`` or ``np.logical_or``, or a
        `gpualgo.Operator`.
    axis : None, int or tuple of ints
        The axes to reduce; None means all.
    keepdims : bool
        Keep the reduced axes with extent one.
    dtype : dtype, optional
        The accumulator's and the result's dtype; without it init's if that is a NumPy value, else
        ``x.dtype``. Each result of `op` is rounded to it.
    out : array, optional
        Where to write the result: its shape and dtype, the library and device of `x`.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or scalar
        In the library of `x`. A NumPy array reduced over all axes gives a NumPy scalar. A device
        array gives a device array, without waiting for it.

    Raises
    ------
    TypeError
        `x` is no array, a dtype has no kernel, or init, out or op's result does not fit.
    ValueError
        There is nothing to reduce and neither init nor an identity; a shape does not match; out
        shares memory with `x`.
    numpy.exceptions.AxisError
        An axis is out of range.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads each element once: n · itemsize bytes, one kernel launch; temporary storage within the
    two megabytes that are kept for each stream. The same input gives the same bits on every run and
    every GPU: the grouping never depends on timing or on the number of processors. See
    docs/reduce.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> float(ga.reduce(np.array([1.0, 2.0, 3.0], np.float32), 0.0, lambda a, b: a + b))
    6.0
    >>> ga.reduce(np.arange(6).reshape(2, 3), None, max, axis=1)
    array([2, 5])
    """
    if recording.active and (graph := recording.current()) is not None:
        return graph.call(
            reduce, x, init, op, axis=axis, keepdims=keepdims, dtype=dtype, out=out, stream=stream
        )
    view = as_view(x, "reduce: x")
    init_kind = type(init) if init is None or type(init) in _WEAK else checks.dtype_of(init)
    axis_key = axis if axis is None else checks.axis_key(axis)
    key = (hot_key(op), view[1:6], axis_key, keepdims, dtype, init_kind)
    try:
        call = _calls.get(key)
    except TypeError:  # an unhashable axis or dtype
        call = None
    if call is None:
        call = _new_call(key, view, as_operator(op, _WHERE, 2), init, axis, keepdims, dtype)
    if view.device == CPU:
        held = as_operator(op, _WHERE, 2, call.arrays)
        return _reduce_host(call, view, held, init, out, stream)
    plan = call.plans.get(view.ptr & 15)
    if plan is not None and out is None and stream is None:  # the warm call: nothing to decide
        library, device = view.library, view.device
        result = library.empty(call.result_shape, call.acc, device, None)
        encoded = None if init is None else call.encode(init)
        plan.launch(library.stream(device), encoded, view.ptr, library.pointer(result))
        return result
    return _cuda_run()(call, view, op, init, out, stream)


_WEAK = (bool, int, float, complex)


@cache
def _cuda_run() -> Any:
    from gpualgo._algorithms.reduce import cuda

    return cuda.run


def _new_call(
    key: Any, view: View, op: Operator, init: Any, axis: Any, keepdims: bool, dtype: Any
) -> Call:
    check_held(key[0], op, _WHERE)
    call = Call(view, op, init, axis, keepdims, dtype)
    if len(_calls) >= _MAX_CALLS:
        _calls.clear()
    with contextlib.suppress(TypeError):
        _calls[key] = call
    return call


def _reduce_host(call: Call, view: View, op: Operator, init: Any, out: Any, stream: Any) -> Any:
    """Reduce a host array, on the CPU or staged through the default GPU."""
    device = default_device.current()
    library = view.library
    x = library.to_numpy(view.owner)
    encoded = call.encode(init)
    if out is None:
        result = np.empty(call.result_shape, call.acc)
    else:
        target = checks.output(out, view, call.result_shape, call.acc, _WHERE)
        checks.no_overlap(target, view, _WHERE)
        check_apart(call.arrays, target, _WHERE)
        result = library.to_numpy(target.owner)
    if result.size and x.size == 0:
        start = call.start(op, init)
        if device != CPU:
            from gpualgo._pipeline import host_whole as whole

            whole.before_host_on(device, stream, x, _WHERE, "x is empty, so the host writes out")
        result[...] = start
    elif result.size and device == CPU:
        checks.no_stream(stream, _WHERE)
        from gpualgo._algorithms.reduce import cpu

        flat = np.empty(call.shape, call.acc) if out is not None else result.reshape(call.shape)
        cpu.reduce(x, flat, op, encoded, call.axes)
        if out is not None:
            result[...] = flat.reshape(call.result_shape)
    elif result.size:
        from gpualgo._pipeline import host

        host.reduce(call, x, result, op, encoded, device, stream)
    if out is not None:
        return out
    found = library.from_numpy(result, x)
    return found if call.result_shape else library.scalar(found)
