"""Results whose length the elements decide: an array of just that length, or the caller's.

A problem `is_counted` whose last result is an int64 that tells how many elements of the others
there are. Without `out` a call waits for it and returns arrays of that length; with `out` and
`out_count` it returns without waiting, so that it can be recorded; with `out` alone it waits, and
returns the part of `out` that was written.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_LEAST_SHARE = 4  # a result that is less of the memory it lies in moves to memory of its own


def solve(
    problem: Problem, views: tuple[View, ...], op: Any, out: Any, out_count: Any, stream: Any,
    init: Any = None,
) -> Any:  # fmt: skip
    """Run a problem that is counted; the result is put together as its form says."""
    where = problem.where
    handle = _check_waiting(problem, views[0], out, out_count, stream)
    given: tuple[Any, ...] | None = None
    if out is not None:
        outs = _outputs(problem, out)
        count = _new_count(views[0], stream, where) if out_count is None else out_count
        given = (*outs, count)
    result = run(problem, views, op, init, given, stream)
    if type(result) is Request:
        return result
    if out is not None and out_count is not None:
        return out
    *arrays, last = result
    found = int(last) if problem.views_on_host else _wait(last, problem.device, handle)
    if out is None:
        if problem.views_on_host:  # they have their lengths already
            return _split(problem, arrays, found)
        if problem.results[0].is_bound:
            arrays = [_just(array, found) for array in arrays]
        return _split(problem, arrays, found)
    arrays = [_sliced(array) for array in arrays]
    room = arrays[0].shape[0]
    if found > room:
        raise ValueError(
            f"{where}: out has room for {room} elements, the result has {found}; pass a longer one"
        )
    return _part_of(problem, out, arrays, found, room)


def _sliced(array: Any) -> Any:
    """Return an array that can be sliced: of one that shows a protocol alone, one over it."""
    if hasattr(type(array), "__getitem__"):
        return array
    view = view_of(array, "out")
    stream = view.library.stream(view.device)
    return DeviceArray(
        view.ptr, view.shape, view.strides, view.dtype, view.device, stream, view.readonly, array
    )


def _check_waiting(problem: Problem, like: View, out: Any, out_count: Any, stream: Any) -> int:
    """Return the stream that a call waits for, once it may; of others it does not matter."""
    where = problem.where
    if out is None and out_count is not None:
        raise TypeError(f"{where}: out_count is given without out; pass out= too, or neither")
    if out_count is not None:
        return 0
    recorder = recording.current() if recording.active else None
    if recorder is not None and recorder.is_graph:
        raise RuntimeError(
            f"{where}: the length of the result is waited for, which cannot be recorded; "
            "pass out= and out_count="
        )
    if problem.views_on_host or recorder is not None:
        return 0
    handle = like.library.stream(like.device)
    if stream is not None:
        handle = streams.handle_of(stream, where)
    with gpu.get(like.device).current():
        driver.refuse_capture(handle, f"{where}: the length of the result is waited for")
    return int(handle)


def _outputs(problem: Problem, out: Any) -> tuple[Any, ...]:
    if problem.form is None and isinstance(out, tuple):
        raise TypeError(f"{problem.where}: out is a tuple, and the result is one array; pass one")
    return inputs.outputs(problem, out)


def _new_count(like: View, stream: Any, where: str) -> Any:
    """Return an array for a count, in the library and on the device of an input."""
    if like.device == CPU:
        return like.library.from_numpy(np.empty((), _COUNT), like.owner)
    handle = None if stream is None else streams.handle_of(stream, where)
    return like.library.empty((), _COUNT, like.device, handle)


def _wait(count: Any, device: int, stream: int) -> int:
    """Return a count that was queued on a stream, once it is there."""
    found = np.empty((), _COUNT)
    with gpu.get(device).current():
        staging.fetch(view_of(count, "out_count").ptr, found.ctypes.data, found.nbytes, stream)
        driver.synchronize(stream)
    return int(found)


def _just(array: Any, count: int) -> Any:
    """Return an array's first elements, in memory of their own where most of it is idle."""
    part = array[:count]
    if count * _LEAST_SHARE >= len(array):
        return part
    copy = getattr(part, "copy", None) or getattr(part, "clone", None)
    return part if copy is None else copy()  # all work on it is done: any stream will do


def _split(problem: Problem, arrays: Sequence[Any], count: int) -> Any:
    """Return a result; one that has a rest as both its parts."""
    if problem.results[0].is_bound:
        return _packed(problem, arrays)
    first, rest = ([array[part] for array in arrays] for part in (slice(count), slice(count, None)))
    return _packed(problem, first), _packed(problem, rest)


def _packed(problem: Problem, arrays: Sequence[Any]) -> Any:
    if problem.form is None or (problem.structure is not None and problem.views_on_host):
        return arrays[0]
    return problem.form.packed(arrays)


def _part_of(problem: Problem, out: Any, arrays: Sequence[Any], count: int, room: int) -> Any:
    """Return what was written of out=; out= itself where that is all of it."""
    if not problem.results[0].is_bound:
        if isinstance(out, np.ndarray):
            return out[:count], out[count:]
        parts = [array[:count] for array in arrays], [array[count:] for array in arrays]
        return _packed_as(problem, parts[0]), _packed_as(problem, parts[1])
    if count == room:
        return out
    if isinstance(out, np.ndarray):  # a structured one, too
        return out[:count]
    return _packed_as(problem, [array[:count] for array in arrays])


def _packed_as(problem: Problem, arrays: Sequence[Any]) -> Any:
    return arrays[0] if problem.form is None else problem.form.packed(arrays)
