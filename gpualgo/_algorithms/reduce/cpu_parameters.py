"""What the two kernels of a reduction on the CPU take: sizes, and places in their table."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.parameters import LEAF

ROWS = 512  # rows folded one after another into a block's partials
BATCH = 4  # rows folded at once, where so many are left
CHUNK = 512  # elements that are computed before any is combined; a multiple of four
SLOTS = 64  # bytes for the addresses of an element's numbers

# Places in a kernel's table of arguments; after TAIL come lengths of the kept dimensions, then of
# the reduced ones, and then, for each number that is read or written, what `layout.leaf` tells and
# where results go, strides of x and of out in the kept dimensions, and strides of x in the reduced
# ones. COMPUTE: the address of what makes elements of the numbers that are read, and its memory.
(INIT, LENGTH, WIDTH, COUNT, TILES, TILE_MAJOR, KEPT, REDUCED, ROW_BYTES, INPUTS, COMPUTE,
 COMPUTED) = range(12)  # fmt: skip
TAIL = 12
(OUT, TILE_STRIDE, X_STRIDE, OUT_STRIDE, OUT_PACK, NUMBER) = range(LEAF, LEAF + 6)


def tile_of(acc: np.dtype[Any]) -> int:
    """Return how many elements are folded at once; the buffers of a tile stay in L1/L2."""
    return 4096 if acc.itemsize <= 16 else (1 << 16) // acc.itemsize // 64 * 64


def columns_of(acc: np.dtype[Any]) -> int:
    """Return how many columns are folded at once."""
    return 2048 if acc.itemsize <= 16 else (1 << 15) // acc.itemsize // 64 * 64


def level_of(acc: np.dtype[Any]) -> int:
    """Return for how many elements a level of a tile has memory."""
    return tile_of(acc) // 2 + 16


def scratch_bytes(acc: np.dtype[Any], column: bool) -> int:
    """Return how much scratch memory a kernel needs, what it packs and converts left out."""
    size = sum(number.itemsize for number in records.leaves(acc))
    if column:
        return SLOTS * BATCH + columns_of(acc) * size
    return SLOTS * 5 + 2 * level_of(acc) * size
