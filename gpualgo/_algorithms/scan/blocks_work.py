"""What scans by blocks share: the arrays of a call, memory for parts of them, how these travel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from gpualgo._base import records
from gpualgo._cuda.plan import Plan
from gpualgo._driver import staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_blocks
from gpualgo._pipeline.problem import Array, Start

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan

BLOCK_BYTES = 256 << 20  # of elements and results; what is smaller goes to the GPU as a whole


class Work(NamedTuple):
    """A scan of arrays of the host whose axes lie in an order in memory, if an axis is given."""

    problem: Scan
    arrays: list[Array]
    results: list[Array]
    op: Operator
    start: Start
    stream: int
    order: tuple[int, ...]  # of axes, outermost first
    written: host_blocks.Written

    @property
    def device(self) -> int:
        return self.problem.device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    @property
    def leaves(self) -> tuple[records.Dtype, ...]:
        """The numbers of an element and of a result."""
        return (*records.leaves(self.problem.source), *records.leaves(self.problem.acc))

    @property
    def item_bytes(self) -> int:
        return sum(leaf.itemsize for leaf in self.leaves)

    @property
    def widest(self) -> int:
        """The bytes of an element or of a result, whichever has more."""
        return int(max(self.problem.source.itemsize, self.problem.acc.itemsize))

    def memory(
        self, items: int, plans: Sequence[Plan]
    ) -> AbstractContextManager[tuple[list[int], host_blocks.Queue]]:
        """Take memory for so many elements and results."""
        sizes = [items * leaf.itemsize for leaf in self.leaves]
        return host_blocks.memory(self.device, self.stream, sizes, plans)

    def upload(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        for each, address in zip(parts, memory, strict=False):
            staging.upload_all(each, address, self.device, self.stream)

    def download(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        self.written.has_begun = True
        for each, address in zip(parts, memory[len(self.arrays) :], strict=True):
            staging.download_all(address, each, self.device, self.stream)
