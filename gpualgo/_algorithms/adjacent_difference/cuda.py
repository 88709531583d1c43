"""Adjacent differences on a GPU: layout of elements and results, and the launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.adjacent_difference import tuning
from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference
from gpualgo._algorithms.select import tuning as reading
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import Dims, merge, ordered
from gpualgo._cuda import build
from gpualgo._cuda.plan import ArgMap, Launch, Plan
from gpualgo._pipeline import planners


@planners.for_cuda.register(AdjacentDifference)
def _(problem: AdjacentDifference, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of differences of elements of any layout, into targets of any strides."""
    order = problem.order or tuple(range(len(problem.shape)))
    shape = ordered(problem.shape, order)
    depth = order.index(problem.axis)
    inner, length = math.prod(shape[depth + 1 :]), shape[depth]
    num_items = math.prod(shape)
    source, result = problem.source, problem.result
    in_dtypes, out_dtypes = records.field_dtypes(source), records.field_dtypes(result)
    sources, results = _dims(shape, order, views), _dims(shape, order, targets)
    reads_dense = _is_dense(sources, records.read_bytes(source))
    writes_dense = _is_dense(results, tuple(leaf.itemsize for leaf in out_dtypes))
    items = 1
    if reads_dense and writes_dense:
        alignment = math.gcd(16, *(view.ptr for view in (*views, *targets)))
        items = tuning.pack_items((*in_dtypes, *out_dtypes), inner, alignment)
    loads = tuning.loads_in_flight(in_dtypes, items)
    reads, writes = reading.dense(in_packs=True), tuning.DENSE
    if not reads_dense:
        reads = reading.spaced(len(in_dtypes), len(sources) <= 1)
    if not writes_dense:
        writes = tuning.spaced(len(out_dtypes), len(results) <= 1)
    kind = tuning.Kind(op, source, result, reads, writes, items, loads, inner == 1)
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
    blocks = -(-num_items // (tuning.BLOCK_THREADS * items * loads))
    packed = spec.parameters.pack(**fixed)
    launch = Launch(
        build.kernel(spec, device), blocks, tuning.BLOCK_THREADS, packed, device, takes=slots
    )
    return Plan(device, [launch])


def _dims(shape: tuple[int, ...], order: Sequence[int], views: Sequence[View]) -> Dims:
    strides = zip(*(ordered(view.strides, order) for view in views), strict=True)
    return merge(list(zip(shape, strides, strict=True)))


def _is_dense(dims: Dims, steps: tuple[int, ...]) -> bool:
    return not dims or (len(dims) == 1 and dims[0][1] == steps)
