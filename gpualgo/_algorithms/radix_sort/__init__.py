"""The public functions `radix_sort` and `argsort`: checks, outputs, then the backend."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from gpualgo._algorithms.radix_sort.problem import Call, check_outputs
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, as_bytes_view, as_view
from gpualgo._base import recording
from gpualgo._driver import default_device
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_MAX_CALLS = 4096
_make = tuple.__new__  # builds a View without its Python-level constructor

_calls: dict[Any, Call] = {}


@overload
def radix_sort(
    keys: np.ndarray[Any, ty.Kind], values: None = None, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.NumPyArray | None = None, stream: ty.Stream | None = None,
) -> np.ndarray[Any, ty.Kind]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Same, values: None = None, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Foreign | ty.HashableHost, values: None = None, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def radix_sort(
    keys: np.ndarray[Any, ty.Kind], values: np.ndarray[Any, ty.ValueKind], *,
    descending: bool = False, begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None,
    axis: ty.Axis = -1, out: tuple[ty.NumPyArray, ty.NumPyArray] | None = None,
    stream: ty.Stream | None = None,
) -> tuple[np.ndarray[Any, ty.Kind], np.ndarray[Any, ty.ValueKind]]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Same, values: ty.Same, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: tuple[ty.Same, ty.Same] | None = None, stream: ty.Stream | None = None,
) -> tuple[ty.Same, ty.Same]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Foreign | ty.HashableHost, values: ty.AnyArray, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: tuple[ty.AnyArray, ty.AnyArray] | None = None, stream: ty.Stream | None = None,
) -> tuple[Any, Any]: ...  # fmt: skip
def radix_sort(
    keys: Any,
    values: Any = None,
    *,
    descending: bool = False,
    begin_bit: SupportsIndex = 0,
    end_bit: SupportsIndex | None = None,
    axis: ty.Axis = -1,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Sort keys stably, and values along: ``result[i] = keys[p[i]]``, p = ``argsort(keys)``.

    Parameters
    ----------
    keys : array
        bool, integers, float16, bfloat16, float32 or float64, in NumPy, CuPy, PyTorch or anything
        with ``__cuda_array_interface__`` or DLPack; any shape, any strides.
    values : array, optional
        Moved as the keys are: the shape, library and device of `keys`, any dtype without Python
        objects, structured ones included.
    descending : bool
        Largest first; equal keys keep their order here, too.
    begin_bit, end_bit : int
        The bits ``[begin_bit, end_bit)`` of integer keys that decide, 0 the lowest; all by
        default. The sign bit of signed keys counts as flipped, so that negative ones come first.
    axis : int or None
        The axis to sort along, each row for itself; None flattens in C order.
    out : array or tuple of two arrays, optional
        Where to write the sorted keys, with `values` the keys and the values. Each may be its
        input itself, which is then sorted in place, and shares no memory otherwise.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or tuple of two arrays
        The sorted keys, with `values` the tuple (keys, values); `out` itself if given. Device
        arrays are returned without waiting for them.

    Raises
    ------
    TypeError
        An argument is no array or of a dtype that cannot be sorted (complex, structured) or moved
        (objects); bits are given for bool or float keys; out has another dtype, library or device.
    ValueError
        Shapes differ, the range of bits is empty or too wide, or out overlaps partly.
    numpy.exceptions.AxisError
        The axis is out of range.

    Notes
    -----
    NaN comes last (first when descending) whatever its sign, and -0.0 equals 0.0; both keep their
    bits and, as all equal keys, their order, so that the result has one value only. A row is read
    once to count its digits, then read and written once for each 8 bits of the key in which keys
    differ: the "onesweep" of A. Adinets and D. Merrill (arXiv:2206.01784, 2022) on a GPU.
    Temporary storage: a copy of keys and values, and a bounded table. Page-locked arrays of the
    host are copied to the GPU and back, not read in place: the passes would cross the bus again and
    again. See docs/radix_sort.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.radix_sort(np.array([3.0, np.nan, -1.0, 2.0], np.float32))
    array([-1.,  2.,  3., nan], dtype=float32)
    >>> ga.radix_sort(np.array([2, 1, 2, 0]), np.array(["b", "a", "c", "d"]), descending=True)
    (array([2, 2, 1, 0]), array(['b', 'c', 'a', 'd'], dtype='<U1'))
    """
    if recording.active and (graph := recording.current()) is not None:
        return graph.call(
            radix_sort, keys, values, descending=descending, begin_bit=begin_bit, end_bit=end_bit,
            axis=axis, out=out, stream=stream,
        )  # fmt: skip
    view = as_bytes_view(keys, "radix_sort: keys")
    moved = None if values is None else as_bytes_view(values, "radix_sort: values")
    if moved is not None:
        checks.same_place([view, moved], "radix_sort")
    call = _call("radix_sort", view, moved, descending, begin_bit, end_bit, axis, None)
    return _run(call, view, moved, out, stream)


