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
    """Scan lines in parts, one line after the other or neighbouring lines together."""
    if strategy.is_reverse:  # a reversed scan starts at the last element
        work = work._replace(
            arrays=[np.flip(x, strategy.axis) for x in work.arrays],
            results=[np.flip(x, strategy.axis) for x in work.results],
        )
    cut = _Cut(work, strategy._replace(is_reverse=False))
    with work.memory(cut.most_items, list(cut.plans.values())) as (memory, queue):
        for group in cut.groups:
            cut.scan(group, memory, queue)
        driver.synchronize(work.stream)


class _Cut:
    """Parts of lines: their lengths, and their plans.

    On the device a part is a matrix with one column for each line.
    """

    def __init__(self, work: Work, strategy: ScanStrategy) -> None:
        self.work, self.axis, self.is_exclusive = work, strategy.axis, strategy.is_exclusive
        self.strategy = strategy._replace(axis=None)
        shape = work.shape
        self.num_items = math.prod(shape) if strategy.axis is None else shape[strategy.axis]
        self.groups = list(self._groups())
        widths = {self.width_of(group) for group in self.groups}
        tile = tuning.policy_of(strategy.num_bytes, work.problem.source, work.problem.acc)
        items = tile.tile_items(work.widest)
        row_bytes = max(widths) * work.item_bytes
        step = max(1, BLOCK_BYTES // (row_bytes * items)) * items
        self.parts = [(lo, min(lo + step, self.num_items)) for lo in range(0, self.num_items, step)]
        self.most_items = max(widths) * min(step + 1, self.num_items)
        self.plans: dict[tuple[int, int, bool], Plan] = {}
        for width in widths:
            for part in self.parts:
                for count, is_exclusive in self._scans(*part):
                    self._plan(count, width, is_exclusive)

    def _groups(self) -> Iterator[Index]:
        """Yield groups of neighbouring lines that are scanned together."""
        work = self.work
        if self.axis is None:
            yield tuple(slice(0, extent) for extent in work.shape)
            return
        depth = work.order.index(self.axis)
        for outer in host_whole.indices(work.shape, work.order[:depth], 1, 1):
            for inner in host_whole.indices(work.shape, work.order[depth + 1 :], 1, MOST_LINES):
                yield tuple(
                    outer_slice if work.order.index(i) < depth else inner_slice
                    for i, (outer_slice, inner_slice) in enumerate(zip(outer, inner, strict=True))
                )

    def width_of(self, group: Index) -> int:
        return int(math.prod(s.stop - s.start for s in group) // self.num_items)

    def _scans(self, start: int, end: int) -> list[tuple[int, bool]]:
        """Return the scans of a part as (number of elements, is_exclusive)."""
        carries = [(end - start + 1, True)] if end < self.num_items else []
        if carries and self.is_exclusive:
            return carries
        return [*carries, (end - start, self.is_exclusive)]

    def _plan(self, count: int, width: int, is_exclusive: bool) -> Plan:
        """Return the plan for one line of a part; all its lines share it."""
        key = count, width, is_exclusive
        if key not in self.plans:
            work = self.work
            views = [
                view._replace(strides=(view.dtype.itemsize * width,))
                for view in host_whole.placeholder_views(work.leaves, (count,), work.device)
            ]
            sides = views[: len(work.arrays)], views[len(work.arrays) :]
            strategy = self.strategy._replace(is_exclusive=is_exclusive)
            self.plans[key] = cuda.plan_of(work.problem, sides[0], work.op, sides[1], strategy)
        return self.plans[key]

    def scan(self, group: Index, memory: Sequence[int], queue: host_whole.Queue) -> None:
        work, width = self.work, self.width_of(group)
        sizes = [field.itemsize for field in work.leaves]
        lines = [
            [address + line * size for address, size in zip(memory, sizes, strict=True)]
            for line in range(width)
        ]
        starts = [work.start] * width
        for start, end in self.parts:
            upload_end = min(end + 1, self.num_items)
            work.upload([self._part(x, group, start, upload_end) for x in work.arrays], memory)
            next_starts = starts
            for count, is_exclusive in self._scans(start, end):
                for addresses, line_start in zip(lines, starts, strict=True):
                    plan = self._plan(count, width, is_exclusive)
                    queue(plan, *addresses, words=work.op.words, start=line_start)
                if count > end - start:
                    next_starts = self._fetch_carries(memory, (end - start) * width, width)
            starts = next_starts
            work.download([self._part(x, group, start, end) for x in work.results], memory)

    def _part(self, x: Array, group: Index, start: int, end: int) -> list[Array]:
        if self.axis is None:
            return staging.stretch(x, start, end)
        index = list(group)
        index[self.axis] = slice(start, end)
        return [x[tuple(index)].transpose(self.work.order)]

    def _fetch_carries(self, memory: Sequence[int], first: int, count: int) -> list[Start]:
        """Wait for `count` results from index `first` on; return them as initial values."""
        work, acc = self.work, self.work.problem.acc
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
        or isinstance(problem.source, records.Computed)
        or any(map(records.is_position, fields))
    ):
        return False
    if sum(x.nbytes for x in (*arrays, *results)) <= BLOCK_BYTES:
        return False
    sources, targets = host_whole.views_if_whole(arrays, results, places, problem.device)
    strategy = strategy_of(problem, problem.source, sources, targets)
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
    plans = {}
    for shape in shapes:
        views = [
            view._replace(strides=ordered_strides(shape, view.dtype.itemsize, work.order))
            for view in host_whole.placeholder_views(work.leaves, shape, work.device)
        ]
        sides = views[: len(work.arrays)], views[len(work.arrays) :]
        plans[shape] = cuda.plan_of(work.problem, sides[0], work.op, sides[1], strategy)
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
