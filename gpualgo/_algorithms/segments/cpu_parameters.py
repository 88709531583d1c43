"""What the kernels of segments on the CPU take: sizes, and places in their table."""

from __future__ import annotations

TASK = 1 << 16  # elements and ends of segments that a task has
FAN = 8  # chains of a fold: no step of one waits for another's
CHAIN = 128  # elements of a chain, at most

# Offsets as int64, how many segments; whether there is a start, where, and how many elements behind
# it that of the next segment is (0: it begins all); of each task what it has of the segment that
# goes on into it, and of the one that goes on behind it, and whether there is any (a byte each).
OFFSETS, NUM_SEGMENTS, IS_START, START, START_STEP, HEADS, TAILS, HAS_HEAD, HAS_TAIL, X = range(10)
# Then an address of each of the element's numbers, and of each of the results'.
