"""The public function `temp_storage_bytes`: what a call takes on a GPU besides its arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo import _checks, _histogram, _radix_sort, _radix_sort_call, _reduce, _scan, _transform
from gpualgo._array import View, as_bytes_view, as_view
from gpualgo._device import CPU
from gpualgo._operator import as_operator

_WHERE = "temp_storage_bytes"


def temp_storage_bytes(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Return how many bytes of temporary storage ``function(*args, **kwargs)`` takes on a GPU.

    Parameters
    ----------
    function : callable
        One of this package's algorithms: `gpualgo.radix_sort`, say.
    *args, **kwargs
        What it would be called with. The arrays are on a GPU; nothing is read or written.

    Returns
    -------
    int
        Bytes. Of them, those that a stream keeps for all its calls are counted as well. The formula
        is on the page of each algorithm.

    Raises
    ------
    TypeError
        `function` is no algorithm of this package, an array is not on a GPU, or the call itself
        would be a TypeError.
    ValueError
        The call itself would be a ValueError.

    Notes
    -----
    Compiles the kernel, as the call would. Launches nothing.

    Examples
    --------
    >>> import gpualgo as ga
    >>> ga.temp_storage_bytes(sorted, [1])
    Traceback (most recent call last):
        ...
    TypeError: temp_storage_bytes: function must be an algorithm of gpualgo, got sorted
    """
    find = _FINDERS.get(function)
    if find is None:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{_WHERE}: function must be an algorithm of gpualgo, got {name}")
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return find(function.__name__, bound.arguments)


def _on_gpu(array: Any, where: str, viewer: Callable[[Any, str], View] = as_view) -> View:
    view = viewer(array, where)
    if view.device == CPU:
        raise TypeError(f"{_WHERE}: {where} is on the CPU; pass an array that is on a GPU")
    return view


def _of_reduce(where: str, given: dict[str, Any]) -> int:
    from gpualgo._cuda import reduce as cuda

    view = _on_gpu(given["x"], "reduce: x")
    op = as_operator(given["op"], where, 2)
    call = _reduce.Call(view, op, given["init"], given["axis"], given["keepdims"], given["dtype"])
    strides = None if given["out"] is None else as_view(given["out"], "reduce: out").strides
    return 0 if call.is_empty else cuda.temp_storage_bytes(call, view, op, strides)


def _of_scan(where: str, given: dict[str, Any]) -> int:
    from gpualgo._cuda.scan_plan import Plan

    view = _on_gpu(given["x"], f"{where}: x")
    op = as_operator(given["op"], where, 2)
    init = given["init"]
    on_device = hasattr(init, "__cuda_array_interface__") or hasattr(init, "__dlpack__")
    if on_device and not isinstance(init, (np.generic, np.ndarray)):
        init = _checks.device_init(init, view, where)
    call = _scan.Call(view, op, init, given["axis"], given["reverse"], given["dtype"], where)
    strides, alignment = None, 0
    if given["out"] is not None:
        out = _scan.check_output(call, given["out"], view, init)
        strides, alignment = out.strides, out.ptr & 15
    return 0 if 0 in call.shape else Plan(call, view, op, strides, alignment).temp_storage_bytes


def _of_sort(where: str, given: dict[str, Any]) -> int:
    from gpualgo._cuda import radix_sort as cuda

    keys = _on_gpu(given["keys"], f"{where}: keys", as_bytes_view)
    values = given.get("values")
    values = None if values is None else _on_gpu(values, f"{where}: values", as_bytes_view)
    dtype = (given["dtype"] or "int64") if where == "argsort" else None
    call = _radix_sort_call.Call(
        where, keys, values, given["descending"], given.get("begin_bit", 0), given.get("end_bit"),
        given["axis"], dtype,
    )  # fmt: skip
    if 0 in call.shape:
        return 0
    if given["out"] is not None:
        inputs = (keys,) if values is None else (keys, values)
        outs = _radix_sort_call.check_outputs(call, inputs, given["out"])
    else:
        outs = tuple(
            View(0, call.result_shape, strides, dtype, keys.device, keys.library, False, None)
            for dtype, strides in zip(call.dtypes, call.strides, strict=True)
        )
    return cuda.temp_storage_bytes(call, keys, values, outs)


def _of_histogram(where: str, given: dict[str, Any]) -> int:
    from gpualgo._cuda.histogram import Plan

    view = _on_gpu(given["x"], "histogram: x")
    out = None if given["out"] is None else as_view(given["out"], "histogram: out")
    dtype = given["dtype"] if given["dtype"] is not None or out is None else out.dtype
    call = _histogram.call_of(
        view, given["bins"], given["range"], given["axis"], dtype, given["stream"]
    )
    if call.num_samples == 0 or 0 in call.shape_kept:
        return 0
    return Plan(call, view, call.strides if out is None else out.strides).temp_storage_bytes


def _of_transform(where: str, given: dict[str, Any]) -> int:
    for array in given["arrays"]:
        _on_gpu(array, "transform: an argument")
    return 0


_FINDERS: dict[Any, Callable[[str, dict[str, Any]], int]] = {
    _reduce.reduce: _of_reduce,
    _scan.inclusive_scan: _of_scan,
    _scan.exclusive_scan: _of_scan,
    _radix_sort.radix_sort: _of_sort,
    _radix_sort.argsort: _of_sort,
    _histogram.histogram: _of_histogram,
    _transform.transform: _of_transform,
}
