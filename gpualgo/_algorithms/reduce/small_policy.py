"""Reductions of few elements: one wave of blocks (reduce/small.cuh).

The cut depends on length and types alone, never on the GPU, so that neither do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import parameters, policy
from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.templates import Access, functor, spec_of
from gpualgo._operators.operator import Operator

MOST_BLOCKS = 256  # two for each multiprocessor; the last joins the others


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallReducePolicy)."""

    block_threads: int
    loads: int  # vectors of a thread
    wait: int = 300  # cycles before the last block looks
    looks: int = 2  # under way at once
    gap: int = 150  # cycles between them

    def cpp(self, min_blocks: int) -> str:
        """Return the C++ type."""
        share = -(-(MOST_BLOCKS - 1) // self.block_threads)
        arguments = (
            self.block_threads, self.loads, share, self.wait, self.looks, self.gap, min_blocks,
        )  # fmt: skip
        return f"gpualgo::SmallReducePolicy<{', '.join(map(str, arguments))}>"


# By the bytes of all elements, up to.
SMALL = {
    16 << 10: Small(512, 2),
    256 << 10: Small(256, 1),
    1 << 20: Small(256, 2),
    4 << 20: Small(256, 4),
    16 << 20: Small(512, 8),
}


@dataclass(frozen=True)
class SmallCut:
    """How the elements are shared out among blocks."""

    policy: Small
    num_blocks: int


def cut(num_items: int, source: Element) -> SmallCut | None:
    """Return the cut of one row; None if it is not small."""
    items = policy.row_items(source)
    num_bytes = num_items * policy.bytes_read(source)
    found = next((each for most, each in SMALL.items() if num_bytes <= most), None)
    if found is None or num_items < items:
        return None
    fitted = policy.for_records(policy.Policy(found.block_threads, found.loads, 1), source)
    found = replace(found, block_threads=fitted.block_threads, loads=fitted.loads)
    blocks = -(-(num_items // items) // (found.block_threads * found.loads))
    return SmallCut(found, blocks) if blocks <= MOST_BLOCKS else None


def _min_blocks(source: Element, is_flat: bool, found: Small) -> int:
    """Return how many blocks a multiprocessor must hold at least."""
    if records.is_record(source) or not is_flat:
        return 1
    return max(1, 1024 // found.block_threads)


def spec(op: Operator, source: Element, acc: np.dtype[Any], access: Access, found: Small) -> Spec:
    """Return the kernel that reduces a row through `access`."""
    element, is_flat = records.cpp_name(source), access.cpp.startswith("FlatRows")
    expression = (
        f"gpualgo::reduce_small_kernel<{found.cpp(_min_blocks(source, is_flat, found))}, "
        f"{functor(op, (acc, acc), acc)}, {records.cpp_name(acc)}, {element}, "
        f"gpualgo::{access.cpp.replace('T', element, 1)}>"
    )
    takes = parameters.small(source, acc, access.fields)
    return spec_of("reduce/small.cuh", expression, takes, op, acc, source)
