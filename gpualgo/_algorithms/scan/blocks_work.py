"""Shared by block-wise scans: the arrays of a call, device memory for a part, and copies."""

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
    written: host_blocks.WriteState

    @property
    def device(self) -> int:
        return self.problem.device

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    @property
    def leaves(self) -> tuple[records.Dtype, ...]:
        """The dtypes of an element's and of a result's fields."""
        return (*records.leaves(self.problem.source), *records.leaves(self.problem.acc))

    @property
    def item_bytes(self) -> int:
        return sum(leaf.itemsize for leaf in self.leaves)

    @property
    def widest(self) -> int:
        """The larger of an element's and a result's bytes."""
        return int(max(self.problem.source.itemsize, self.problem.acc.itemsize))

    def memory(
        self, items: int, plans: Sequence[Plan]
    ) -> AbstractContextManager[tuple[list[int], host_blocks.Queue]]:
        """Allocate device memory for `items` elements and results."""
        sizes = [items * leaf.itemsize for leaf in self.leaves]
        return host_blocks.memory(self.device, self.stream, sizes, plans)

    def upload(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        for part, address in zip(parts, memory, strict=False):
            staging.upload_all(part, address, self.device, self.stream)

    def download(self, parts: Sequence[Sequence[Array]], memory: Sequence[int]) -> None:
        self.written.has_begun = True
        for part, address in zip(parts, memory[len(self.arrays) :], strict=True):
            staging.download_all(address, part, self.device, self.stream)
