"""What the counting kernel of a histogram and its stages take: sizes, places in their tables."""

from __future__ import annotations

MOST = 2048  # samples that go through a stage at once: buffers stay in L1

# Places in the table of arguments; after TAIL come, of the dimensions that tell groups of rows
# apart, lengths and strides, then the same of the dimensions within a group.
(X, X_SIZE, LENGTH, GROUPS, SPLIT, STEP, STAGE, STAGE_TABLE, PACK) = range(9)
(TABLES, GROUP_ROWS, COPIES, SLOTS, TARGET, BINS, BIN_OF_SLOT, OUTER, INNER, TAIL) = range(9, 19)

# Scratch memory: slots and samples of one run, then the tables.
BUFFER = 4 * MOST
HEAD_BYTES = BUFFER + 8 * MOST

# Places in the tables of the stages for even bins and for a search, 8 bytes each.
(ORIGIN, SCALE, LAST, OUTSIDE) = range(4)
(START, WIDTH, LO, HI) = range(4, 8)
(CELLS, VALUES, NUM_VALUES, LEVELS, UPPER) = range(4, 9)
