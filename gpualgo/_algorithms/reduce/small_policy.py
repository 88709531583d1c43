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
from gpualgo._cuda.templates import VECTOR_BYTES, Access, functor, spec_of
from gpualgo._operators.operator import Operator

MOST_BLOCKS = 256  # two for each multiprocessor; the last joins the others


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallReducePolicy)."""

    block_threads: int
    loads: int  # vectors of a thread
    # Cycles from its own value until the last block looks for the others'. Bits do not follow it.
    wait: int

    def bytes_of(self, num_blocks: int) -> int:
        """Return how much so many blocks take of what is read 16 bytes at a time."""
        return num_blocks * self.block_threads * self.loads * VECTOR_BYTES

    def cpp(self, min_blocks: int) -> str:
        """Return the C++ type."""
        share = -(-(MOST_BLOCKS - 1) // self.block_threads)
        arguments = self.block_threads, self.loads, share, self.wait, min_blocks
        return f"gpualgo::SmallReducePolicy<{', '.join(map(str, arguments))}>"


# By the bytes of all elements that are read, up to. So a row is for as many blocks as they come to
# in vectors of 16 bytes: the first three for one, which waits for nobody. Positions are not read:
# they always go by the first row, in up to MOST_BLOCKS blocks. Records may come to more blocks than
# their row is for. The wait is that of the first row which is for as many blocks, too. It was
# chosen for float32; of positions, and records in two blocks, 0, 300 and 600 cycles took as long.
# µs of float32 on an H200, sum and lambda, which the kernel of many takes: 2^12 3.5, 3.5 (4.2,
# 4.3); 2^16 4.0, 4.1 (4.3, 4.5); 2^18 4.1, 4.2 (4.8, 4.9); 2^20 4.5, 4.6 (5.4, 5.5); 2^22 6.1, 7.2
# (7.1, 7.4). A wait that is too short costs up to 0.4 µs, 150 cycles too many 0.1: of 2^16 0, 150,
# 300, 450, 600 cycles take 4.1, 3.9, 4.0, 4.1, 4.1, of 2^18 4.4, 4.1, 4.1, 4.2, 4.3, of 2^20 4.9,
# 4.8, 4.7, 4.5, 4.6.
SMALL = {
    4 << 10: Small(128, 2, 0),
    16 << 10: Small(512, 2, 0),
    32 << 10: Small(512, 4, 0),
    256 << 10: Small(256, 1, 300),
    1 << 20: Small(256, 2, 300),
    4 << 20: Small(256, 4, 450),
    16 << 20: Small(512, 8, 600),
}
# Of narrower elements so many vectors would not fit in registers.
MANY_LOADS, MANY_LOADS_BYTES = 8, 4
SM_BLOCKS = 2  # of a multiprocessor at once, at most, as there are no more blocks


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
    if found.loads >= MANY_LOADS and policy.widest_read(source) < MANY_LOADS_BYTES:
        return None
    fitted = policy.for_records(policy.Policy(found.block_threads, found.loads, 1), source)
    found = replace(found, block_threads=fitted.block_threads, loads=fitted.loads)
    blocks = -(-(num_items // items) // (found.block_threads * found.loads))
    if blocks > MOST_BLOCKS:
        return None
    return SmallCut(replace(found, wait=_wait(num_bytes, blocks)), blocks)


def _wait(num_bytes: int, num_blocks: int) -> int:
    """Return the wait of the first row of the table that is for so many bytes and blocks."""
    return next(
        each.wait
        for most, each in SMALL.items()
        if max(num_bytes, each.bytes_of(num_blocks)) <= most
    )


def _min_blocks(source: Element, access: Access, found: Small) -> int:
    """Return how many blocks a multiprocessor must hold; 1 where registers would spill."""
    is_flat = access.cpp.startswith("FlatRows<T, true")
    return SM_BLOCKS if found.wait and is_flat and not records.is_record(source) else 1


def spec(op: Operator, source: Element, acc: np.dtype[Any], access: Access, found: Small) -> Spec:
    """Return the kernel that reduces a row through `access`."""
    element = records.cpp_name(source)
    expression = (
        f"gpualgo::reduce_small_kernel<{found.cpp(_min_blocks(source, access, found))}, "
        f"{functor(op, (acc, acc), acc)}, {records.cpp_name(acc)}, {element}, "
        f"gpualgo::{access.cpp.replace('T', element, 1)}>"
    )
    takes = parameters.small(source, acc, access.fields)
    return spec_of("reduce/small.cuh", expression, takes, op, acc, source)
