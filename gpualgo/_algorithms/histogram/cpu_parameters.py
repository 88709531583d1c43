"""Argument table slots and sizes of the counting kernel of a histogram and its stages."""

from __future__ import annotations

MOST = 2048  # samples per call of a stage; buffers stay in L1

# The table of arguments. After TAIL follow lengths and strides of the dimensions between groups of
# rows, then those of the dimensions within a group.
(X, X_SIZE, LENGTH, GROUPS, SPLIT, STEP, STAGE, STAGE_TABLE, PACK) = range(9)
(TABLES, GROUP_ROWS, COPIES, SLOTS, TARGET, BINS, BIN_OF_SLOT, OUTER, INNER, TAIL) = range(9, 19)

# Scratch memory: slots and samples of one run, then the tables.
BUFFER = 4 * MOST
HEAD_BYTES = BUFFER + 8 * MOST

# Table entries of the stages for even bins and for a search, 8 bytes each.
(ORIGIN, SCALE, LAST, OUTSIDE) = range(4)
(START, WIDTH, LO, HI) = range(4, 8)
(CELLS, VALUES, NUM_VALUES, LEVELS, UPPER) = range(4, 9)
