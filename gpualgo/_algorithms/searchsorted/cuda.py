"""Search on a GPU: layout of queries, and the launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.searchsorted import tuning
from gpualgo._algorithms.searchsorted.problem import Search
from gpualgo._arrays.view import View, strides_for
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Launch, Piece, Plan
from gpualgo._cuda.templates import VECTOR_BYTES
from gpualgo._driver import device as gpu
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners


@planners.for_cuda.register(Search)
def _(problem: Search, views: Sequence[View], op: Operator | None, targets: Sequence[View]) -> Plan:
    """Return the plan of a search of at least one element in a sorted array."""
    (out,), count, device = targets, problem.num_leaves, targets[0].device
    order = problem.order.with_op(op)
    shape, args = out.shape, ArgMap(len(views), 1)
    sorted_views, queries = views[:count], views[count:]
    strides = zip(out.strides, *(strides_for(view, shape) for view in queries), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    # Neighbouring threads should read and write neighbours; the order of dimensions is free.
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
    dev = gpu.get(device)
    kind = tuning.policy_of(order.element, dev.shared_limit)
    kind = replace(kind, may_fall=problem.may_fall)
    num_queries = math.prod(shape)
    alignment = _alignment(problem, order, views[0])
    kind = tuning.with_samples(kind, order.element, problem.num_sorted, num_queries, alignment)
    cut = tuning.cut_of(kind, problem.num_sorted, num_queries, dev.num_sms)
    spec = tuning.spec(
        order, problem.sides, problem.is_right, problem.results[0].dtype, kind, len(dims) <= 1
    )
    sample_starts = (0, *cut.begins, *[0] * tuning.MOST_SAMPLES)[: tuning.MOST_SAMPLES + 1]
    packed = spec.parameters.pack(
        num_sorted=problem.num_sorted, num_queries=num_queries, num_tiles=cut.num_tiles,
        steps=[view.strides[0] for view in sorted_views], num_levels=cut.num_levels,
        stretch_bits=cut.stretch_bits, places=dims, num_samples=cut.num_samples,
        sample_begins=sample_starts,
    )  # fmt: skip
    slots = {
        "sorted": [args.source(i) for i in range(count)],
        "queries": [args.source(count + i) for i in range(count)],
        "output": args.target(0), "samples": args.piece(0) if cut.begins else NONE,
    }  # fmt: skip
    launch = Launch(
        build.kernel(spec, device), cut.grid, tuning.BLOCK_THREADS, packed, device, slots,
        shared_bytes=kind.shared_bytes(order.element),
    )  # fmt: skip
    if not cut.begins:
        return Plan(device, [launch])
    sampling = tuning.samples_spec(problem.sides[0], order.element, kind.node_bits)
    num_items = cut.begins[-1]
    packed = sampling.parameters.pack(
        num_sorted=problem.num_sorted, num_samples=cut.num_samples,
        step=sorted_views[0].strides[0], sample_begins=sample_starts, num_items=num_items,
    )  # fmt: skip
    grid = min(-(-num_items // tuning.BLOCK_THREADS), dev.num_sms * tuning.SAMPLE_BLOCKS_PER_SM)
    sample_slots = {"sorted": [args.source(0)], "samples": args.piece(0)}
    sample_launch = Launch(
        build.kernel(sampling, device), grid, tuning.BLOCK_THREADS, packed, device, sample_slots
    )
    return Plan(device, [sample_launch, launch], [Piece(num_items * order.element.itemsize, KEPT)])


def _alignment(problem: Search, order: Comparison, first: View) -> int:
    """Return the sorted array's alignment if its layout is that of its samples, else 0."""
    if problem.sides[0] != order.element or first.strides[0] != order.element.itemsize:
        return 0
    return math.gcd(VECTOR_BYTES, first.ptr)
