"""Scans of partial lines: each part begins at a tile and continues from the prefix before it.

Tiles of long lines are folded from left to right. The prefix before a tile is an initial value like
`init`, so results have the bits of a scan of the whole line. That prefix is the exclusive result of
the element after the block, which is uploaded too. An inclusive scan of a block is therefore
preceded by an exclusive one, of which one value is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.scan import blocks_work, cuda, policy
from gpualgo._algorithms.scan.blocks_work import Work
from gpualgo._algorithms.scan.cuda_layout import Way
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._pipeline import host_blocks
from gpualgo._pipeline.host_blocks import Index
from gpualgo._pipeline.problem import Array, Start

MOST_LINES = 64  # neighbouring lines that are scanned together


def scan(work: Work, way: Way) -> None:
    """Scan lines in parts, one line after the other or neighbouring lines together."""
    if way.is_reverse:  # a reversed scan starts at the last element
        work = work._replace(
            arrays=[np.flip(x, way.axis) for x in work.arrays],
            results=[np.flip(x, way.axis) for x in work.results],
        )
    cut = _Cut(work, way._replace(is_reverse=False))
    with work.memory(cut.most_items, list(cut.plans.values())) as (memory, queue):
        for group in cut.groups:
            cut.scan(group, memory, queue)
        driver.synchronize(work.stream)


class _Cut:
    """Parts of lines: their lengths, and their plans.

    On the device a part is a matrix with one column for each line.
    """

    def __init__(self, work: Work, way: Way) -> None:
        self.work, self.axis, self.is_exclusive = work, way.axis, way.is_exclusive
        self.way = way._replace(axis=None)
        shape = work.shape
        self.num_items = math.prod(shape) if way.axis is None else shape[way.axis]
        self.groups = list(self._groups())
        widths = {self.width_of(group) for group in self.groups}
        tile = policy.policy_of(way.num_bytes, work.problem.source, work.problem.acc)
        items = tile.tile_items(work.widest)
        row_bytes = max(widths) * work.item_bytes
        step = max(1, blocks_work.BLOCK_BYTES // (row_bytes * items)) * items
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
        for outer in host_blocks.indices(work.shape, work.order[:depth], 1, 1):
            for inner in host_blocks.indices(work.shape, work.order[depth + 1 :], 1, MOST_LINES):
                yield tuple(
                    outer_slice if work.order.index(i) < depth else inner_slice
                    for i, (outer_slice, inner_slice) in enumerate(zip(outer, inner, strict=True))
                )

    def width_of(self, group: Index) -> int:
        """Return the number of lines in a group."""
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
                for view in host_blocks.dense(work.leaves, (count,), work.device)
            ]
            sides = views[: len(work.arrays)], views[len(work.arrays) :]
            way = self.way._replace(is_exclusive=is_exclusive)
            self.plans[key] = cuda.plan_of(work.problem, sides[0], work.op, sides[1], way)
        return self.plans[key]

    def scan(self, group: Index, memory: Sequence[int], queue: host_blocks.Queue) -> None:
        """Scan the lines of a group, part by part."""
        work, width = self.work, self.width_of(group)
        sizes = [leaf.itemsize for leaf in work.leaves]
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
            leaf = acc if name is None else acc[name]
            values = np.empty(count, leaf)
            staging.fetch(
                address + first * leaf.itemsize, values.ctypes.data, values.nbytes, work.stream
            )
            driver.synchronize(work.stream)
            (carries if name is None else carries[name])[...] = values
        return [(carry.tobytes(), 1, 0, 0) for carry in np.split(carries, count)]
