"""Search on a GPU: how queries lie, and the launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._algorithms.searchsorted import policy
from gpualgo._arrays.view import View, strides_for
from gpualgo._base.extents import merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import Places, Plan
from gpualgo._driver import device as gpu

if TYPE_CHECKING:
    from gpualgo._algorithms.searchsorted.problem import Search


def plan_of(
    problem: Search, order: Comparison, views: Sequence[View], targets: Sequence[View]
) -> Plan:
    """Return the plan of a search of elements, which there are, in a sorted array."""
    (out,), count, device = targets, problem.num_leaves, targets[0].device
    shape, at = out.shape, Places(len(views), 1)
    sorted_views, queries = views[:count], views[count:]
    strides = zip(out.strides, *(strides_for(view, shape) for view in queries), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    # Neighbouring threads should read and write neighbours, in any order.
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
    found = gpu.get(device)
    kind = policy.policy_of(order.element, found.shared_limit)
    num_queries = math.prod(shape)
    cut = policy.cut_of(kind, problem.num_sorted, num_queries, found.num_sms)
    spec = policy.spec(
        order, problem.sides, problem.is_right, problem.results[0].dtype, kind, len(dims) <= 1
    )
    packed = spec.parameters.pack(
        num_sorted=problem.num_sorted, num_queries=num_queries, num_tiles=cut.num_tiles,
        steps=[view.strides[0] for view in sorted_views], num_levels=cut.num_levels,
        stretch_bits=cut.stretch_bits, places=dims,
    )  # fmt: skip
    takes = {
        "sorted": [at.source(i) for i in range(count)],
        "queries": [at.source(count + i) for i in range(count)],
        "output": at.target(0),
    }
    launch = Launch(
        build.kernel(spec, device), cut.grid, policy.BLOCK_THREADS, packed, device, takes,
        shared_bytes=kind.shared_bytes(order.element),
    )  # fmt: skip
    return Plan(device, [launch])
