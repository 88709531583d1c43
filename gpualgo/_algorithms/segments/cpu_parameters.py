"""What the kernels of segments on the CPU take: sizes, and places in their table."""

from __future__ import annotations

TASK = 1 << 16  # elements and ends of segments that a task has
FAN = 8  # chains of a fold: no step of one waits for another's
CHAIN = 128  # elements of a chain, at most

# Offsets as int64, how many segments; whether there is a start value, where, and whether it begins
# every segment; of each task what it has of the segment that goes on into it, and of the one that
# goes on behind it, and whether there is any (a byte each).
OFFSETS, NUM_SEGMENTS, IS_START, START, HEADS, TAILS, HAS_HEAD, HAS_TAIL, X = range(9)
# Then an address of each of the element's numbers, and of each of the results'.
