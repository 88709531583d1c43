"""The input of a plan of a transformation, and the chosen kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._base import records
from gpualgo._base.strides import Dims
from gpualgo._cuda import build


class Case(NamedTuple):
    """One transformation to plan; dimensions have a stride for each output, then each input."""

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
        """Return the greatest alignment, up to 16 bytes, of the operands in bit mask `dense`."""
        multiples = [
            number
            for i, dtype in enumerate(self.operands)
            if dense >> i & 1 and dtype not in (records.POSITION, records.SHARED_POSITION)
            for number in (self.pointers[i], *(strides[i] for _, strides in dims))
        ]
        return math.gcd(16, *multiples)


class Cut(NamedTuple):
    """A kernel, its number of blocks, and its parameters."""

    spec: build.Spec
    blocks: int
    fixed: dict[str, Any]
    # outputs, inputs whose addresses are passed, if not all
    firsts: tuple[Sequence[int], Sequence[int]] = ((), ())
