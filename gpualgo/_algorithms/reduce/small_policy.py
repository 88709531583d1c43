"""Tuning table of short reductions: one wave of blocks (reduce/small.cuh).

Tilings depend on length and dtypes only, never on the GPU, so that results have the same bits.
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

MOST_BLOCKS = 256  # two for each multiprocessor; the last block joins the partials


@dataclass(frozen=True)
class Small:
    """Template arguments of the kernel (SmallReducePolicy)."""

    block_threads: int
    loads: int  # vectors per thread
    # Cycles the last block waits before it polls the others' values. Does not affect the bits.
    wait: int

    def bytes_of(self, num_blocks: int) -> int:
        """Return the bytes that so many blocks read with 16-byte loads."""
        return num_blocks * self.block_threads * self.loads * VECTOR_BYTES

    def cpp(self, min_blocks: int) -> str:
        share = -(-(MOST_BLOCKS - 1) // self.block_threads)
        arguments = self.block_threads, self.loads, share, self.wait, min_blocks
        return f"gpualgo::SmallReducePolicy<{', '.join(map(str, arguments))}>"


# By the upper bound on the bytes that are read. A policy serves as many blocks as its bytes fill in
# vectors of 16 bytes; the first three serve one block, which waits for nobody. Index inputs are not
# read and always use the first policy, with up to MOST_BLOCKS blocks. Records may need more blocks
# than their policy serves; the wait is that of the first policy for as many blocks. Waits are tuned
# for float32; index inputs, and records in two blocks, take as long with 0, 300 and 600 cycles.
# µs of float32 on an H200 (general kernel):
#           2^12       2^16       2^18       2^20       2^22
#   sum     3.5 (4.2)  4.0 (4.3)  4.1 (4.8)  4.5 (5.4)  6.1 (7.1)
#   lambda  3.5 (4.3)  4.1 (4.5)  4.2 (4.9)  4.6 (5.5)  7.2 (7.4)
# µs by cycles of wait:
#           0    150  300  450  600
#   2^16    4.1  3.9  4.0  4.1  4.1
#   2^18    4.4  4.1  4.1  4.2  4.3
#   2^20    4.9  4.8  4.7  4.5  4.6
SMALL = {
    4 << 10: Small(128, 2, 0),
    16 << 10: Small(512, 2, 0),
    32 << 10: Small(512, 4, 0),
    256 << 10: Small(256, 1, 300),
    1 << 20: Small(256, 2, 300),
    4 << 20: Small(256, 4, 450),
    16 << 20: Small(512, 8, 600),
}
# With narrower elements so many vectors do not fit in registers.
MANY_LOADS, MANY_LOADS_BYTES = 8, 4
SM_BLOCKS = 2  # blocks per multiprocessor at most, since MOST_BLOCKS is two each


@dataclass(frozen=True)
class SmallCut:
    """Tiling of the elements over blocks."""

    policy: Small
    num_blocks: int


def cut(num_items: int, source: Element) -> SmallCut | None:
    """Return the tiling of one row, or None if it is not small."""
    items = policy.row_items(source)
    num_bytes = num_items * policy.bytes_read(source)
    small = next((candidate for limit, candidate in SMALL.items() if num_bytes <= limit), None)
    if small is None or num_items < items:
        return None
    if small.loads >= MANY_LOADS and policy.widest_read(source) < MANY_LOADS_BYTES:
        return None
    fitted = policy.for_records(policy.Policy(small.block_threads, small.loads, 1), source)
    small = replace(small, block_threads=fitted.block_threads, loads=fitted.loads)
    blocks = -(-(num_items // items) // (small.block_threads * small.loads))
    if blocks > MOST_BLOCKS:
        return None
    return SmallCut(replace(small, wait=_wait(num_bytes, blocks)), blocks)


def _wait(num_bytes: int, num_blocks: int) -> int:
    """Return the wait of the first policy that serves so many bytes and blocks."""
    return next(
        candidate.wait
        for limit, candidate in SMALL.items()
        if max(num_bytes, candidate.bytes_of(num_blocks)) <= limit
    )


def _min_blocks(source: Element, access: Access, small: Small) -> int:
    """Return how many blocks a multiprocessor must hold; 1 if registers would spill."""
    is_flat = access.cpp.startswith("FlatRows<T, true")
    return SM_BLOCKS if small.wait and is_flat and not records.is_record(source) else 1


def spec(op: Operator, source: Element, acc: np.dtype[Any], access: Access, found: Small) -> Spec:
    """Return the kernel that reduces a row through `access`."""
    element = records.cpp_name(source)
    expression = (
        f"gpualgo::reduce_small_kernel<{found.cpp(_min_blocks(source, access, found))}, "
        f"{functor(op, (acc, acc), acc)}, {records.cpp_name(acc)}, {element}, "
        f"gpualgo::{access.cpp.replace('T', element, 1)}>"
    )
    params = parameters.small(source, acc, access.fields)
    return spec_of("reduce/small.cuh", expression, params, op, acc, source)
