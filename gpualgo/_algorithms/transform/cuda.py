"""Transformation on the GPU: result dtype, canonical layout, kernel, launch."""

from __future__ import annotations

import contextlib
import math
import struct
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import (
    check_meaning,
    check_output,
    plan_key,
    plans,
    policy,
    strides_for,
    wanted_dtype,
)
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, byte_bounds
from gpualgo._base.extents import Dims, dense_strides, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import pack_layout
from gpualgo._driver import driver
from gpualgo._operators.captured import check_apart, ownerless
from gpualgo._operators.operator import Operator, as_operator, check_held

_WHERE = "transform"
_MAX_PLANS = 4096


def run(
    op: Any, views: list[View], shape: tuple[int, ...], dtype: Any, out: Any, stream: Any
) -> Any:
    """Transform device arrays into out or a new array of their library; does not wait."""
    first = views[0]
    target = None if out is None else check_output(out, views, shape)
    given = None
    if stream is not None or first.library.has_homes:
        given = ordering.handle_for(stream, first, _WHERE, *views[1:], outs=(target,))
    key = plan_key(op, views, dtype, target)
    hot = key[0]
    if first.library.has_homes:
        key = (key, "home")  # not for the warm call, which orders no streams and keeps nothing
    try:
        plan = plans.get(key)
    except TypeError:  # an unhashable dtype
        plan = None
    if plan is None:
        wanted = wanted_dtype(dtype, target)
        held = as_operator(op, _WHERE, len(views))
        check_held(hot, held, _WHERE)
        plan = _new_plan(key, held, views, shape, wanted, target)
    if target is not None and plan.arrays:
        check_apart(plan.arrays, target, _WHERE)
    if target is None:
        result = first.library.empty(shape, plan.dtype, first.device, given)
        pointer = first.library.pointer(result)
    else:
        result, pointer = out, target.ptr
    if plan.num_items:
        handle = first.library.stream(first.device) if given is None else given
        plan.launch(handle, pointer, *[view.ptr for view in views])
        if first.library.has_homes:
            ordering.keep(handle, *views, result, outs=(target,))
    return result


def _new_plan(
    key: Any, op: Operator, views: list[View], shape: tuple[int, ...], wanted: Any,
    target: View | None,
) -> Plan:  # fmt: skip
    check_meaning(op, views)
    plan = Plan(op, views, shape, wanted, target)
    if len(plans) >= _MAX_PLANS:
        plans.clear()
    with contextlib.suppress(TypeError):
        plans[key] = plan
    return plan


class Plan:
    """A kernel, its grid and its packed parameters, for one combination of layouts."""

    __slots__ = ("_extents", "arrays", "device", "dtype", "launch", "num_items", "shape")

    def __init__(
        self, op: Operator, views: list[View], shape: tuple[int, ...], wanted: Any,
        target: View | None,
    ) -> None:  # fmt: skip
        self.device = views[0].device
        self.arrays = ownerless(op.arrays)  # that op captures
        for view in views:
            if view.ptr % view.dtype.itemsize:
                raise ValueError(
                    f"transform: an array starts at address {view.ptr:#x}, which is not a multiple "
                    f"of its item size {view.dtype.itemsize}; copy it to aligned memory"
                )
        inputs = [view.dtype for view in views]
        self.dtype = build.result_dtype(op, tuple(inputs), wanted, driver.capability(self.device))
        self.shape, self.num_items = shape, math.prod(shape)
        self._extents = [] if target is None else [_extent(v) for v in (target, *views)]
        if self.num_items == 0:
            return
        out_strides = (
            dense_strides(shape, self.dtype.itemsize) if target is None else target.strides
        )
        dims = merge(
            list(
                zip(
                    shape,
                    zip(out_strides, *(strides_for(v, shape) for v in views), strict=True),
                    strict=True,
                )
            )
        )
        operands = [self.dtype, *inputs]
        if _is_flat(dims, operands):
            alignment = math.gcd(16, *(v.ptr & 15 for v in views), target.ptr & 15 if target else 0)
            self._flat(op, inputs, alignment)
        else:
            self._strided(op, inputs, dims)

    def is_apart(self, out: View, views: list[View]) -> bool:
        """Return whether out is clear of each input, or is it; False: a closer look decides."""
        if self.arrays:
            return False
        (low, high, layout), *extents = self._extents
        start, stop = out.ptr + low, out.ptr + high
        for view, (low, high, same) in zip(views, extents, strict=True):
            meets = view.ptr + low < stop and start < view.ptr + high
            if meets and (view.ptr != out.ptr or same != layout):
                return False
        return True

    def _flat(self, op: Operator, inputs: list[np.dtype[Any]], alignment: int) -> None:
        items = policy.pack_items([self.dtype, *inputs], alignment)
        loads = policy.loads_in_flight(inputs, items)
        spec = policy.flat_spec(op, inputs, self.dtype, items, loads)
        self._prepare(spec, len(inputs), policy.BLOCK_THREADS * items * loads, b"")

    def _strided(self, op: Operator, inputs: list[np.dtype[Any]], dims: Dims) -> None:
        # Neighbouring threads should write neighbours: the output's order is the walking order.
        dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
        spec = policy.strided_spec(op, inputs, self.dtype)
        tile = policy.BLOCK_THREADS * policy.STRIDED_LOADS
        self._prepare(spec, len(inputs), tile, pack_layout(dims, 1 + len(inputs)))

    def _prepare(self, spec: build.Spec, num_inputs: int, tile: int, layout: bytes) -> None:
        kernel = build.kernel(spec, self.device)
        head = struct.Struct(f"<{1 + num_inputs}Q")
        tail = struct.pack("<q", self.num_items) + layout
        grid = -(-self.num_items // tile)
        self.launch = Launch(kernel, grid, policy.BLOCK_THREADS, head, tail, self.device)


def _extent(view: View) -> tuple[int, int, Any]:
    """Return a layout's first and past-the-last byte, from its pointer on, and the layout."""
    low, high = byte_bounds(view)
    return low - view.ptr, high - view.ptr, (view.shape, view.strides, view.dtype)


def _is_flat(dims: Dims, operands: list[np.dtype[Any]]) -> bool:
    if not dims:
        return True
    return len(dims) == 1 and dims[0][1] == tuple(dtype.itemsize for dtype in operands)
