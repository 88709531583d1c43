"""What the kernel of a search on the CPU takes: sizes, and places in its table."""

from __future__ import annotations

BLOCK = 64  # queries that go down together: so many loads are under way at once

# The sorted array, bytes from an element to the next, how many there are; queries and results
# without gaps, and how many.
SORTED, STEP, NUM_SORTED, QUERIES, OUTPUT, NUM_QUERIES = range(6)
