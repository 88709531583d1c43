"""What the functions of a scan on the CPU take: sizes, and places in their tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.parameters import LEAF

COLUMNS = 256  # columns gone down at once
ABREAST = 4  # strips at once, as each step of one waits for its last; and tiles in a link
SLOTS = 64  # bytes for the addresses of an element's numbers

# Places in a kernel's table of arguments; its functions' follow at CHAIN_TAIL. A task is a link
# of a chain, and the next one to be taken is NEXT.
(AGGREGATE, FOLD, EMIT, NEXT, TASKS, CHAINS, LINKS, LINK_MAJOR) = range(8)
(FLAGS, AGGREGATES, AGGREGATE_BYTES, PREFIX_BYTES, SCRATCH_BYTES, PATIENCE) = range(8, 14)
CHAIN_TAIL = 14

# Places in the functions' own tables, for strips and for columns.
(INIT, LENGTH, TILE, OUTER) = range(4)

# Strips: a link is SPAN of them, X_JUMP bytes after one another. After the tail come lists with a
# word for each of an element's numbers, then lengths of the outer dimensions, then in these the
# strides of each number of x, and of each of out.
(IS_CUT, STRIPS, SPAN, STRIPS_TAIL) = range(4, 8)
(X, OUT, X_STEP, OUT_STEP, X_JUMP, OUT_JUMP, LISTS) = range(7)

# Columns: after the tail come lengths of the outer dimensions, then, for each of an element's
# numbers, what `layout.leaf` tells and where results go, and strides of x and of out in these.
(WIDTH, COLUMNS_TAIL) = range(4, 6)
(OUT_AT, DOWN, OUT_DOWN, ACROSS, OUT_ACROSS, OUT_PACK, NUMBER) = range(LEAF, LEAF + 7)


def columns_scratch(acc: np.dtype[Any]) -> int:
    """Return how much scratch memory columns need, what they pack and convert left out."""
    return 3 * SLOTS + COLUMNS * sum(number.itemsize for number in records.leaves(acc))