@overload
def argsort(
    keys: ty.Same, *, descending: bool = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def argsort(
    keys: ty.Foreign, *, descending: bool = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def argsort(
    keys: ty.Host, *, descending: bool = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
def argsort(
    keys: Any,
    *,
    descending: bool = False,
    axis: ty.Axis = -1,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Return the stable order of keys: ``keys[p[0]] ≤ keys[p[1]] ≤ …``, equal keys as they come.

    Parameters
    ----------
    keys : array
        As for `radix_sort`.
    descending : bool
        Largest first; equal keys keep their order here, too.
    axis : int or None
        The axis to sort along, each row for itself; None flattens in C order.
    dtype : dtype, optional
        Of the indices: int64 (the default, or out's), int32, uint64 or uint32.
    out : array, optional
        Where to write the indices: the shape of `keys` (flattened if `axis` is None); it shares no
        memory with `keys`.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array
        Positions along the axis, from 0 on; a device array is returned without waiting for it.

    Raises
    ------
    TypeError
        `keys` is no array or of a dtype that cannot be sorted; dtype is none of these or not out's.
    ValueError
        The index dtype is too narrow for a row, or out has another shape or overlaps `keys`.
    numpy.exceptions.AxisError
        The axis is out of range.

    Notes
    -----
    The order of keys is `radix_sort`'s, and the result ``numpy.argsort``'s with ``kind="stable"``.
    The indices are made as the first pass goes along. See docs/radix_sort.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.argsort(np.array([0.0, 2.0, -0.0, 1.0]))
    array([0, 2, 3, 1])
    >>> ga.argsort(np.array([[1, 3, 3]], np.uint8), descending=True, dtype=np.int32)
    array([[1, 2, 0]], dtype=int32)
    """
    if recording.active and (graph := recording.current()) is not None:
        return graph.call(
            argsort, keys, descending=descending, axis=axis, dtype=dtype, out=out, stream=stream
        )
    view = as_bytes_view(keys, "argsort: keys")
    if dtype is None:
        dtype = np.int64 if out is None else as_view(out, "argsort: out").dtype
    call = _call("argsort", view, None, descending, 0, None, axis, dtype)
    return _run(call, view, None, out, stream)


def _call(
    where: str, keys: View, values: View | None, descending: Any, begin: Any, end: Any, axis: Any,
    dtype: Any,
) -> Call:  # fmt: skip
    """Return the call of these arguments, which are checked when they are new."""
    key = (
        where, keys[1:6], values and values[1:6], _exact(descending), _exact(begin), _exact(end),
        axis if type(axis) is int else checks.axis_key(axis), dtype,
    )  # fmt: skip
    try:
        call = _calls.get(key)
    except TypeError:  # an unhashable argument
        call = None
    if call is None:
        call = Call(where, keys, values, descending, begin, end, axis, dtype)
        if len(_calls) >= _MAX_CALLS:
            _calls.clear()
        with contextlib.suppress(TypeError):
            _calls[key] = call
    return call


def _exact(value: Any) -> Any:
    """Return value for use in a key, where 1.0 and True must not pass for 1."""
    return value if type(value) is int or value is None else (type(value), value)


def _run(call: Call, keys: View, values: View | None, out: Any, stream: Any) -> Any:
    inputs = (keys,) if values is None else (keys, values)
    targets = None if out is None else check_outputs(call, inputs, out)
    if keys.device == CPU:
        results: Any = _run_host(call, inputs, targets, stream)
    else:
        results = _run_device(call, keys, values, targets, stream)
    if out is not None:
        return out
    return results[0] if len(results) == 1 else results


def _run_device(
    call: Call, keys: View, values: View | None, targets: tuple[View, ...] | None, stream: Any
) -> tuple[Any, ...]:
    library, device, shape = keys.library, keys.device, call.result_shape
    outs = targets or ()
    given = None
    if stream is not None or library.has_homes:
        given = ordering.handle_for(stream, keys, call.where, values, outs=outs)
    if targets is None:
        made = []
        for dtype, strides in zip(call.dtypes, call.strides, strict=True):
            new = library.empty(shape, dtype, device, given)
            pointer = library.pointer(new)
            made.append(_make(View, (pointer, shape, strides, dtype, device, library, False, new)))
        targets = tuple(made)
    if 0 not in shape:
        handle = library.stream(device) if given is None else given
        _cuda_run()(call, keys, values, targets, handle)
        if library.has_homes:
            ordering.keep(handle, keys, values, *targets, outs=outs)
    return tuple([target.owner for target in targets])


@cache
def _cuda_run() -> Any:
    """Return run(call, keys, values, outs, stream_handle); see `Call` for what it may rely on."""
    from gpualgo._algorithms.radix_sort import cuda

    return cuda.run


def _run_host(
    call: Call, inputs: tuple[View, ...], targets: tuple[View, ...] | None, stream: Any
) -> tuple[Any, ...]:
    """Sort host arrays, on the CPU or staged through the default GPU."""
    device, library = default_device.current(), inputs[0].library
    if device == CPU:
        checks.no_stream(stream, call.where)
    sources = [library.to_numpy(view.owner) for view in inputs]
    if targets is None:
        results = [np.empty(call.result_shape, dtype) for dtype in call.dtypes]
    else:
        results = [library.to_numpy(view.owner) for view in targets]
    if results[0].size and device == CPU:
        _run_cpu(call, sources, results)
    elif results[0].size:
        from gpualgo._pipeline import host

        values = sources[1] if len(sources) == 2 else None
        host.radix_sort(call, sources[0], values, tuple(results), device, stream)
    if targets is not None:
        return ()
    return tuple(library.from_numpy(a, inputs[0].owner) for a in results)


def _run_cpu(call: Call, sources: list[Any], results: list[Any]) -> None:
    from gpualgo._algorithms.radix_sort import cpu

    axis = call.axis
    if axis is None:
        axis = 0
        for i, source in enumerate(sources):
            if source.flags.c_contiguous or call.index_dtype is not None:
                sources[i] = source.reshape(-1)
            else:  # a copy that is needed anyway, sorted in place
                results[i].reshape(source.shape)[...] = source
                sources[i] = results[i]
    if call.index_dtype is not None:
        cpu.argsort(sources[0], results[0], axis, call.descending)
        return
    (keys, values), (out_keys, out_values) = (*sources, None)[:2], (*results, None)[:2]
    cpu.radix_sort(
        keys, values, out_keys, out_values, axis, call.descending, call.begin_bit, call.end_bit
    )
