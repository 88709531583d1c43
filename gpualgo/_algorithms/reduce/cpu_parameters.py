"""Argument tables of the two reduction kernels on the CPU, and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.parameters import LEAF

ROWS = 512  # rows folded into one row of partials
BATCH = 4  # rows folded at once while that many remain
CHUNK = 512  # elements that are computed before they are combined; a multiple of four
SLOTS = 64  # bytes for the addresses of an element's fields

# Indices of a kernel's argument table. After TAIL: the lengths of the kept, then of the reduced
# dimensions, then for each field the entries of `layout.leaf`, where results go, the strides of x
# and of out in the kept dimensions, and those of x in the reduced ones. COMPUTE: address of the
# function that computes elements; COMPUTED: its buffer.
(INIT, LENGTH, WIDTH, COUNT, TILES, TILE_MAJOR, KEPT, REDUCED, ROW_BYTES, INPUTS, COMPUTE,
 COMPUTED) = range(12)  # fmt: skip
TAIL = 12
(OUT, TILE_STRIDE, X_STRIDE, OUT_STRIDE, OUT_PACK, NUMBER) = range(LEAF, LEAF + 6)


def tile_of(acc: np.dtype[Any]) -> int:
    """Return the number of elements in a tile; its buffers stay in L1/L2."""
    return 4096 if acc.itemsize <= 16 else (1 << 16) // acc.itemsize // 64 * 64


def columns_of(acc: np.dtype[Any]) -> int:
    """Return how many columns are folded at once."""
    return 2048 if acc.itemsize <= 16 else (1 << 15) // acc.itemsize // 64 * 64


def level_of(acc: np.dtype[Any]) -> int:
    """Return the capacity of a tile's level buffer in elements."""
    return tile_of(acc) // 2 + 16


def scratch_bytes(acc: np.dtype[Any], column: bool) -> int:
    """Return a kernel's scratch bytes without those for packing and conversion."""
    size = sum(number.itemsize for number in records.field_dtypes(acc))
    if column:
        return SLOTS * BATCH + columns_of(acc) * size
    return SLOTS * 5 + 2 * level_of(acc) * size
