"""Results whose length depends on the elements, such as those of select.

The last result of a problem with `has_dynamic_length` is the number of elements in the others
(int64).
Without `out`, the call waits for the count and returns arrays of that length. With `out` and
`out_count` it does not wait, so it can be recorded in a graph. With `out` alone it waits and
returns the part of `out` that was written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import View, view_of
from gpualgo._base import recording
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging, streams
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import inputs
from gpualgo._pipeline.problem import Problem, Request
from gpualgo._pipeline.run import run

_COUNT = np.dtype(np.int64)
_LEAST_SHARE = 4  # a result that fills less than 1/4 of its memory is copied
_FEW_ELEMENTS = 1 << 17  # unless its memory has room for so few


def solve(
    problem: Problem, views: tuple[View, ...], op: Any, init: Any, out: Any, stream: Any,
    out_count: Any,
) -> Any:  # fmt: skip
    """Run a problem with `has_dynamic_length` and pack the results into the problem's form."""
    where = problem.where
    handle = _check_waiting(problem, views[0], out, out_count, stream)
    outs_and_count: tuple[Any, ...] | None = None
    if out is not None:
        outs = _outputs(problem, out)
        count = new_int64(views[0], (), stream, where) if out_count is None else out_count
        outs_and_count = (*outs, count)
    result = run(problem, views, op, init, outs_and_count, stream)
    if type(result) is Request:
        return result
    if out is not None and out_count is not None:
        return out
    *arrays, last = result
    count_found = int(last) if problem.views_on_host else _read_count(last, problem.device, handle)
    form, is_bound, part = problem.form, problem.results[0].is_upper_bound, slice(count_found)
    if out is None:
        is_one = form is None or (problem.structure is not None and problem.views_on_host)
        if is_bound:  # host arrays already have their final length
            if not problem.views_on_host:
                arrays = [_shortened(array, count_found) for array in arrays]
            return arrays[0] if is_one or form is None else form.packed(arrays)
    else:
        arrays = [_sliceable(array) for array in arrays]
        room = arrays[0].shape[0]
        if count_found > room:
            raise ValueError(
                f"{where}: out has room for {room} elements, the result has {count_found}; "
                "pass a longer one"
            )
        if is_bound and count_found == room:
            return out
        is_one = form is None or isinstance(out, np.ndarray)
        if isinstance(out, np.ndarray):  # including structured arrays
            arrays = [out]

    def packed(part: slice) -> Any:
        parts = [array[part] for array in arrays]
        return parts[0] if is_one or form is None else form.packed(parts)

    return packed(part) if is_bound else (packed(part), packed(slice(count_found, None)))


def _sliceable(array: Any) -> Any:
    """Return an array that supports slicing: a DeviceArray over one known by protocol only."""
    if hasattr(type(array), "__getitem__"):
        return array
    view = view_of(array, "out")
    stream = view.library.stream(view.device)
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, view.device, stream, view.readonly, array
    )


def _check_waiting(problem: Problem, like: View, out: Any, out_count: Any, stream: Any) -> int:
    """Return the stream to wait for; 0 if the call need not wait. Raise if it may not wait."""
    where = problem.where
    if out is None and out_count is not None:
        raise TypeError(f"{where}: out_count is given without out; pass out= too, or neither")
    if out_count is not None:
        return 0
    recorder = recording.current() if recording.active else None
    if recorder is not None and recorder.is_graph:
        raise RuntimeError(
            f"{where}: the call waits for the length of its result, which cannot be recorded; "
            "pass out= and out_count="
        )
    if problem.views_on_host or recorder is not None:
        return 0
    handle = like.library.stream(like.device)
    if stream is not None:
        handle = streams.handle_of(stream, where)
    with gpu.get(like.device).current():
        driver.refuse_capture(handle, f"{where}: the call waits for the length of the result")
    return int(handle)


def _outputs(problem: Problem, out: Any) -> tuple[Any, ...]:
    if problem.form is None and isinstance(out, tuple):
        raise TypeError(
            f"{problem.where}: out is a tuple, but the result is one array; pass an array"
        )
    return inputs.outputs(problem, out)


def new_int64(like: View, shape: tuple[int, ...], stream: Any, where: str) -> Any:
    """Return a new array of int64 in an array's library and on its device."""
    if like.device == CPU:
        return like.library.from_numpy(np.empty(shape, _COUNT), like.owner)
    handle = None if stream is None else streams.handle_of(stream, where)
    return like.library.empty(shape, _COUNT, like.device, handle)


def _read_count(count: Any, device: int, stream: int) -> int:
    value = np.empty((), _COUNT)
    with gpu.get(device).current():
        staging.fetch(view_of(count, "out_count").ptr, value.ctypes.data, value.nbytes, stream)
        driver.synchronize(stream)
    return int(value)


def _shortened(array: Any, count: int) -> Any:
    """Return the first elements of an array; a copy if most of the array's memory is unused."""
    part = array[:count]
    if count * _LEAST_SHARE >= len(array) or len(array) <= _FEW_ELEMENTS:
        return part
    copy = getattr(part, "copy", None) or getattr(part, "clone", None)
    return part if copy is None else copy()  # the call has waited, so any stream will do
