"""Argument table of the kernels of a reduction by index on the CPU, and sizes."""

from __future__ import annotations

SHARE = 1 << 16  # minimum of elements per task; also four for each index
MOST_SHARES = 16
# With an init and at most this many tasks, one task folds elements into the results directly: 2^20
# float64 sums by 2^20 indices take 1.7 ms (8.9 with tables), by 2^16 1.3 (2.5 on two cores).
DIRECT_SHARES = 4
JOINED = 1 << 12  # indices of a task that joins tables

# Numbers of elements, of elements per task, of tasks and of results; whether there is an init, its
# address, and its step in elements (0: one for all results); addresses of indices, of tables and of
# their marks.
(NUM_ITEMS, SHARE_ITEMS, NUM_SHARES, SIZE, IS_START, START, START_STEP, INDICES, VALUES, MARKS,
 X) = range(11)  # fmt: skip
# Followed by the addresses of the element's fields and of the results' fields.
