"""What the kernels around NumPy's sort take: places in their table, and sizes."""

from __future__ import annotations

# SOURCE: where keys, or runs of them, are read; SORTED: where sorted ones are.
SOURCE, SORTED, LENGTH, RUNS, PIECES = range(5)

BLOCK = 256  # keys that are looked at together
LANES = 4  # of a piece, merged abreast
SCRATCH_BYTES = 8 * 3 * (LANES + 1)

MANY = 100  # levels of merges, as the estimate counts them, from which on digits are the faster way
