"""Scan: which kernel, which template arguments, how the work is cut. One table.

The tile depends on lengths and types alone, never on the GPU, so that neither do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo import _dtypes
from gpualgo._cuda.build import Spec
from gpualgo._cuda.reduce_policy import VECTOR_BYTES, WARP, functor, spec_of
from gpualgo._operator import Operator

STAGES = 3  # of scan.cuh
WINDOW = 2 * WARP  # tiles whose aggregates a warp reads at once
DIRECT_TILES = 256  # of a line: up to here each block folds what precedes it itself


@dataclass(frozen=True)
class Policy:
    """Template arguments of scan_tiles_kernel (ScanPolicy of scan.cuh)."""

    block_threads: int
    vectors: int  # of 16 bytes per thread and tile; odd, so that shared memory has no conflicts
    blocks_per_sm: int
    is_bulk: bool  # copies in bulk, where the GPU can

    def lane_items(self, widest: int) -> int:
        """Return how many elements of a tile each thread scans."""
        return self.vectors * (VECTOR_BYTES // widest)

    def tile_items(self, widest: int) -> int:
        """Return how many elements a tile has."""
        return self.block_threads * self.lane_items(widest)

    def shared_bytes(self, source: np.dtype[Any], acc: np.dtype[Any]) -> int:
        """Return the size of ScanShared (scan.cuh), which checks it, with its padding."""
        items = self.tile_items(max(source.itemsize, acc.itemsize))
        results = 0 if source.itemsize == acc.itemsize else items * acc.itemsize
        warps = self.block_threads // WARP
        values = 2 * WINDOW + STAGES * self.block_threads + warps + STAGES + 1
        others = values * acc.itemsize + 8 * STAGES * warps + 112
        return int(STAGES * items * source.itemsize + results + others)


# By the bytes of all lines: GB/s at 2^28 on an H200. Two blocks' stages fill shared memory.
LARGE = Policy(256, 9, 2, True)  # 3870 (float32)
LARGE_WIDE = Policy(192, 11, 2, True)  # 8 bytes and more: 3740 (float64)
# Up to so many bytes.
SMALLER = {
    384 << 10: Policy(256, 3, 4, False),
    3 << 19: Policy(256, 5, 3, False),
    32 << 20: Policy(256, 7, 3, False),
}


def tiles_policy(num_bytes: int, widest: int) -> Policy:
    """Return the policy of scan_tiles_kernel for so many bytes of the wider of both types."""
    large = LARGE if widest <= 4 else LARGE_WIDE
    return next((smaller for most, smaller in SMALLER.items() if num_bytes <= most), large)


def transfer(policy: Policy, capability: tuple[int, int]) -> str:
    """Return how elements travel (Transfer of scan_tile.cuh)."""
    if capability < (8, 0):
        return "direct"
    return "bulk" if capability >= (9, 0) and policy.is_bulk else "asynchronous"


def state_words(acc: np.dtype[Any]) -> int:
    """Return how many tagged words a value takes (lookback.cuh)."""
    return -(-acc.itemsize // 4)


def flat(source: np.dtype[Any], acc: np.dtype[Any], alignments: tuple[int, int], is_reversed: bool
) -> str:  # fmt: skip
    """Return the access to lines without gaps; alignments of input and output in bytes."""
    types = f"{_dtypes.cpp_name(acc)}, {_dtypes.cpp_name(source)}"
    widths = [
        VECTOR_BYTES if alignment % VECTOR_BYTES == 0 else dtype.itemsize
        for alignment, dtype in zip(alignments, (source, acc), strict=True)
    ]
    return f"gpualgo::FlatLines<{types}, {widths[0]}, {widths[1]}, {str(is_reversed).lower()}>"


def strided(source: np.dtype[Any], acc: np.dtype[Any]) -> str:
    """Return the access to lines of any strides."""
    return f"gpualgo::StridedLines<{_dtypes.cpp_name(acc)}, {_dtypes.cpp_name(source)}>"


def tiles_spec(
    op: Operator, source: np.dtype[Any], acc: np.dtype[Any], access: str, policy: Policy,
    is_exclusive: bool, transfer: str,
) -> Spec:  # fmt: skip
    """Return the kernel that scans few long lines."""
    arguments = (
        policy.block_threads, policy.vectors, f"gpualgo::Transfer::{transfer}",
        policy.blocks_per_sm, policy.shared_bytes(source, acc),
    )  # fmt: skip
    expression = (
        f"gpualgo::scan_tiles_kernel<gpualgo::ScanPolicy<{', '.join(map(str, arguments))}>, "
        f"{str(is_exclusive).lower()}, {functor(op, (acc, acc), acc)}, "
        f"{_dtypes.cpp_name(acc)}, {_dtypes.cpp_name(source)}, {access}>"
    )
    return spec_of("scan.cuh", expression, op, acc)
