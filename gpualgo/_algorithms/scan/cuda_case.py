"""The input of a plan of a scan: lines, their elements, and their addresses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.scan.cuda_layout import Way, is_dense
from gpualgo._base import records
from gpualgo._base.extents import Dims
from gpualgo._cuda.plan import Places
from gpualgo._cuda.templates import VECTOR_BYTES
from gpualgo._driver import device as gpu
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]


@dataclass(frozen=True)
class Case:
    """One scan to plan. Strides and addresses are listed per input field, then per output field."""

    op: Operator
    source: Any  # Dtype, or Computed for scan_tiles_kernel and scan_wave_kernel
    acc: Dtype
    elements: Dims  # of a line, in scan order
    lines: Dims
    addresses: tuple[int, ...]  # of the first line's first element
    starts: tuple[int, ...]  # byte offset of that element from the array's first element
    is_exclusive: bool
    is_reversed: bool  # dense lines that the kernel walks from their ends
    device: int
    at: Places
    is_in_place: bool
    way: Way

    @property
    def num_items(self) -> int:
        return math.prod(extent for extent, _ in self.elements)

    @property
    def num_lines(self) -> int:
        return math.prod(extent for extent, _ in self.lines)

    @property
    def inner_lines(self) -> tuple[int, tuple[int, ...]]:
        """The dimension of lines that are closest together; extent 1 if there is only one line."""
        return self.lines[-1] if self.lines else (1, self.sizes)

    @property
    def num_inputs(self) -> int:
        return len(records.leaves(self.source))

    @property
    def sizes(self) -> tuple[int, ...]:
        return sizes_of(self.source, self.acc)

    @property
    def widest(self) -> int:
        return max(int(self.source.itemsize), self.acc.itemsize)

    @property
    def is_of_records(self) -> bool:
        """Whether elements have several fields or are computed from the input."""
        return records.is_record(self.acc) or records.is_record(self.source)

    @property
    def is_flat(self) -> bool:
        """Whether elements are numbers and lines are contiguous, at one fixed distance."""
        is_plain = not self.is_of_records and len(self.lines) <= 1
        return is_plain and is_dense(self.elements, self.sizes)

    @property
    def is_async(self) -> bool:
        return gpu.get(self.device).capability >= (8, 0)

    @property
    def is_apart(self) -> bool:
        """Whether each field is contiguous, with lines that start at multiples of a vector.

        False for reversed lines.
        """
        if not records.is_record(self.acc) or self.source != self.acc:
            return False
        bounds = [*self.addresses, *(stride for _, strides in self.lines for stride in strides)]
        return is_dense(self.elements, self.sizes) and math.gcd(*bounds) % VECTOR_BYTES == 0

    def is_whole(self, side: int) -> bool:
        """Whether input (side 0) or output records have the kernel's layout and vector alignment.

        False for reversed lines and for records with gaps.
        """
        leaves = self.num_inputs
        own = slice(leaves) if side == 0 else slice(leaves, None)
        numbers = records.leaves(self.acc)
        if len(numbers) != leaves or self.acc.itemsize != sum(one.itemsize for one in numbers):
            return False
        first = self.addresses[own][0]
        offsets = tuple(address - first for address in self.addresses[own])
        steps = {stride for _, strides in self.elements for stride in strides[own]}
        lines = [strides[own] for _, strides in self.lines]
        return (
            records.leaves(self.source) == numbers
            and offsets == records.offsets(self.acc)
            and self.acc.itemsize <= records.PIECE_BYTES
            and steps <= {self.acc.itemsize}
            and all(len(set(strides)) == 1 for strides in lines)
            and math.gcd(VECTOR_BYTES, first, *(strides[0] for strides in lines)) == VECTOR_BYTES
        )

    def unit(self, side: int, offsets: Iterable[int], start: int = 0) -> int:
        """Return the widest access, up to 16 bytes, aligned at `start` plus all `offsets`."""
        return math.gcd(VECTOR_BYTES, self.addresses[side] + start, *offsets)


def sizes_of(source: Dtype, acc: Dtype) -> tuple[int, ...]:
    """Return the item sizes of an element's fields, inputs then outputs."""
    return tuple(leaf.itemsize for leaf in (*records.leaves(source), *records.leaves(acc)))
