"""Adjacent differences on a GPU: layout of elements and results, and the launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gpualgo._algorithms.adjacent_difference import AdjacentDifference, Parts
from gpualgo._algorithms.select import cuda as reading
from gpualgo._algorithms.transform import cuda
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import Dims, merge, ordered
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters
from gpualgo._cuda.plan import ArgMap, Launch, Plan
from gpualgo._cuda.templates import (
    DIVISOR,
    VECTOR_BYTES,
    Access,
    functor,
    is_aligned,
    layout_of,
    layout_type,
)
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import Array

# --- Parameter structs of the adjacent difference kernel (adjacent_difference/kernel.cuh).

DENSE_RESULTS_PARAMS = Parameters("DenseResults")


@cache
def spaced_results_params(leaves: int, is_even: bool) -> Parameters:
    """Return SpacedResults of elements with `leaves` fields; is_even: one dimension."""
    return Parameters("SpacedResults", places=layout_of(leaves, is_even))


@cache
def adjacent_params(inputs: int, outputs: int, reads: Parameters, writes: Parameters) -> Parameters:
    """Return AdjacentParams; `inputs` and `outputs` are the numbers of fields read and written."""
    return Parameters(
        "AdjacentParams",
        input=POINTER[inputs], output=POINTER[outputs], num_items=I64, inner=DIVISOR,
        length=DIVISOR, reads=reads, writes=writes,
    )  # fmt: skip


# --- Tuning table of adjacent differences: kernels and template arguments.

# As for a transformation: the same loads and stores, plus the element before each pack.
BLOCK_THREADS = 256
BYTES_IN_FLIGHT, MOST_LOADS = 16, 8  # that a thread loads before it stores
MAX_PACK_BYTES = 32  # of the widest number; the narrowest then fills a vector

DENSE = Access("gpualgo::DenseResults", DENSE_RESULTS_PARAMS)


def spaced(leaves: int, is_even: bool) -> Access:
    """Return the access to results of any strides."""
    layout = f"gpualgo::{layout_type(is_even)}<{leaves}>"
    cpp = f"gpualgo::SpacedResults<{layout}, {leaves}>"
    return Access(cpp, spaced_results_params(leaves, is_even))


def pack_items(numbers: Sequence[np.dtype[Any]], inner: int, alignment: int) -> int:
    """Return the elements of a pack, for contiguous numbers of these dtypes.

    The elements of a pack have one index along the axis, unless that is the innermost one.
    """
    sizes = [number.itemsize for number in numbers if not records.is_position(number)]
    sizes = sizes or [VECTOR_BYTES]
    items = max(1, min(VECTOR_BYTES // min(sizes), MAX_PACK_BYTES // max(sizes)))
    while items > 1 and not (
        (inner == 1 or inner % items == 0) and is_aligned(numbers, items, alignment)
    ):
        items //= 2
    return items


def loads_in_flight(numbers: Sequence[np.dtype[Any]], items: int) -> int:
    """Return how many packs of input a thread loads before it stores."""
    size = sum(number.itemsize for number in numbers if not records.is_position(number))
    loads = BYTES_IN_FLIGHT // (items * max(size, 1))
    return min(MOST_LOADS, 1 << max(1, loads).bit_length() - 1)


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernel."""

    op: Operator
    source: records.Source
    result: np.dtype[Any]
    reads: Access
    writes: Access
    items: int
    loads: int
    is_along: bool  # the axis is the innermost one

    @property
    def spec(self) -> Spec:
        op, source, result = self.op, self.source, self.result
        element = records.register_dtype(source)
        sizes = BLOCK_THREADS, self.loads, self.items, str(self.is_along).lower()
        types = (
            f"gpualgo::AdjacentPolicy<{', '.join(map(str, sizes))}>",
            functor(op, (element, element), result), records.cpp_name(source),
            records.cpp_name(result), self.reads.cpp, self.writes.cpp,
        )  # fmt: skip
        expression = f"gpualgo::adjacent_difference_kernel<{', '.join(types)}>"
        counts = len(records.field_dtypes(source)), len(records.field_dtypes(result))
        params = adjacent_params(*counts, self.reads.fields, self.writes.fields)
        header, arguments = "adjacent_difference/kernel.cuh", (element, element)
        computed = source if isinstance(source, records.Computed) else None
        if computed is None and build.is_functor(op, arguments, result):
            return Spec(header, expression, params)
        return Spec(header, expression, params, op, arguments, result, computed)


@planners.for_cuda.register(AdjacentDifference)
def _(problem: AdjacentDifference, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
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
        items = pack_items((*in_dtypes, *out_dtypes), inner, alignment)
    loads = loads_in_flight(in_dtypes, items)
    reads, writes = reading.dense(in_packs=True), DENSE
    if not reads_dense:
        reads = reading.spaced(len(in_dtypes), len(sources) <= 1)
    if not writes_dense:
        writes = spaced(len(out_dtypes), len(results) <= 1)
    kind = Kind(op, source, result, reads, writes, items, loads, inner == 1)
    spec, args, device = kind.spec, ArgMap(len(views), len(targets)), targets[0].device
    fixed = {
        "num_items": num_items, "inner": max(1, inner), "length": max(1, length),
        "reads": {} if reads_dense else {"places": sources},
        "writes": {} if writes_dense else {"places": results},
    }  # fmt: skip
    slots = {
        "input": [args.source(i) for i in range(len(views))],
        "output": [args.target(i) for i in range(len(targets))],
    }
    blocks = -(-num_items // (BLOCK_THREADS * items * loads))
    packed = spec.parameters.pack(**fixed)
    launch = Launch(build.kernel(spec, device), blocks, BLOCK_THREADS, packed, device, takes=slots)
    return Plan(device, [launch])


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
    argument = records.Separate(element) if records.is_record(element) else element
    kinds = records.field_dtypes(source) * 2
    applied = Applied(call.op, (argument, argument), problem.result, kinds)
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
