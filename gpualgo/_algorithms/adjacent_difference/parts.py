"""Slices along an axis: op of later and earlier elements gives all results but the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._pipeline.problem import Array


class Parts(NamedTuple):
    """Index tuples that slice an array along an axis."""

    first: Any
    later: Any  # all but the first
    earlier: Any  # all but the last

    @classmethod
    def along(cls, axis: int) -> Parts:
        """Return the slices along an axis."""
        lead = (slice(None),) * axis
        return cls(*((*lead, slice(*ends)) for ends in ((0, 1), (1, None), (None, -1))))

    def cut(
        self, arrays: Sequence[Array], outs: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        """Return op's operands, later elements before earlier ones, and the results' views."""
        _, later, earlier = self
        if len(arrays) == 1:  # the usual case, which each warm call takes
            return [arrays[0][later], arrays[0][earlier]], [outs[0][later]]
        operands = [array[part] for part in (later, earlier) for array in arrays]
        return operands, [out[later] for out in outs]

    def copy_first(self, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        """Convert and copy the first elements of all lines."""
        first = self.first
        for array, out in zip(arrays, outs, strict=True):
            if array.dtype == out.dtype:
                out[first] = array[first]
                continue
            with np.errstate(all="ignore"):  # kernels do not warn
                np.copyto(out[first], array[first], casting="unsafe")
