"""Transformation on a GPU: canonical layout, kernel."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import policy
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import pack_layout
from gpualgo._cuda.plan import Places, Plan
from gpualgo._operators.operator import Operator


def plan_of(op: Operator, views: Sequence[View], shape: tuple[int, ...], target: View) -> Plan:
    """Return the plan of a transformation of arrays that broadcast to a shape."""
    inputs = [view.dtype for view in views]
    strides = zip(target.strides, *(strides_for(v, shape) for v in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    operands = [target.dtype, *inputs]
    if _is_flat(dims, operands):
        alignment = math.gcd(16, target.ptr, *(view.ptr for view in views))
        items = policy.pack_items(operands, alignment)
        loads = policy.loads_in_flight(inputs, items)
        spec = policy.flat_spec(op, inputs, target.dtype, items, loads)
        tile, layout = policy.BLOCK_THREADS * items * loads, b""
    else:
        # Neighbouring threads should write neighbours: the output's order is the walking order.
        dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
        spec = policy.strided_spec(op, inputs, target.dtype)
        tile = policy.BLOCK_THREADS * policy.STRIDED_LOADS
        layout = pack_layout(dims, len(operands))
    num_items, device = math.prod(shape), target.device
    head = struct.Struct(f"<{len(operands)}Q")  # output, inputs
    at = Places(len(views), 1)
    takes = (at.target(0), *(at.source(i) for i in range(len(views))))
    tail = struct.pack("<q", num_items) + layout
    kernel = build.kernel(spec, device)
    threads = policy.BLOCK_THREADS
    return Plan(device, [Launch(kernel, -(-num_items // tile), threads, head, tail, device, takes)])


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
