"""Layout of the argument tables of the CPU's scan functions, and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._cpu.parameters import LEAF

COLUMNS = 256  # columns scanned together
ABREAST = 4  # strips scanned together to hide the latency of op; also tiles per link
SLOTS = 64  # bytes for the addresses of an element's fields

# Indices of a kernel's argument table; the functions' own table follows at CHAIN_TAIL. A task is a
# link of a chain; NEXT is the next one to take.
(AGGREGATE, FOLD, EMIT, NEXT, TASKS, CHAINS, LINKS, LINK_MAJOR) = range(8)
(FLAGS, AGGREGATES, AGGREGATE_BYTES, PREFIX_BYTES, SCRATCH_BYTES, MOST_POLLS) = range(8, 14)
CHAIN_TAIL = 14

# Indices of the functions' own tables, for strips and for columns.
(INIT, LENGTH, TILE, OUTER) = range(4)

# Strips: a link is SPAN of them, X_JUMP bytes apart. After the tail: lists with one word per field
# of an element, then the lengths of the outer dimensions, then their strides for each field of x
# and each of out.
(IS_CUT, STRIPS, SPAN, STRIPS_TAIL) = range(4, 8)
(X, OUT, X_STEP, OUT_STEP, X_JUMP, OUT_JUMP, LISTS) = range(7)

# Columns: after the tail: lengths of the outer dimensions, then for each field the entries of
# `layout.leaf`, where results go, and the strides of x and of out in the outer dimensions.
(WIDTH, COLUMNS_TAIL) = range(4, 6)
(OUT_AT, DOWN, OUT_DOWN, ACROSS, OUT_ACROSS, OUT_PACK, NUMBER) = range(LEAF, LEAF + 7)


def columns_scratch(acc: np.dtype[Any]) -> int:
    """Return the scratch bytes of columns without those for packing and conversion."""
    return 3 * SLOTS + COLUMNS * sum(number.itemsize for number in records.field_dtypes(acc))
