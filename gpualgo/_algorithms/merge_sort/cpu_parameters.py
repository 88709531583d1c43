"""What the kernels of a merge sort on the CPU take: sizes, and places in their table."""

from __future__ import annotations

from typing import Any

import numpy as np

RUN = 8  # elements that are put in order by insertion
BLOCK_BYTES = 1 << 17  # of keys and values that a thread sorts by itself: with a copy they fit L2
PIECE_ITEMS = 1 << 14  # that are merged at once

# Sorting blocks: where rows are read and written, keys and values (VALUES 0: positions are made);
# how long a row is, and a block, and how many blocks a row has.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, ROW_ITEMS, BLOCK, BLOCKS = range(7)

# Merging pairs of runs: keys and values of each first and second run, and where they go; how long a
# row is and its first and second runs at most; how far behind a pair's begin its second run begins;
# how many pairs a row has, and pieces a pair.
(A_KEYS, A_VALUES, B_KEYS, B_VALUES, TO_KEYS, TO_VALUES, LENGTH, FIRST, SECOND, SECOND_BEGIN, PAIRS,
 PIECES) = range(12)  # fmt: skip


def block_items(key: np.dtype[Any], value_bytes: int) -> int:
    """Return how many elements a thread sorts by itself: RUN, doubled some times."""
    items = RUN
    while 2 * items * (key.itemsize + value_bytes) <= BLOCK_BYTES:
        items *= 2
    return items
