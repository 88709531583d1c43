"""What `prepare` finds out about a call of each algorithm."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms import (
    radix_sort as _radix_sort,
)
from gpualgo._algorithms import (
    reduce as _reduce,
)
from gpualgo._algorithms import (
    scan as _scan,
)
from gpualgo._algorithms import (
    transform as _transform,
)
from gpualgo._algorithms.radix_sort import problem as _radix_sort_call
from gpualgo._algorithms.scan import problem as _scan_call
from gpualgo._arrays.view import View, as_bytes_view, as_view, byte_bounds
from gpualgo._base.extents import dense_strides
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks

Given = dict[str, Any]  # a call's arguments by name


@dataclass(frozen=True)
class Prepared:
    """A call with everything but the memory decided."""

    views: list[View]  # of the arrays that stand for those to come
    view_of: Callable[[Any], View]
    call: Callable[[tuple[Any, ...], Any, Any], Any]  # arrays, out, stream: the function itself
    op: Any = None
    temp_storage_bytes: int = 0
    run: Run | None = None  # the short way


class Run:
    """Launches for new arrays of known layouts; says so where it is not sure, and does nothing."""

    __slots__ = ("_alignments", "_bounds", "_device", "_layouts", "_library", "_queue", "_results",
                 "pack")  # fmt: skip

    def __init__(
        self, views: list[View], results: list[tuple[tuple[int, ...], np.dtype[Any]]],
        queue: Callable[[int, list[int], list[int]], None],
        pack: Callable[[int, int], Callable[[int], None]] | None = None,
    ) -> None:  # fmt: skip
        """`queue(stream, sources, targets)` launches; results have no gaps.

        `pack(source, target)` gives launch(stream) where that takes no storage.
        """
        first, self.pack = views[0], pack
        self._library, self._device, self._results, self._queue = (
            first.library, first.device, results, queue,
        )  # fmt: skip
        self._alignments = [view.ptr & 15 for view in views]
        bounds = [(view.ptr, *byte_bounds(view)) for view in views]
        self._bounds = [(low - ptr, high - ptr) for ptr, low, high in bounds]
        self._layouts = [
            (shape, dense_strides(shape, dtype.itemsize), dtype, first.device,
             first.library)
            for shape, dtype in results
        ]  # fmt: skip

    def __call__(self, views: list[View], out: Any) -> tuple[bool, Any]:
        """Launch; return whether that could be done without a closer look, and the result."""
        sources = [view.ptr for view in views]
        for source, alignment in zip(sources, self._alignments, strict=True):
            if source & 15 != alignment:
                return False, None
        library, device = self._library, self._device
        if out is None:
            made = [library.empty(shape, dtype, device, None) for shape, dtype in self._results]
            result = made[0] if len(made) == 1 else tuple(made)
            targets = [library.pointer(x) for x in made]
        else:
            result = out
            found = self._places(sources, out if isinstance(out, tuple) else (out,))
            if found is None:
                return False, None
            targets = found
        self._queue(library.stream(device), sources, targets)
        return True, result

    def _places(self, sources: list[int], outs: tuple[Any, ...]) -> list[int] | None:
        """Return the outputs' addresses; None if they are not as new results would be."""
        if len(outs) != len(self._layouts):
            return None
        targets = []
        for out, layout in zip(outs, self._layouts, strict=True):
            place = as_bytes_view(out, "Plan: out")
            target = place.ptr
            if place[1:6] != layout or place.readonly or target & 15:
                return None
            end = byte_bounds(place)[1]
            for source, (low, high) in zip(sources, self._bounds, strict=True):
                if source + low < end and target < source + high:
                    return None
            targets.append(target)
        # Two outputs may not meet either: rare enough for a closer look.
        return targets if len(targets) == 1 else None


def _call(function: Callable[..., Any], given: Given, names: tuple[str, ...]) -> Any:
    """Return call(arrays, out, stream), in which arrays take the place of those named."""
    fixed = {k: v for k, v in given.items() if k not in (*names, "out", "stream")}

    def call(arrays: tuple[Any, ...], out: Any, stream: Any) -> Any:
        named = dict(zip(names, arrays, strict=True))
        return function(**named, **fixed, out=out, stream=stream)

    return call


def _is_direct(view: View, op: Operator | None = None) -> bool:
    """Return whether a call needs no closer look: at streams, or at arrays that op captures."""
    captures = op is not None and op.arrays
    return view.device != CPU and not view.library.has_homes and not captures


def _of_reduce(function: Callable[..., Any], given: Given) -> Prepared:
    view = as_view(given["x"], "reduce: x")
    op, init = as_operator(given["op"], "reduce", 2), given["init"]
    call = _reduce.Call(view, op, init, given["axis"], given["keepdims"], given["dtype"])
    views, again = [view], _call(function, given, ("x",))
    if view.device == CPU or call.is_empty:
        return Prepared(views, lambda x: as_view(x, "reduce: x"), again, op)
    from gpualgo._algorithms.reduce import cuda

    place = None
    if given["out"] is not None:
        place = as_view(given["out"], "reduce: out").strides
    plan = cuda.new_plan(call, view, op, place)
    encoded = call.encode(init)
    run = None
    if place is None and _is_direct(view, op):
        run = Run(
            views, [(call.result_shape, call.acc)],
            lambda h, s, t: plan.launch(h, encoded, s[0], t[0]),
            None if plan.temp_storage_bytes else functools.partial(plan.pack, encoded),
        )  # fmt: skip
    return Prepared(
        views, lambda x: as_view(x, "reduce: x"), again, op, plan.temp_storage_bytes, run
    )


