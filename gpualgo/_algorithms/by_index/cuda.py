"""A reduction by index on a GPU: how elements lie, two launches, and temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.by_index import policy
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View
from gpualgo._base.extents import merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.pieces import KEPT, Piece
from gpualgo._cuda.plan import NONE, Places, Plan
from gpualgo._cuda.templates import START, WARP
from gpualgo._driver import device as gpu
from gpualgo._driver.workspace import aligned

if TYPE_CHECKING:
    from gpualgo._algorithms.by_index.problem import ByIndex


def plan_of(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride, of which there are some elements."""
    if problem.size == 0:
        return Plan(targets[0].device, [])
    own, first = views[: problem.num_own], views[problem.num_own :]
    acc, size, device = problem.acc, problem.size, targets[0].device
    at, num_items = Places(len(views), len(targets)), math.prod(problem.shape)
    table, cut = policy.table_of(size, acc), policy.cut_of(num_items, size)
    strides = zip(*(view.strides for view in own), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True)))
    access, reached = access_of(problem.source, dims, [view.ptr for view in own], 1)
    overlaps = gpu.get(device).may_overlap
    kind = policy.Kind(op, problem.index, problem.source, acc, access, problem.has_starts, overlaps)
    value_bytes = aligned(cut.num_shares * size * acc.itemsize)
    lent = Piece(value_bytes + cut.num_shares * size, KEPT)
    if not lent.fits:
        lent = Piece(lent.num_bytes)
    fold, join = kind.specs
    packed = fold.parameters.pack(
        num_items=num_items, **cut._asdict(), size=size, is_start=problem.is_start,
        **table._asdict(),
        start_steps=[view.strides[0] for view in first] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=reached,
    )  # fmt: skip
    takes = {
        "init": START,
        "input": [at.source(i) for i in range(len(own))],
        "output": [at.target(i) for i in range(len(targets))],
        "starts": [at.source(i) for i in range(len(own), len(views))] or [NONE] * len(targets),
        "values": at.piece(0), "marks": (at.piece(0), value_bytes),
    }  # fmt: skip
    folding, joining = build.kernels([fold, join], device)
    launch = Launch(
        joining, -(-size // WARP), policy.JOIN_THREADS, packed, device, takes,
        overlaps=overlaps and num_items > 0,
    )  # fmt: skip
    if num_items == 0:
        return Plan(device, [launch], [lent])
    first_launch = Launch(
        folding, -(-cut.num_shares // table.warps), table.warps * WARP, packed, device, takes,
        shared_bytes=table.warps * table.table_bytes,
    )  # fmt: skip
    return Plan(device, [first_launch, launch], [lent])
