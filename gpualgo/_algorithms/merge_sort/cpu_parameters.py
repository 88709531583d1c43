"""Argument table slots and sizes of the merge sort's CPU kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

RUN = 8  # elements sorted by insertion
BLOCK_BYTES = 1 << 17  # of a block that one thread sorts; with a copy it fits L2
PIECE_ITEMS = 1 << 14  # elements merged by one task

# Sorting blocks: addresses of keys, values and outputs (VALUES 0: positions are generated); the
# lengths of a row and of a block, and the blocks per row.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, ROW_ITEMS, BLOCK, BLOCKS = range(7)

# Merging pairs of runs: addresses of both runs' keys and values, and of the outputs; the length of
# a row, the maximum lengths of first and second runs, the distance between their starts, pairs per
# row and pieces per pair.
(A_KEYS, A_VALUES, B_KEYS, B_VALUES, TO_KEYS, TO_VALUES, LENGTH, FIRST, SECOND, SECOND_BEGIN, PAIRS,
 PIECES) = range(12)  # fmt: skip


def block_items(key: np.dtype[Any], value_bytes: int) -> int:
    """Return the block size: the largest RUN · 2^i whose keys and values fit BLOCK_BYTES."""
    items = RUN
    while 2 * items * (key.itemsize + value_bytes) <= BLOCK_BYTES:
        items *= 2
    return items
