"""Scans of large pageable arrays on a GPU in blocks, so that they may exceed its memory.

A block uses the kernel and the tiles of the whole array, so results have the bits of a scan of
device arrays. Blocks of whole lines need nothing else; `blocks_cut` handles blocks of partial
lines.

Only the kernels of many lines cannot continue a line. If such lines exceed a block, each is scanned
as if it were the only one; this depends on lengths and dtypes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.scan import cuda, tuning
from gpualgo._algorithms.scan.cuda import ScanStrategy, strategy_of
from gpualgo._algorithms.scan.problem import Scan
from gpualgo._algorithms.scan.tuning import tile_columns
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.strides import ordered_strides
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_whole import Index
from gpualgo._pipeline.problem import NO_INIT, Array, Start

# --- Shared by block-wise scans: the arrays of a call, device memory for a part, and copies.

BLOCK_BYTES = 256 << 20  # of elements and results; smaller arrays are copied to the GPU as a whole


class Work(NamedTuple):
    """A scan of host arrays, whose axes have one common memory order if an axis is given."""

    problem: Scan
    arrays: list[Array]
    results: list[Array]
    op: Operator
    start: Start
    stream: int
    order: tuple[int, ...]  # of axes, outermost first
    written: host_whole.WriteState

    @property
    def device(self) -> int:
        return self.problem.device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    @property
    def leaves(self) -> tuple[records.Dtype, ...]:
        return (*records.field_dtypes(self.problem.source), *records.field_dtypes(self.problem.acc))

    @property
    def item_bytes(self) -> int:
        return sum(field.itemsize for field in self.leaves)

    @property
    def widest(self) -> int:
        """The larger of an element's and a result's bytes."""
        return int(max(self.problem.source.itemsize, self.problem.acc.itemsize))

    def plan(self, shape: tuple[int, ...], strategy: ScanStrategy, spacing: int = 1) -> Plan:
        """Return the plan of a part with this shape, and so many items from one to the next."""
        order = self.order if len(shape) > 1 else ()
        views = [
            view._replace(strides=ordered_strides(shape, view.dtype.itemsize * spacing, order))
            for view in host_whole.placeholder_views(self.leaves, shape, self.device)
        ]
        count = len(self.arrays)
        return cuda.plan_of(self.problem, views[:count], self.op, views[count:], strategy)

    def memory(
        self, items: int, plans: Sequence[Plan]
    ) -> AbstractContextManager[tuple[list[int], host_whole.Queue]]:
        sizes = [items * field.itemsize for field in self.leaves]
        return host_whole.memory(self.device, self.stream, sizes, plans)

    def upload(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        for part, address in zip(parts, memory, strict=False):
            staging.copy_all(part, address, self.device, self.stream, is_upload=True)

    def download(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        self.written.has_begun = True
        for part, address in zip(parts, memory[len(self.arrays) :], strict=True):
            staging.copy_all(part, address, self.device, self.stream, is_upload=False)


# --- Scans of partial lines: each part begins at a tile and continues from the prefix before it.
#
# Tiles of long lines are folded from left to right. The prefix before a tile is an initial
# value like `init`, so results have the bits of a scan of the whole line. That prefix is the
# exclusive result of the element after the block, which is uploaded too. An inclusive scan of
# a block is therefore preceded by an exclusive one, of which one value is kept.

MOST_LINES = 64  # neighbouring lines that are scanned together


def scan_parts(work: Work, strategy: ScanStrategy) -> None:
    """Scan lines in parts, one line after the other or neighbouring lines together.

    On the device a part is a matrix with one column for each line.
    """
    axis, shape = strategy.axis, work.shape
    if strategy.is_reverse:  # a reversed scan starts at the last element
        work = work._replace(
            arrays=[np.flip(x, axis) for x in work.arrays],
            results=[np.flip(x, axis) for x in work.results],
        )
    strategy = strategy._replace(is_reverse=False, axis=None)
    num_items = math.prod(shape) if axis is None else shape[axis]
    groups = [(group, math.prod(s.stop - s.start for s in group) // num_items)
              for group in _groups(work, axis)]  # fmt: skip
    widths = {width for _, width in groups}
    tile = tuning.policy_of(strategy.num_bytes, work.problem.source, work.problem.acc)
    items = tile.tile_items(work.widest)
    step = max(1, BLOCK_BYTES // (max(widths) * work.item_bytes * items)) * items
    parts = [(lo, min(lo + step, num_items)) for lo in range(0, num_items, step)]

    def scans(start: int, end: int) -> list[tuple[int, bool]]:
        """Return the scans of a part as (number of elements, is_exclusive)."""
        carries = [(end - start + 1, True)] if end < num_items else []
        if carries and strategy.is_exclusive:
            return carries
        return [*carries, (end - start, strategy.is_exclusive)]

    def pieces(x: Array, group: Index, start: int, end: int) -> list[Array]:
        if axis is None:
            return staging.stretch(x, start, end)
        index = (*group[:axis], slice(start, end), *group[axis + 1 :])
        return [x[index].transpose(work.order)]

    plans = {  # for one line of a part; all its lines share it
        (count, width, is_exclusive): work.plan(
            (count,), strategy._replace(is_exclusive=is_exclusive), width
        )
        for width in widths for part in parts for count, is_exclusive in scans(*part)
    }  # fmt: skip
    sizes = [field.itemsize for field in work.leaves]
    with work.memory(max(widths) * min(step + 1, num_items), [*plans.values()]) as (memory, queue):
        for group, width in groups:
            starts = [work.start] * width
            for start, end in parts:
                last = min(end + 1, num_items)
                work.upload([pieces(x, group, start, last) for x in work.arrays], memory)
                next_starts = starts
                for count, is_exclusive in scans(start, end):
                    plan = plans[count, width, is_exclusive]
                    for line, line_start in enumerate(starts):
                        addresses = (a + line * size for a, size in zip(memory, sizes, strict=True))
                        queue(plan, *addresses, words=work.op.words, start=line_start)
                    if count > end - start:
                        next_starts = _fetch_carries(work, memory, (end - start) * width, width)
                starts = next_starts
                work.download([pieces(x, group, start, end) for x in work.results], memory)
        driver.synchronize(work.stream)


def _groups(work: Work, axis: int | None) -> Iterator[Index]:
    """Yield groups of neighbouring lines that are scanned together."""
    if axis is None:
        yield tuple(slice(0, extent) for extent in work.shape)
        return
    depth = work.order.index(axis)
    for outer in host_whole.indices(work.shape, work.order[:depth], 1, 1):
        for inner in host_whole.indices(work.shape, work.order[depth + 1 :], 1, MOST_LINES):
            yield tuple(
                outer_slice if work.order.index(i) < depth else inner_slice
                for i, (outer_slice, inner_slice) in enumerate(zip(outer, inner, strict=True))
            )


def _fetch_carries(work: Work, memory: Sequence[int], first: int, count: int) -> list[Start]:
    """Wait for `count` results from index `first` on; return them as initial values."""
    acc = work.problem.acc
    carries: Any = np.zeros(count, acc)
    names = acc.names or (None,)
    for name, address in zip(names, memory[len(work.arrays) :], strict=True):
        field = acc if name is None else acc[name]
        values = np.empty(count, field)
        staging.fetch(
            address + first * field.itemsize, values.ctypes.data, values.nbytes, work.stream
        )
        driver.synchronize(work.stream)
        (carries if name is None else carries[name])[...] = values
    return [(carry.tobytes(), 1, 0, 0) for carry in np.split(carries, count)]


# of lines and results that one kernel scans together; above it each line is scanned alone
LINES_BYTES = 4 << 30


@planners.for_blocks.register(Scan)
def _(problem: Scan, call: planners.HostCall) -> bool:
    arrays, results, op, init, stream, places, is_forced = call
    fields = records.field_dtypes(problem.source)
    if (
        is_forced
        or problem.has_steps
        or isinstance(problem.source, records.Computed)
        or any(map(records.is_position, fields))
    ):
        return False
    if sum(x.nbytes for x in (*arrays, *results)) <= BLOCK_BYTES:
        return False
    sources, targets = host_whole.views_if_whole(arrays, results, places, problem.device)
    strategy = strategy_of(problem, sources, targets)
    order: tuple[int, ...] = ()
    if strategy.axis is not None:
        orders = {_order_of(view) for view in (*sources, *targets)}
        if None in orders or (strategy.kernel == "columns" and len(orders) > 1):
            return False  # lines that are columns in one array and rows in another
        order = _order_of(sources[0]) or ()
    reason = host_whole.pageable(None in places[: len(arrays)], problem.where)
    handle = host_whole.begin(problem.device, stream, arrays[0], problem.where, reason)
    start = NO_INIT if init is None else (init.tobytes(), 1, 0, 0)
    with host_whole.partial_write_guard(problem.where, arrays, results) as written:
        _run(Work(problem, arrays, results, op, start, handle, order, written), strategy)
    return True


def _order_of(view: View) -> tuple[int, ...] | None:
    """Return the order of axes in memory, outermost first; None for broadcast axes."""
    axes = range(len(view.shape))
    if any(view.shape[i] > 1 and view.strides[i] == 0 for i in axes):
        return None
    unit_axes = [i for i in axes if view.shape[i] == 1]
    others = sorted(set(axes) - set(unit_axes), key=lambda i: -abs(view.strides[i]))
    return (*unit_axes, *others)


def _run(work: Work, strategy: ScanStrategy) -> None:
    """Scan in blocks of whole lines if they fit, else in partial lines."""
    axis, num_items = strategy.axis, strategy.columns[0]
    if axis is None:
        scan_parts(work, strategy)
        return
    line_bytes, joint_lines = num_items * work.item_bytes, 1
    if strategy.kernel == "columns":
        cut = tile_columns(
            *strategy.columns, records.register_dtype(work.problem.source), work.problem.acc
        )
        inner = work.order[work.order.index(axis) + 1 :]
        joint_lines = math.prod(work.shape[i] for i in inner) if cut.is_narrow else 1
    limit = BLOCK_BYTES if strategy.kernel == "tiles" else LINES_BYTES
    if joint_lines * line_bytes <= limit:
        _whole_lines(work, strategy, line_bytes, max(BLOCK_BYTES, joint_lines * line_bytes))
        return
    if strategy.kernel != "tiles":  # each as if it were the only line
        strategy = strategy._replace(kernel="tiles", num_bytes=num_items * work.widest)
    scan_parts(work, strategy)


def _whole_lines(work: Work, strategy: ScanStrategy, line_bytes: int, limit: int) -> None:
    axes = [axis for axis in work.order if axis != strategy.axis]
    blocks = list(host_whole.indices(work.shape, axes, line_bytes, limit))
    shapes = {work.arrays[0][block].shape for block in blocks}
    plans = {shape: work.plan(shape, strategy) for shape in shapes}
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
