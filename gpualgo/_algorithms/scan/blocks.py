"""Scans of large pageable arrays on a GPU in blocks, so that they may exceed its memory.

A block uses the kernel and the tiles of the whole array, so results have the bits of a scan of
device arrays. Blocks of whole lines need nothing else; `blocks_cut` handles blocks of partial
lines.

Only the kernels of many lines cannot continue a line. If such lines exceed a block, each is scanned
as if it were the only one; this depends on lengths and dtypes only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.scan import blocks_cut, blocks_work, cuda
from gpualgo._algorithms.scan.blocks_work import Work
from gpualgo._algorithms.scan.cuda_layout import Way, way_of
from gpualgo._algorithms.scan.policy_lines import cut_columns
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.extents import ordered_strides
from gpualgo._driver import driver
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_blocks, host_whole
from gpualgo._pipeline.problem import NO_INIT, Array

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan

# of lines and results that one kernel scans together; above it each line is scanned alone
LINES_BYTES = 4 << 30


def scan(
    problem: Scan, arrays: list[Array], results: list[Array], op: Operator, init: Array | None,
    stream: Any, places: Sequence[View | None],
) -> bool:  # fmt: skip
    """Scan arrays of which some are pageable. Return False if blocks do not apply."""
    fields = records.leaves(problem.source)
    if isinstance(problem.source, records.Computed) or any(map(records.is_position, fields)):
        return False
    if sum(x.nbytes for x in (*arrays, *results)) <= blocks_work.BLOCK_BYTES:
        return False
    sources, targets = host_whole.views_if_whole(arrays, results, places, problem.device)
    way = way_of(problem, problem.source, sources, targets)
    order: tuple[int, ...] = ()
    if way.axis is not None:
        orders = {_order_of(view) for view in (*sources, *targets)}
        if None in orders or (way.kernel == "columns" and len(orders) > 1):
            return False  # lines that are columns in one array and rows in another
        order = _order_of(sources[0]) or ()
    reason = host_whole.pageable(None in places[: len(arrays)], problem.where)
    handle = host_blocks.begin(problem, arrays[0], stream, reason)
    start = NO_INIT if init is None else (init.tobytes(), 1, 0, 0)
    with host_blocks.told(problem.where, arrays, results) as written:
        _run(Work(problem, arrays, results, op, start, handle, order, written), way)
    return True


def _order_of(view: View) -> tuple[int, ...] | None:
    """Return the order of axes in memory, outermost first; None for broadcast axes."""
    axes = range(len(view.shape))
    if any(view.shape[i] > 1 and view.strides[i] == 0 for i in axes):
        return None
    unit_axes = [i for i in axes if view.shape[i] == 1]
    others = sorted(set(axes) - set(unit_axes), key=lambda i: -abs(view.strides[i]))
    return (*unit_axes, *others)


def _run(work: Work, way: Way) -> None:
    """Scan in blocks of whole lines if they fit, else in partial lines."""
    axis, num_items = way.axis, way.columns[0]
    if axis is None:
        blocks_cut.scan(work, way)
        return
    line_bytes, joint_lines = num_items * work.item_bytes, 1
    if way.kernel == "columns":
        cut = cut_columns(*way.columns, records.held(work.problem.source), work.problem.acc)
        inner = work.order[work.order.index(axis) + 1 :]
        joint_lines = math.prod(work.shape[i] for i in inner) if cut.is_narrow else 1
    limit = blocks_work.BLOCK_BYTES if way.kernel == "tiles" else LINES_BYTES
    if joint_lines * line_bytes <= limit:
        _whole_lines(work, way, line_bytes, max(blocks_work.BLOCK_BYTES, joint_lines * line_bytes))
        return
    if way.kernel != "tiles":  # each as if it were the only line
        way = way._replace(kernel="tiles", num_bytes=num_items * work.widest)
    blocks_cut.scan(work, way)


def _whole_lines(work: Work, way: Way, line_bytes: int, limit: int) -> None:
    axes = [axis for axis in work.order if axis != way.axis]
    blocks = list(host_blocks.indices(work.shape, axes, line_bytes, limit))
    shapes = {work.arrays[0][block].shape for block in blocks}
    plans = {}
    for shape in shapes:
        views = [
            view._replace(strides=ordered_strides(shape, view.dtype.itemsize, work.order))
            for view in host_blocks.dense(work.leaves, shape, work.device)
        ]
        sides = views[: len(work.arrays)], views[len(work.arrays) :]
        plans[shape] = cuda.plan_of(work.problem, sides[0], work.op, sides[1], way)
    most_items = max(map(math.prod, shapes))

    def parts(side: Sequence[Array], block: Any) -> list[list[Array]]:
        return [[x[block].transpose(work.order)] for x in side]

    with work.memory(most_items, list(plans.values())) as (memory, queue):
        for block in blocks:
            work.upload(parts(work.arrays, block), memory)
            plan = plans[np.shape(work.arrays[0][block])]
            queue(plan, *memory, words=work.op.words, start=work.start)
            work.download(parts(work.results, block), memory)
        driver.synchronize(work.stream)
