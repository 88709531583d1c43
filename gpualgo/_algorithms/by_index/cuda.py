"""Reduction by index on a GPU: layout of elements, launches, and temporary storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Launch, Piece, Plan
from gpualgo._cuda.templates import START, WARP
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._pipeline import planners


@planners.for_cuda.register(ByIndex)
def _(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride, which are not empty."""
    if problem.size == 0:
        return Plan(targets[0].device, [])
    inputs, init_views = views[: problem.num_own], views[problem.num_own :]
    acc, size, device = problem.acc, problem.size, targets[0].device
    args, num_items = ArgMap(len(views), len(targets)), math.prod(problem.shape)
    table, tiling = tuning.table_of(size, acc), tuning.tiling_of(num_items, size)
    strides = zip(*(view.strides for view in inputs), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True)))
    access, fields = access_of(problem.source, dims, [view.ptr for view in inputs], 1)
    overlaps = gpu.get(device).may_overlap
    has_row_init = problem.row_init is not None
    kind = tuning.Kind(op, problem.index, problem.source, acc, access, has_row_init, overlaps)
    sizes = [
        aligned(count * size * item_bytes)
        for count in (tiling.num_shares, tiling.num_groups)
        for item_bytes in (acc.itemsize, 1)
    ]
    ends = [0, *itertools.accumulate(sizes)]
    piece = Piece(ends[-1], KEPT)
    if not piece.fits:
        piece = Piece(piece.num_bytes)
    columns = -(-size // WARP)
    grids = [-(-tiling.num_shares // table.warps), tiling.num_groups * columns, columns]
    threads = [table.warps * WARP, tuning.JOIN_THREADS, tuning.JOIN_THREADS]
    stages = [stage for stage in zip(kind.specs, grids, threads, strict=True) if stage[1] > 0]
    specs = [spec for spec, _, _ in stages]
    packed = specs[0].parameters.pack(
        num_items=num_items, **tiling._asdict(), group=tuning.GROUP, num_groups=tiling.num_groups,
        num_columns=columns, size=size, is_start=problem.is_start, **table._asdict(),
        start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    names = "values", "marks", "group_values", "group_marks"
    slots = {
        "init": START,
        "input": [args.source(i) for i in range(len(inputs))],
        "output": [args.target(i) for i in range(len(targets))],
        "starts": [args.source(i) for i in range(len(inputs), len(views))] or [NONE] * len(targets),
        **{name: (args.piece(0), end) for name, end in zip(names, ends, strict=False)},
    }  # fmt: skip
    shared = table.warps * table.table_bytes
    launches = [
        Launch(
            kernel, grid, block, packed, device, slots,
            shared_bytes=shared if num_items and i == 0 else 0,
            overlaps=overlaps and i > 0,
        )
        for i, (kernel, (_, grid, block)) in enumerate(
            zip(build.kernels(specs, device), stages, strict=True)
        )
    ]  # fmt: skip
    return Plan(device, launches, [piece])
