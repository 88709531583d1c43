"""What a plan of a transformation is for, and the kernel that it comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.transform.policy import Applied
from gpualgo._base import records
from gpualgo._base.extents import Dims
from gpualgo._cuda import build


class Case(NamedTuple):
    """What a plan is for; dimensions have a stride for each output and then each input."""

    applied: Applied
    operands: tuple[np.dtype[Any], ...]
    pointers: tuple[int, ...]
    dims: Dims

    @property
    def num_outputs(self) -> int:
        return len(self.applied.outputs)

    @property
    def num_items(self) -> int:
        return math.prod(extent for extent, _ in self.dims)

    def alignment(self, dense: int, dims: Dims) -> int:
        """Return what the first of neighbours are multiples of, in operands that have any."""
        found = [
            number
            for i, dtype in enumerate(self.operands)
            if dense >> i & 1 and dtype not in (records.POSITION, records.SHARED_POSITION)
            for number in (self.pointers[i], *(strides[i] for _, strides in dims))
        ]
        return math.gcd(16, *found)


class Cut(NamedTuple):
    """A kernel, how many blocks it takes, and what it is told."""

    spec: build.Spec
    blocks: int
    fixed: dict[str, Any]
    firsts: tuple[Sequence[int], Sequence[int]] = ((), ())  # outputs, inputs that are told, if few
