"""Transformation on the GPU: result dtype, canonical layout, kernel, launch."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from gpualgo import _streams
from gpualgo._array import View
from gpualgo._cuda import build, driver
from gpualgo._cuda import transform_policy as policy
from gpualgo._cuda.layout import Dims, merge, pack_layout
from gpualgo._operator import Operator
from gpualgo._transform import check_output, strides_for, wanted_dtype

_WHERE = "transform"
_MAX_PLANS = 4096
_plans: dict[Any, Plan] = {}


def run(
    op: Operator, views: list[View], shape: tuple[int, ...], dtype: Any, out: Any, stream: Any
) -> Any:
    """Transform device arrays into out or a new array of their library; does not wait."""
    first = views[0]
    given = None if stream is None else _streams.handle_of(stream, _WHERE)
    target = None if out is None else check_output(out, views, shape)
    place = None if target is None else (target.strides, target.ptr & 15, target.dtype)
    key = (
        op.key, shape, dtype, place, first.device, op.commutative,
        *[(v.dtype, v.shape, v.strides, v.ptr & 15) for v in views],
    )  # fmt: skip
    try:
        plan = _plans.get(key)
    except TypeError:  # an unhashable dtype
        plan = None
    if plan is None:
        plan = _new_plan(key, op, views, shape, wanted_dtype(dtype, target), target)
    if target is None:
        result = first.library.empty(shape, plan.dtype, first.device, given)
        pointer = first.library.pointer(result)
    else:
        result, pointer = out, target.ptr
    if plan.num_items:
        handle = first.library.stream(first.device) if given is None else given
        plan.launch(pointer, [view.ptr for view in views], handle)
    return result


def _new_plan(
    key: Any, op: Operator, views: list[View], shape: tuple[int, ...], wanted: Any,
    target: View | None,
) -> Plan:  # fmt: skip
    plan = Plan(op, views, shape, wanted, target)
    if len(_plans) >= _MAX_PLANS:
        _plans.clear()
    try:
        _plans[key] = plan
    except TypeError:
        pass
    return plan


class Plan:
    """A kernel, its grid and its packed parameters, for one combination of layouts."""

    __slots__ = ("device", "dtype", "free", "grid", "head", "kernel", "num_items", "tail")

    def __init__(
        self, op: Operator, views: list[View], shape: tuple[int, ...], wanted: Any,
        target: View | None,
    ) -> None:  # fmt: skip
        self.device = views[0].device
        for view in views:
            if view.ptr % view.dtype.itemsize:
                raise ValueError(
                    f"transform: an array starts at address {view.ptr:#x}, which is not a multiple "
                    f"of its item size {view.dtype.itemsize}; copy it to aligned memory"
                )
        inputs = [view.dtype for view in views]
        self.dtype = build.result_dtype(
            op, tuple(inputs), wanted, driver.capability(self.device)
        )
        self.num_items = math.prod(shape)
        self.free: list[driver.Parameters] = []
        self.head = struct.Struct(f"<{1 + len(views)}Q")
        self.tail = struct.pack("<q", self.num_items)
        if self.num_items == 0:
            return
        out_strides = _strides_of_new(shape, self.dtype) if target is None else target.strides
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

    def _flat(self, op: Operator, inputs: list[np.dtype[Any]], alignment: int) -> None:
        items = policy.pack_items([self.dtype, *inputs], alignment)
        loads = policy.loads_in_flight(inputs, items)
        tile = policy.BLOCK_THREADS * items * loads
        self.grid = (-(-self.num_items // tile), 1, 1)
        self.kernel = build.kernel(
            policy.flat_spec(op, inputs, self.dtype, items, loads), self.device
        )

    def _strided(self, op: Operator, inputs: list[np.dtype[Any]], dims: Dims) -> None:
        # Neighbouring threads should write neighbours: the output's order is the walking order.
        dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
        self.tail += pack_layout(dims, 1 + len(inputs))
        tile = policy.BLOCK_THREADS * policy.STRIDED_LOADS
        self.grid = (-(-self.num_items // tile), 1, 1)
        self.kernel = build.kernel(policy.strided_spec(op, inputs, self.dtype), self.device)

    def launch(self, output: int, inputs: list[int], stream: int) -> None:
        try:
            parameters = self.free.pop()
        except IndexError:
            parameters = driver.Parameters(self.head.size + len(self.tail))
            start = parameters.offset + self.head.size
            parameters.buffer[start : start + len(self.tail)] = self.tail
        self.head.pack_into(parameters.buffer, parameters.offset, output, *inputs)
        driver.launch(
            self.kernel, self.grid, policy.BLOCK_THREADS, stream, parameters.address, self.device
        )
        self.free.append(parameters)


def _strides_of_new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    strides = []
    step = dtype.itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _is_flat(dims: Dims, operands: list[np.dtype[Any]]) -> bool:
    if not dims:
        return True
    return len(dims) == 1 and dims[0][1] == tuple(dtype.itemsize for dtype in operands)
