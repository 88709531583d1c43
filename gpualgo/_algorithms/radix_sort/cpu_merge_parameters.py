"""Argument table slots and sizes of the kernels around NumPy's sort."""

from __future__ import annotations

# SOURCE: address of keys or of runs; SORTED: address of the sorted keys.
SOURCE, SORTED, LENGTH, RUNS, PIECES = range(5)

BLOCK = 256  # keys examined per step
LANES = 4  # of a piece, merged in an interleaved loop
SCRATCH_BYTES = 8 * 3 * (LANES + 1)

DIGIT_SORT_COST = 100  # estimated merge levels from which the digit sort is faster
