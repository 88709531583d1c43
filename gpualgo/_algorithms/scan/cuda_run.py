"""Scan on the GPU: what a call asks for, and the plan that serves it."""

from __future__ import annotations

from typing import Any

from gpualgo._algorithms.scan.cuda import Plan
from gpualgo._algorithms.scan.problem import check_output
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._operators.operator import as_operator

__all__ = ["Plan", "run"]


def run(call: Any, view: View, op: Any, init: Any, out: Any, stream: Any) -> Any:
    """Scan a device array into out or a new array of its library; does not wait."""
    library, device, pointer = view.library, view.device, view.ptr
    first = init.ptr if type(init) is View else 0
    value = init if first else None
    encoded = None if first else call.encode(init)
    key: Any = pointer & 15
    strides, alignment = None, 0
    place = None if out is None else check_output(call, out, view, init)
    given = None
    if stream is not None or library.has_homes:
        given = ordering.handle_for(stream, view, call.where, value, outs=(place,))
    if place is None:
        result = library.empty(call.result_shape, call.acc, device, given)
        target = library.pointer(result)
    else:
        result, target = out, place.ptr
        strides, alignment = place.strides, target & 15
        if alignment or not is_contiguous(place):
            key = (key, alignment, strides)
    if 0 in call.shape:
        return result
    if library.has_homes:
        key = (key, "home")  # not for the warm call, which orders no streams and keeps nothing
    plan = call.plans.get(key)
    if plan is None:
        plan = Plan(call, view, as_operator(op, call.where, 2, call.arrays), strides, alignment)
        call.plans[key] = plan
    handle = library.stream(device) if given is None else given
    plan.launch(handle, encoded, first, pointer, target)
    if library.has_homes:
        ordering.keep(handle, view, value, result, outs=(place,))
    return result
