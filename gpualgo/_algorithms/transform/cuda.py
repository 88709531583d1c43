"""Transformation on a GPU: canonical layout, kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import policy
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import Places, Plan
from gpualgo._operators.operator import Operator


def plan_of(op: Operator, views: Sequence[View], shape: tuple[int, ...], target: View) -> Plan:
    """Return the plan of a transformation of arrays that broadcast to a shape."""
    inputs = [view.dtype for view in views]
    strides = zip(target.strides, *(strides_for(v, shape) for v in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    fixed: dict[str, Any] = {"num_items": math.prod(shape)}
    operands = [target.dtype, *inputs]
    if _is_flat(dims, operands):
        alignment = math.gcd(16, target.ptr, *(view.ptr for view in views))
        items = policy.pack_items(operands, alignment)
        loads = policy.loads_in_flight(inputs, items)
        spec = policy.flat_spec(op, inputs, target.dtype, items, loads)
        tile = policy.BLOCK_THREADS * items * loads
    else:
        # Neighbouring threads should write neighbours: the output's order is the walking order.
        dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
        spec = policy.strided_spec(op, inputs, target.dtype)
        tile = policy.BLOCK_THREADS * policy.STRIDED_LOADS
        fixed["layout"] = dims
    at, device = Places(len(views), 1), target.device
    sources = [at.source(i) for i in range(len(views))]
    launch = Launch(
        build.kernel(spec, device), -(-fixed["num_items"] // tile), policy.BLOCK_THREADS,
        spec.parameters.pack(**fixed), device,
        takes={"pointers": {"output": at.target(0), "input": sources}},
    )  # fmt: skip
    return Plan(device, [launch])


def strides_for(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a view's byte strides once it is broadcast to shape."""
    if view.shape == shape:
        return view.strides
    missing = len(shape) - len(view.shape)
    fitted = tuple(
        0 if n == 1 and m != 1 else s
        for n, s, m in zip(view.shape, view.strides, shape[missing:], strict=True)
    )
    return (0,) * missing + fitted


def _is_flat(dims: Dims, operands: list[np.dtype[Any]]) -> bool:
    if not dims:
        return True
    return len(dims) == 1 and dims[0][1] == tuple(dtype.itemsize for dtype in operands)
