"""Argument table of the transformation kernel on the CPU, and sizes."""

from __future__ import annotations

CHUNK = 2048  # elements of each array that are buffered in L1 at once

# Modes of an operand: dense, dense rows, handled by the first operand of its interleaved group, or
# else the address of the function that packs it.
DENSE, ROWS, GROUP_MEMBER = 0, 1, 2

# The argument table: numbers of elements, of elements at once and in a row, of dimensions; then for
# out and each array a record of address, item size and mode; then lengths; then strides.
COUNT, STEP, ROW, NDIM, HEAD = range(5)
START, SIZE, MODE, RECORD = range(4)
