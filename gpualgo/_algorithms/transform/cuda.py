"""Transformation on a GPU: canonical layout, kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import policy
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View, strides_for
from gpualgo._base import records
from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import Places, Plan


def plan_of(
    applied: Applied, views: Sequence[View], shape: tuple[int, ...], targets: Sequence[View]
) -> Plan:
    """Return the plan of a transformation of arrays that broadcast to a shape."""
    outputs = (target.strides for target in targets)
    strides = zip(*outputs, *(strides_for(v, shape) for v in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    fixed: dict[str, Any] = {"num_items": math.prod(shape)}
    operands = (*applied.outputs, *applied.inputs)
    if _is_flat(dims, operands):
        alignment = math.gcd(16, *(view.ptr for view in (*targets, *views) if _is_aligned(view)))
        items = policy.pack_items(operands, alignment)
        loads = policy.loads_in_flight(applied.inputs, items)
        spec = policy.flat_spec(applied, items, loads)
        tile = policy.BLOCK_THREADS * items * loads
    else:
        # Neighbouring threads should write neighbours: the output's order is the walking order.
        dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
        spec = policy.strided_spec(applied)
        tile = policy.BLOCK_THREADS * policy.STRIDED_LOADS
        fixed["layout"] = dims
    at, device = Places(len(views), len(targets)), targets[0].device
    pointers = {
        "output": [at.target(i) for i in range(len(targets))],
        "input": [at.source(i) for i in range(len(views))],
    }
    launch = Launch(
        build.kernel(spec, device), -(-fixed["num_items"] // tile), policy.BLOCK_THREADS,
        spec.parameters.pack(**fixed), device, takes={"pointers": pointers},
    )  # fmt: skip
    return Plan(device, [launch])


def _is_aligned(view: View) -> bool:
    """Return whether several elements are loaded from a multiple of their bytes."""
    return view.dtype not in (records.POSITION, records.SHARED_POSITION)


def _is_flat(dims: Dims, operands: Sequence[np.dtype[Any]]) -> bool:
    if not dims:
        return True
    return len(dims) == 1 and dims[0][1] == tuple(map(records.step_of, operands))