def _of_scan(function: Callable[..., Any], given: Given) -> Prepared:
    where = function.__name__
    view = as_view(given["x"], f"{where}: x")
    op, init = as_operator(given["op"], where, 2), given["init"]
    first: View | None = None
    on_device = hasattr(init, "__cuda_array_interface__") or hasattr(init, "__dlpack__")
    if on_device and not isinstance(init, (np.generic, np.ndarray)):
        first = checks.device_init(init, view, where)
    start = init if first is None else first
    call = _scan_call.Call(view, op, start, given["axis"], given["reverse"], given["dtype"], where)
    views, again = [view], _call(function, given, ("x",))
    if view.device == CPU or 0 in call.shape:
        return Prepared(views, lambda x: as_view(x, f"{where}: x"), again, op)
    from gpualgo._algorithms.scan.cuda import Plan

    strides, alignment = None, 0
    if given["out"] is not None:
        out = _scan_call.check_output(call, given["out"], view, start)
        strides, alignment = out.strides, out.ptr & 15
    plan = Plan(call, view, op, strides, alignment)
    encoded = None if first is not None else call.encode(init)
    run = None
    if first is None and strides is None and _is_direct(view, op):
        run = Run(
            views, [(call.result_shape, call.acc)],
            lambda h, s, t: plan.launch(h, encoded, 0, s[0], t[0]),
            None if plan.temp_storage_bytes else functools.partial(plan.pack, encoded),
        )  # fmt: skip
    return Prepared(
        views, lambda x: as_view(x, f"{where}: x"), again, op, plan.temp_storage_bytes, run
    )


def _of_sort(function: Callable[..., Any], given: Given) -> Prepared:
    where = function.__name__
    names = ("keys",) if given.get("values") is None else ("keys", "values")
    views = [as_bytes_view(given[name], f"{where}: {name}") for name in names]
    checks.same_place(views, where)
    keys, values = views[0], views[1] if len(views) == 2 else None
    dtype = (given["dtype"] or "int64") if where == "argsort" else None
    call = _radix_sort_call.Call(
        where, keys, values, given["descending"], given.get("begin_bit", 0), given.get("end_bit"),
        given["axis"], dtype,
    )  # fmt: skip
    outs = None
    if given["out"] is not None:
        outs = _radix_sort_call.check_outputs(call, tuple(views), given["out"])
    again = _call(function, given, names)
    if keys.device == CPU or 0 in call.shape:
        return Prepared(views, lambda x: as_bytes_view(x, where), again)
    from gpualgo._algorithms.radix_sort import cuda

    found = outs or tuple(
        View(0, call.result_shape, strides, dtype, keys.device, keys.library, False, None)
        for dtype, strides in zip(call.dtypes, call.strides, strict=True)
    )
    plan = cuda.Plan(call, keys, values, found)

    def queue(stream: int, sources: list[int], targets: list[int]) -> None:
        plan.launch(stream, *(*sources, 0)[:2], targets[0], targets[-1])

    results = [(call.result_shape, dtype) for dtype in call.dtypes]
    return Prepared(
        views, lambda x: as_bytes_view(x, where), again, None, plan.temp_storage_bytes,
        Run(views, results, queue) if outs is None and _is_direct(keys) else None,
    )  # fmt: skip


def _of_transform(function: Callable[..., Any], given: Given) -> Prepared:
    arrays, raw_op, dtype = given["arrays"], given["op"], given["dtype"]
    views = [as_view(x, "transform: an argument") for x in arrays]
    if not views:
        raise TypeError("transform: pass at least one array after op")
    checks.same_place(views, "transform")
    op = as_operator(raw_op, "transform", len(views))

    def again(arrays: tuple[Any, ...], out: Any, stream: Any) -> Any:
        return function(raw_op, *arrays, dtype=dtype, out=out, stream=stream)

    def view_of(x: Any) -> View:
        return as_view(x, "transform: an argument")

    shape = _transform._broadcast(views)
    run = None
    if views[0].device != CPU:
        from gpualgo._algorithms.transform import cuda

        _transform.check_meaning(op, views)
        out = given["out"]
        target = None if out is None else _transform.check_output(out, views, shape)
        plan = cuda.Plan(op, views, shape, _transform.wanted_dtype(dtype, target), target)
        if target is None and plan.num_items and _is_direct(views[0], op):
            pack = None
            if len(views) == 1:

                def pack(source: int, target: int) -> Callable[[int], None]:
                    return plan.launch.packed(target, source)

            run = Run(views, [(shape, plan.dtype)], lambda h, s, t: plan.launch(h, t[0], *s), pack)
    return Prepared(views, view_of, again, op, 0, run)


FINDERS: dict[Any, Callable[[Callable[..., Any], Given], Prepared]] = {
    _reduce.reduce: _of_reduce,
    _scan.inclusive_scan: _of_scan,
    _scan.exclusive_scan: _of_scan,
    _radix_sort.radix_sort: _of_sort,
    _radix_sort.argsort: _of_sort,
    _transform.transform: _of_transform,
}
