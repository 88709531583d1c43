"""Argument table of the kernels of segments on the CPU, and sizes."""

from __future__ import annotations

TASK = 1 << 16  # elements plus segment ends per task
FAN = 8  # independent chains of a fold
CHAIN = 128  # maximum of elements per chain

# Offsets as int64, number of segments; whether there is an init, its address, and its step in
# elements (0: one for all segments); for each task its part of the segment continued from the
# previous task (head) and of the one continued in the next (tail), and whether it has them (a byte
# each); number of tasks.
(OFFSETS, NUM_SEGMENTS, IS_START, START, START_STEP, HEADS, TAILS, HAS_HEAD, HAS_TAIL, NUM_TASKS,
 X) = range(11)  # fmt: skip
# Followed by the addresses of the element's fields and of the results' fields.
