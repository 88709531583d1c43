"""Adjacent differences on a GPU: layout of elements and results, and the launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpualgo._algorithms.adjacent_difference import AdjacentDifference, Parts
from gpualgo._algorithms.select import cuda as reading
from gpualgo._algorithms.transform import cuda, tuning
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import Dims, merge, ordered
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import Plan, arg_map
from gpualgo._cuda.templates import Applied, kernel_spec, launch_again
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

# --- Tuning table of adjacent differences: kernels and template arguments.

# As for a transformation: the same loads and stores, plus the element before each pack.


def spaced(leaves: int, is_even: bool) -> Cpp:
    """Return the access to results of any strides."""
    return cpp("SpacedResults", cpp("EvenLayout" if is_even else "Layout", leaves), leaves)


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernel."""

    op: Operator
    source: records.Source
    result: np.dtype[Any]
    reads: Cpp
    writes: Cpp
    items: int
    loads: int
    is_along: bool  # the axis is the innermost one

    @property
    def spec(self) -> Spec:
        element = records.register_dtype(self.source)
        policy = cpp("AdjacentPolicy", tuning.BLOCK_THREADS, self.loads, self.items, self.is_along)
        return kernel_spec(
            "adjacent_difference/kernel.cuh", "adjacent_difference_kernel", policy,
            Applied(self.op, (element, element), self.result), self.source, self.result,
            self.reads, self.writes,
        )  # fmt: skip


@planners.for_cuda.register(AdjacentDifference)
def _(problem: AdjacentDifference, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    plan = partial(_planned, problem, op=op, targets=targets)
    return cuda.of_copies(views, targets, plan, problem.order)


def _planned(
    problem: AdjacentDifference, views: Sequence[View], op: Any, targets: Sequence[View]
) -> Plan:
    order = problem.order or tuple(range(len(problem.shape)))
    shape = ordered(problem.shape, order)
    depth = order.index(problem.axis)
    inner, length = math.prod(shape[depth + 1 :]), shape[depth]
    num_items = math.prod(shape)
    source, result = problem.source, problem.result
    in_dtypes, out_dtypes = records.field_dtypes(source), records.field_dtypes(result)
    sources, results = _dims(shape, order, views), _dims(shape, order, targets)
    reads_dense = _is_dense(sources, records.read_bytes(source))
    writes_dense = _is_dense(results, tuple(field.itemsize for field in out_dtypes))
    items = 1
    if reads_dense and writes_dense:
        alignment = math.gcd(16, *(view.ptr for view in (*views, *targets)))
        items = tuning.pack_items((*out_dtypes, *in_dtypes), alignment, len(out_dtypes))
        if inner > 1:  # one index along the axis for the elements of a pack
            items = math.gcd(items, inner)
    loads = tuning.loads_in_flight(in_dtypes, items)
    reads, writes = reading.dense(in_packs=True), cpp("DenseResults")
    if not reads_dense:
        reads = reading.spaced(len(in_dtypes), len(sources) <= 1)
    if not writes_dense:
        writes = spaced(len(out_dtypes), len(results) <= 1)
    kind = Kind(op, source, result, reads, writes, items, loads, inner == 1)
    at, device = arg_map(len(views), len(targets)), targets[0].device
    step = launch_again(
        problem.launches, (reads, writes, items, loads, inner == 1), lambda: kind.spec, device,
        -(-num_items // (tuning.BLOCK_THREADS * items * loads)), tuning.BLOCK_THREADS,
        {"input": at.sources, "output": at.targets},
        num_items=num_items, inner=max(1, inner), length=max(1, length),
        reads={} if reads_dense else {"places": sources},
        writes={} if writes_dense else {"places": results},
    )  # fmt: skip
    return Plan(device, [step])


def _dims(shape: tuple[int, ...], order: Sequence[int], views: Sequence[View]) -> Dims:
    strides = zip(*(ordered(view.strides, order) for view in views), strict=True)
    return merge(list(zip(shape, strides, strict=True)))


def _is_dense(dims: Dims, steps: tuple[int, ...]) -> bool:
    return not dims or (len(dims) == 1 and dims[0][1] == steps)


# --- Adjacent differences of large host arrays on a GPU: a transformation in blocks.


@planners.for_blocks.register(AdjacentDifference)
def _(problem: AdjacentDifference, call: planners.HostCall) -> bool:
    """Write all results of lines of at least two elements; pageable arrays are uploaded twice."""
    axis, source, shape, outs = problem.axis, problem.source, problem.shape, call.results
    if not (call.is_forced or cuda.is_large([*call.arrays, *outs])):
        return False
    if isinstance(source, records.Computed) or 0 in shape or shape[axis] < 2:
        return False
    arrays = [np.broadcast_to(array, shape) for array in call.arrays]
    element = records.register_dtype(source)
    kinds = records.field_dtypes(source) * 2
    applied = Applied(call.op, (records.argument_of(element),) * 2, problem.result, kinds)
    parts, places = Parts.along(axis), call.device_views
    operands, targets = parts.split(arrays, outs)
    inputs = list(zip(arrays, places, strict=False))
    out_pairs = list(zip(outs, places[len(arrays) :], strict=True))
    views = [_shifted(*pair, axis) for pair in inputs] + [place for _, place in inputs]
    views += [_shifted(*pair, axis) for pair in out_pairs]
    cuda.transform(problem, applied, operands, targets, call.stream, views)  # waits
    parts.copy_first(arrays, outs)
    return True


def _shifted(array: Array, place: View | None, axis: int) -> View | None:
    """Return a page-locked array's view without the first elements of its lines."""
    return place and place._replace(ptr=place.ptr + array.strides[axis])
