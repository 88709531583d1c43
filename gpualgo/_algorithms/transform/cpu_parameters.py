"""What the kernel of a transformation on the CPU takes: sizes, and places in its table."""

from __future__ import annotations

CHUNK = 2048  # elements of each array that go through a buffer in L1 at once

# How an array is read: dense, by dense rows, or else packed by the function at this address; if it
# lies in turn with others, by that of the first of them.
DENSE, ROWS, TAKEN = 0, 1, 2

# The table of arguments: how many elements, how many at once and in a row, dimensions; then for out
# and each array a record of address, size of an element and mode; then lengths; then strides.
COUNT, STEP, ROW, NDIM, HEAD = range(5)
START, SIZE, MODE, RECORD = range(4)
