"""Where the kernel of short segments finds what it is told; and how they are cut."""

KEYS, ENDS, BOUNDS = range(3)  # addresses

SHORT = 48  # elements of a segment that is sorted by insertion, at most
TASK = 1 << 15  # elements and segments
