"""Argument table slots of the kernel for short segments, and sizes."""

KEYS, ENDS, BOUNDS = range(3)  # addresses

SHORT = 48  # most elements of a segment that is sorted by insertion
TASK = 1 << 15  # elements and segments per task
