"""Argument table of the search kernel on the CPU, and sizes."""

from __future__ import annotations

BLOCK = 64  # queries that are bisected together, to have that many loads in flight

# The sorted array, its stride in bytes, its length; queries and results, both contiguous, and their
# number.
SORTED, STEP, NUM_SORTED, QUERIES, OUTPUT, NUM_QUERIES = range(6)
